"""Starts the zygotes of this process, which fork the first processes of sandboxes on request.

Each combination of a kind of sandbox, user, interpreter and preloaded modules has one zygote. The
zygote starts when it is first needed and runs until this process exits. Zygotes of ``namespace``
sandboxes have left the host's namespaces; zygotes of ``landlock`` sandboxes have not.
"""

import atexit
import contextlib
import os
import select
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Literal, TypeVar

from coding_gym.errors import SandboxError, SandboxUnavailableError
from coding_gym.host.interpreters import default_interpreter, loader_variables
from coding_gym.program_output import last_line
from coding_gym.sandbox.inside import wire
from coding_gym.sandbox.inside.request import LandlockRequest, Preload, SandboxRequest
from coding_gym.sandbox.inside.syscalls import SetupError, step
from coding_gym.sandbox.setup_errors import NO_DESCRIPTOR, documented_errors
from coding_gym.sandbox.spec import VARIABLES

Kind = Literal["namespace", "landlock"]
Result = TypeVar("Result")

MAIN = Path(__file__).parent / "inside" / "__main__.py"
_START_TIMEOUT_S = 30.0
# The variables of commands that affect the start of Python.
_PRELOADED_ENV = {name: VARIABLES[name] for name in ("PYTHONHASHSEED", "LC_CTYPE", "TZ")}
_STOP_TIMEOUT_S = 5.0


class Zygote:
    """A running zygote process.

    Args:
        kind: The kind of its sandboxes.
        uid: User id of the sandboxes' processes.
        gid: Group id of the sandboxes' processes.
        preload: Modules that the zygote imports at its start; None for none.

    Attributes:
        is_preloaded: Whether its sandboxes run Python in forks of their first process.
        overlay_works_on_tmpfs: Whether ``namespace`` sandboxes may keep their changes in memory.

    Raises:
        SandboxUnavailableError: This machine cannot start zygotes; the message has the remedy.
        SandboxError: The zygote could not be started for a transient reason.
    """

    def __init__(self, kind: Kind, uid: int, gid: int, preload: Preload | None = None) -> None:
        self._lock = threading.RLock()  # reentrant: `open` calls `stop`
        self._accepts_requests = True
        self._stopped = False
        self.is_preloaded = preload is not None
        config = {"owner": os.getpid(), "uid": uid, "gid": gid, "preload": preload}
        with documented_errors():
            with step("start a process"), os.fdopen(os.memfd_create("errors"), "r+b") as errors:
                self._start([str(MAIN), kind], preload, errors)
                header = self._configure(config, errors)
            if "error" in header:
                self.stop()
                raise SetupError.from_json(header["error"])
        self.overlay_works_on_tmpfs = bool(header.get("overlay_works_on_tmpfs"))

    def is_usable(self) -> bool:
        """Returns whether the zygote can open sandboxes; stops a zygote whose process has ended."""
        poll = select.poll()
        try:
            poll.register(self._control, select.POLLRDHUP)
        except ValueError:  # another thread has just closed the channel
            return False
        if poll.poll(0):
            self.stop()
        return self._accepts_requests

    def open(self, request: SandboxRequest | LandlockRequest) -> socket.socket:
        """Returns the channel of a new sandbox, which is still being set up.

        Raises:
            SetupError: A step failed; the zygote still works.
            SandboxError: The zygote has ended, or does not reply in time.
        """
        with self._lock:
            try:
                self._control.settimeout(_START_TIMEOUT_S)
                self._control.sendall(wire.pack({"request": request}))
                reply, descriptors = wire.receive_descriptors(self._control, 1, 1)
                if reply == b"+" and descriptors:
                    return socket.socket(fileno=descriptors[0])
                if reply == b"-":
                    header = self._receive()
                elif reply != b"+":
                    raise EOFError("its channel closed")
            except TimeoutError as error:  # the zygote keeps its sandboxes, but opens no others
                self._accepts_requests = False
                raise SandboxError(f"the sandbox server does not reply: {error}") from error
            except (OSError, EOFError, wire.ProtocolError) as error:
                self.stop()
                raise SandboxError(f"the sandbox server died: {error}") from error
            except BaseException:
                # A late reply would be read as the reply to the next request, so this zygote gets
                # no more requests. Its sandboxes stay open.
                self._accepts_requests = False
                raise
        if reply == b"+":  # the new sandbox ends, because no process holds its channel
            raise SandboxError(NO_DESCRIPTOR)
        raise SetupError.from_json(header["error"])

    def stop(self) -> None:
        """Ends the zygote and its ``namespace`` sandboxes; idempotent."""
        self._accepts_requests = False
        if self._stopped:
            return
        self._stopped = True
        with contextlib.suppress(OSError):  # the zygote closed the channel first
            self._control.shutdown(socket.SHUT_RDWR)
        # The server sees the end of its channel, even if a fork of this process also holds it.
        # If the server hangs, killing its parent kills the server.
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        # `open` in another thread must fail before the channel is closed: the kernel gives the
        # number of a closed descriptor to the next file, and `open` would read from that file.
        with self._lock:
            self._control.close()

    def _start(self, arguments: list[str], preload: Preload | None, errors: IO[bytes]) -> None:
        """Starts the process, which inherits only a channel, as its standard input."""
        python, env = [str(default_interpreter().executable), "-I", "-S"], {}
        if preload is not None:  # -I would ignore PYTHONHASHSEED
            python, env = [preload.executable, "-s", "-S"], _PRELOADED_ENV | {"HOME": "/"}
        self._control, zygote_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with zygote_end, contextlib.ExitStack() as cleanup:
            cleanup.callback(self._control.close)
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                [*python, *arguments],
                env=env | loader_variables(),
                stdin=zygote_end.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=errors,
                close_fds=True,
                start_new_session=True,
            )
            cleanup.pop_all()

    def _configure(self, config: dict[str, Any], errors: IO[bytes]) -> dict[str, Any]:
        """Sends the configuration and returns the reply, which may be an error."""
        try:
            self._control.sendall(wire.pack(config))
            return self._receive()
        except (OSError, EOFError, wire.ProtocolError) as error:
            self.stop()
            errors.seek(0)
            message = errors.read().decode("utf-8", "replace")
            is_late = isinstance(error, TimeoutError)
            # A late zygote prints an error about the end of its channel, which is not the reason.
            reason = str(error) if is_late else last_line(message, otherwise=str(error))
            # A zygote without modules is late only if the machine is overloaded.
            is_transient = is_late and not self.is_preloaded
            error_type = SandboxError if is_transient else SandboxUnavailableError
            raise error_type(f"the sandbox server did not start: {reason}") from error
        except BaseException:
            self.stop()
            raise

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + _START_TIMEOUT_S
        return wire.receive(self._control, max_body_bytes=0, deadline=deadline)[0]


