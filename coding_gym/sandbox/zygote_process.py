"""A running zygote, as its owner holds it."""

import contextlib
import os
import select
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

from coding_gym.errors import SandboxError, SandboxUnavailableError, last_line
from coding_gym.sandbox import disk_uppers
from coding_gym.sandbox.interpreters import default_interpreter
from coding_gym.sandbox.remedies import unavailable
from coding_gym.sandbox.zygote import wire
from coding_gym.sandbox.zygote.steps import SetupError

_MAIN = Path(__file__).parent / "zygote" / "__main__.py"
_PACKAGE = Path(__file__).parents[1]
_START_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 5.0


class Zygote:
    """A running zygote process.

    Attributes:
        alive: Whether it can be asked for more sandboxes.
        overlay_works_on_tmpfs: Whether sandboxes may keep their changes in memory.
    """

    def __init__(self, uid: int, gid: int) -> None:
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        errors_read, errors_write = os.pipe2(os.O_CLOEXEC)
        try:
            self._pid = _spawn(theirs.fileno(), errors_write)
        except OSError as error:
            self._control.close()
            os.close(errors_read)
            raise SandboxUnavailableError(f"cannot start a process: {error}") from error
        finally:
            theirs.close()
            os.close(errors_write)
        self.alive = True
        self._stopped = False
        config = {
            "owner": os.getpid(),
            "uid": uid,
            "gid": gid,
            "hidden": [str(_PACKAGE)],
            "scratch": str(disk_uppers.process_folder()),
        }
        try:
            self._control.sendall(wire.pack(config))
            header = self._receive()
        except (OSError, EOFError, wire.ProtocolError) as error:
            self.stop()
            reason = last_line(_what_it_said(errors_read), otherwise=str(error))
            raise SandboxUnavailableError(f"the sandbox server did not start: {reason}") from error
        finally:
            os.close(errors_read)
        if "error" in header:
            self.stop()
            failure = SetupError.from_json(header["error"])
            raise unavailable(failure) from failure
        self.overlay_works_on_tmpfs = bool(header["overlay_works_on_tmpfs"])

    def open(self, request: dict[str, Any]) -> socket.socket:
        """Returns the channel of a new sandbox, which is still setting itself up.

        Raises:
            SetupError: A step failed; the zygote is well.
            SandboxError: The zygote is gone.
        """
        with self._lock:
            try:
                self._control.settimeout(_START_TIMEOUT_S)
                self._control.sendall(wire.pack(request))
                answer, descriptors, _, _ = socket.recv_fds(
                    self._control, 1, 1, socket.MSG_CMSG_CLOEXEC
                )
                if answer == b"+" and descriptors:
                    return socket.socket(fileno=descriptors[0])
                if answer == b"+":  # ours to give up: without its channel the sandbox ends
                    raise SandboxError("this process has no file descriptor left for a sandbox")
                if answer != b"-":
                    raise EOFError("it ended")
                header = self._receive()
            except (OSError, EOFError, wire.ProtocolError) as error:
                self.stop()
                raise SandboxError(f"the sandbox server died: {error}") from error
            except SandboxError:
                raise
            except BaseException:
                # The answer may still come; let the next sandbox have another zygote, and these
                # sandboxes theirs.
                self.alive = False
                raise
        raise SetupError.from_json(header["error"])

    def stop(self) -> None:
        """Ends the zygote and every sandbox of it; idempotent."""
        self.alive = False
        if self._stopped:
            return
        self._stopped = True
        self._control.close()
        # The server saw its channel close. Should it hang, its parent's end is its end.
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            _wait_or_kill(self._pid)
            os.waitpid(self._pid, 0)

    def forget(self) -> None:
        """Lets go of the zygote without ending it: it belongs to the parent of this process."""
        self.alive = False
        self._stopped = True
        self._control.close()

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + _START_TIMEOUT_S
        return wire.receive(self._control, max_body_bytes=0, deadline=deadline)[0]


def _spawn(control: int, errors: int) -> int:
    """Starts the process with nothing of ours but the two descriptors."""
    null = os.open(os.devnull, os.O_RDWR)
    os.set_inheritable(control, True)
    # What a Python that is not installed system-wide may need in order to start at all.
    env = {k: v for k, v in os.environ.items() if k == "LD_LIBRARY_PATH"}
    python = str(default_interpreter().executable)
    actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)]
    try:
        return os.posix_spawn(
            python,
            [python, "-I", "-S", str(_MAIN), str(control)],
            env,
            file_actions=[*actions, (os.POSIX_SPAWN_DUP2, errors, 2)],
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGPIPE, signal.SIGCHLD),
        )
    finally:
        os.close(null)


def _wait_or_kill(pid: int) -> None:
    descriptor = os.pidfd_open(pid)
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        if not poller.poll(_STOP_TIMEOUT_S * 1000):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    finally:
        os.close(descriptor)


def _what_it_said(descriptor: int) -> str:
    """Returns what is in a pipe now."""
    os.set_blocking(descriptor, False)
    try:
        return os.read(descriptor, 1 << 16).decode("utf-8", "replace")
    except BlockingIOError:
        return ""
