"""A running zygote, as its owner holds it."""

import contextlib
import os
import select
import socket
import threading
import time
from pathlib import Path
from typing import Any

from coding_gym.errors import SandboxError, SandboxUnavailableError
from coding_gym.sandbox.cgroups import Group
from coding_gym.sandbox.ownership import uppers_folder
from coding_gym.sandbox.remedies import unavailable
from coding_gym.sandbox.standalone import Standalone
from coding_gym.sandbox.zygote import wire
from coding_gym.sandbox.zygote.steps import SetupError

_PACKAGE = Path(__file__).parents[1]
_START_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 5.0


class Zygote:
    """A running zygote process.

    Args:
        uid: User id of the sandboxes' processes.
        gid: Group id of the sandboxes' processes.
        main: Program of the process; the package's own when None.

    Attributes:
        pid: Its process id.
        overlay_works_on_tmpfs: Whether sandboxes may keep their changes in memory.
    """

    def __init__(self, uid: int, gid: int, main: Path | None = None) -> None:
        self._lock = threading.RLock()  # who finds in a call that it ended, ends it
        try:
            self._process = Standalone("namespace", main)
        except OSError as error:
            raise SandboxUnavailableError(f"cannot start a process: {error}") from error
        self.pid = self._process.pid
        self._control = self._process.channel
        self._may_be_asked = True
        self._stopped = False
        config = {
            "owner": os.getpid(),
            "uid": uid,
            "gid": gid,
            "hidden": [str(_PACKAGE)],
            "scratch": str(uppers_folder()),
        }
        try:
            self._control.sendall(wire.pack(config))
            header = self._receive()
        except (OSError, EOFError, wire.ProtocolError) as error:
            self.stop()
            reason = self._process.last_words(otherwise=str(error))
            raise SandboxUnavailableError(f"the sandbox server did not start: {reason}") from error
        finally:
            self._process.stop_listening()
        if "error" in header:
            self.stop()
            failure = SetupError.from_json(header["error"])
            raise unavailable(failure) from failure
        self.overlay_works_on_tmpfs = bool(header["overlay_works_on_tmpfs"])

    @property
    def alive(self) -> bool:
        """Whether it can be asked for more sandboxes."""
        return self._may_be_asked and not self._has_hung_up()

    def reap(self) -> None:
        """Stops it where it ended on its own; else leaves it and its sandboxes alone."""
        if self._has_hung_up():
            self.stop()

    def open(self, request: dict[str, Any], group: Group | None = None) -> socket.socket:
        """Returns the channel of a new sandbox, which is still setting itself up.

        Args:
            request: What it is to be.
            group: Its first process joins it before anything else.

        Raises:
            SetupError: A step failed; the zygote is well.
            SandboxError: The zygote is gone.
        """
        with self._lock:
            try:
                self._control.settimeout(_START_TIMEOUT_S)
                self._send_entrance(group)
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
                self._may_be_asked = False
                raise
        raise SetupError.from_json(header["error"])

    def stop(self) -> None:
        """Ends the zygote and every sandbox of it; idempotent."""
        self._may_be_asked = False
        if self._stopped:
            return
        self._stopped = True
        with contextlib.suppress(OSError):  # it hung up first
            self._control.shutdown(socket.SHUT_RDWR)
        # The server saw its channel end. Should it hang, its parent's end is its end.
        self._process.end(_STOP_TIMEOUT_S)
        # Not before a call in another thread has seen it too: the number of a closed descriptor is
        # given to the next that is opened, from which that call would read somebody else's answer.
        with self._lock:
            self._control.close()

    def forget(self) -> None:
        """Lets go of the zygote without ending it: it belongs to the parent of this process."""
        self._may_be_asked = False
        self._stopped = True
        self._control.close()

    def _has_hung_up(self) -> bool:
        poll = select.poll()
        try:
            poll.register(self._control, select.POLLRDHUP)
        except ValueError:  # another thread closed it just now
            return True
        return bool(poll.poll(0))

    def _send_entrance(self, group: Group | None) -> None:
        """Sends the byte before a request, with the descriptor by which a process joins a group."""
        if group is None:
            self._control.sendall(b"-")
            return
        entrance = group.open_entrance()
        try:
            socket.send_fds(self._control, [b"+"], [entrance])
        finally:
            os.close(entrance)

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + _START_TIMEOUT_S
        return wire.receive(self._control, max_body_bytes=0, deadline=deadline)[0]
