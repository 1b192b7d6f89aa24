"""The owner's handle of a running sandbox: its lock, the cause of its end, and its channel."""

import contextlib
import fcntl
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from coding_gym.errors import SandboxError
from coding_gym.sandbox.forwarding import Forwarder
from coding_gym.sandbox.inside import wire
from coding_gym.sandbox.inside.request import FolderRequest
from coding_gym.sandbox.inside.syscalls import SetupError
from coding_gym.sandbox.protocol import Snapshot

_READY_TIMEOUT_S = 30.0
_CLOSE_TIMEOUT_S = 5.0
SNAPSHOT_TIMEOUT_S = 300.0


class Channel:
    """The owner's end of the channel to an inner server, and the clean-up after its end.

    One call at a time goes through, in the process that opened the sandbox. A failed call ends the
    sandbox; every later call raises the same error.

    Args:
        stream: Connects to the first process, which is still setting the sandbox up.
        undo: The clean-up after the sandbox's end; owned by the channel.
        forks_python: Whether the first process runs Python in forks of itself.

    Attributes:
        forks_python: As the argument.
    """

    def __init__(
        self, stream: socket.socket, undo: contextlib.ExitStack, *, forks_python: bool = False
    ) -> None:
        self.forks_python = forks_python
        self._stream = stream
        self._undo = undo.pop_all()
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._is_closed = False
        self._why_dead = ""

    def require_open(self) -> None:
        """Raises SandboxError in a fork, or if the sandbox is closed or dead."""
        if os.getpid() != self._owner:
            raise SandboxError("the sandbox belongs to the process that opened it; open another")
        if self._is_closed or self._why_dead:
            raise SandboxError(self._why_dead or "the sandbox is closed")

    def give_up(self, reason: str) -> SandboxError:
        """Returns the error that this and every later call raises."""
        self._why_dead = reason
        return SandboxError(reason)

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        """Lets one call through at a time.

        Raises:
            SandboxError: Instead of errors of a dead sandbox or of a malformed reply.
        """
        self.require_open()
        with self._lock:
            self.require_open()
            try:
                yield
            except (OSError, EOFError, ValueError) as error:
                is_closed = self._is_closed
                reason = "the sandbox is closed" if is_closed else f"the sandbox died: {error}"
                raise self.give_up(reason) from error
            except BaseException:
                # The reply may still arrive, and would be read as that of the next call.
                self._why_dead = "a call was interrupted"
                raise

    def wait_until_ready(
        self, request: FolderRequest | None = None, snapshot: Snapshot | None = None
    ) -> None:
        """Waits for the end of the set-up; closes the channel where that fails.

        Args:
            request: That of a ``landlock`` sandbox, whose first process waits for it.
            snapshot: Files that it restores.

        Raises:
            SetupError: A step of it failed.
            SandboxError: The first process died, or does not answer.
        """
        try:
            if snapshot is None:
                header, _ = self.call(request, timeout_s=_READY_TIMEOUT_S)
            else:
                with memory_file(snapshot.data) as file:
                    header, _ = self.call(request, timeout_s=SNAPSHOT_TIMEOUT_S, file=file)
            if "error" in header:
                raise SetupError.from_json(header["error"])
        except BaseException:
            self.close()
            raise

    def call(
        self,
        header: wire.Header | None,
        body: bytes = b"",
        *,
        timeout_s: float,
        max_body_bytes: int = 0,
        file: BinaryIO | None = None,
    ) -> tuple[dict[str, Any], bytes]:
        """Sends a message, if any, and returns the next one's header and body.

        Args:
            header: That of the message; None for none.
            body: Its body.
            timeout_s: How long the reply may take.
            max_body_bytes: Limit on the reply's body.
            file: Is passed on as soon as the other side replies that it is ready for it.

        Raises:
            SandboxError: The other side ended, or its reply is late or malformed.
        """
        with self._in_use():
            deadline = time.monotonic() + timeout_s
            self._stream.settimeout(timeout_s)
            if header is not None:
                self._stream.sendall(wire.pack(header, body))
            if file is not None:
                reply, _ = wire.receive(self._stream, max_body_bytes=0, deadline=deadline)
                if reply:
                    return reply, b""
                socket.send_fds(self._stream, [b"+"], [file.fileno()])
            return wire.receive(self._stream, max_body_bytes=max_body_bytes, deadline=deadline)

    def forward(self, sockets: Mapping[int, Path]) -> None:
        """Forwards ports of the sandbox to UNIX sockets of the host; closes it where that fails.

        Raises:
            SandboxError: A port is not free, or as `call`.
        """
        routes: dict[socket.socket, Path] = {}
        try:
            for port, path in sockets.items():
                routes[self._listener(port)] = path
            self._undo.callback(Forwarder(routes).close)
        except BaseException:
            for listener in routes:
                listener.close()
            self.close()
            raise

    def _listener(self, port: int) -> socket.socket:
        with self._in_use():
            self._stream.settimeout(_READY_TIMEOUT_S)
            self._stream.sendall(wire.pack({"op": "listen", "port": port}))
            _, (descriptor,) = wire.receive_descriptors(self._stream, 1, 1)
            return socket.socket(fileno=descriptor)

    def shut(self) -> None:
        """Starts to end the sandbox, and does not wait."""
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Ends the sandbox, waits until its processes are dead, and cleans up; idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        if os.getpid() != self._owner:
            # A copy that a fork made: the sandbox is the parent's.
            self._stream.close()
            return
        self.shut()
        # A call in another thread sees the end of the stream first.
        is_mine = self._lock.acquire(timeout=_CLOSE_TIMEOUT_S)
        with contextlib.suppress(OSError):
            self._stream.settimeout(_CLOSE_TIMEOUT_S)
            while is_mine and self._stream.recv(1 << 16):
                pass
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)
        # This ends the other call, which must return before the descriptor's number is free again.
        is_mine = is_mine or self._lock.acquire(timeout=_CLOSE_TIMEOUT_S)
        if is_mine:
            self._lock.release()
        self._stream.close()
        self._undo.close()


@contextlib.contextmanager
def memory_file(data: bytes = b"", *, size: int = 0) -> Iterator[BinaryIO]:
    """Gives a file in memory to pass to a sandbox.

    Args:
        data: Its content, which nobody can change.
        size: Its size, which nobody can change, where the other side writes to it; 0 otherwise.
    """
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    with os.fdopen(os.memfd_create("coding_gym", flags), "r+b") as file:
        file.write(data)
        file.flush()
        seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
        if size:
            file.truncate(size)
        else:
            seals |= fcntl.F_SEAL_WRITE
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
        file.seek(0)
        yield file