# With the process id, because a fork starts separate zygotes.
_Key = tuple[int, Kind, int, int, Preload | None]
_locks: dict[_Key, threading.Lock] = {}  # one start can take half a minute
# Only the last zygote of a key opens sandboxes. Its previous zygotes replied late, were
# interrupted or ended; their sandboxes may still be open.
_zygotes: dict[_Key, list[Zygote]] = {}


def zygote(kind: Kind, uid: int, gid: int, preload: Preload | None = None) -> Zygote:
    """Returns this process's zygote for sandboxes of a user; starts the zygote if necessary.

    Raises:
        SandboxError: As `Zygote`.
    """
    key = os.getpid(), kind, uid, gid, preload
    with _locks.setdefault(key, threading.Lock()):
        zygotes = _zygotes.setdefault(key, [])
        if not zygotes or not zygotes[-1].is_usable():
            zygotes.append(Zygote(kind, uid, gid, preload))
        return zygotes[-1]


def with_zygote(
    kind: Kind,
    uid: int,
    gid: int,
    use: Callable[[Zygote], Result],
    preload: Preload | None = None,
) -> Result:
    """Calls ``use`` with a zygote, and again with a new zygote if the first dies or is late."""
    first = zygote(kind, uid, gid, preload)
    try:
        return use(first)
    except SandboxError:
        if first.is_usable():
            raise
    return use(zygote(kind, uid, gid, preload))


@atexit.register
def stop_zygotes() -> None:
    """Stops this process's zygotes, with their ``namespace`` sandboxes; also for tests.

    The next open starts new zygotes.
    """
    for key, lock in tuple(_locks.items()):
        if key[0] == os.getpid():
            with lock:
                for handle in _zygotes.pop(key, ()):
                    handle.stop()
