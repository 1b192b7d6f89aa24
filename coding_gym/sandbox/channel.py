"""The owner's end of a sandbox's channel: one message out, one answer back."""

import contextlib
import io
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

from coding_gym.errors import SandboxError
from coding_gym.sandbox.zygote import wire
from coding_gym.sandbox.zygote.chunks import CHUNK_BYTES, MAX_CHUNK_BYTES

_CLOSE_TIMEOUT_S = 5.0
# SCM_CREDENTIALS: pid, uid and gid.
_CREDENTIALS_KIND, _CREDENTIALS = 2, struct.Struct("iII")


class Channel:
    """A stream to the first process of a sandbox.

    Whatever goes wrong on it is the sandbox's end: from then on every call says why.
    """

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._is_closed = False
        self._why_dead = ""

    def call(
        self, message: bytes, *, timeout_s: float, max_body_bytes: int
    ) -> tuple[dict[str, Any], bytes]:
        """Sends a message, if any, and returns the next one's header and body.

        Raises:
            SandboxError: The other side is gone, or does not answer in time, or answers nonsense.
        """
        self.require_open()
        with self._lock:
            self.require_open()
            try:
                if self._stream.gettimeout() != timeout_s:
                    self._stream.settimeout(timeout_s)
                if message:
                    self._stream.sendall(message)
                text, body = wire.receive_single(self._stream, max_body_bytes=max_body_bytes)
                return wire.parse(text), body
            except BaseException as error:
                self._fail(error)
                raise

    def download(self, message: bytes, *, timeout_s: float, max_bytes: int) -> bytes:
        """Sends a message and returns what is answered in chunks.

        Args:
            message: What asks for them.
            timeout_s: How long the next chunk may take.
            max_bytes: How much all of them may hold.

        Raises:
            SandboxError: As `call`; or the answer is larger, or says what went wrong.
        """
        # Its value shares the memory of the buffer.
        data = io.BytesIO()
        with self._in_use(timeout_s):
            self._stream.sendall(message)
            more = True
            while more:
                header, chunk = self._receive(timeout_s, MAX_CHUNK_BYTES)
                data.write(chunk)
                if "error" in header:
                    raise wire.ProtocolError(header["error"])
                if data.tell() > max_bytes:
                    raise wire.ProtocolError(f"its changes are more than {max_bytes} bytes")
                more = bool(header.get("more"))
        return data.getvalue()

    def upload(self, data: bytes, *, timeout_s: float) -> None:
        """Sends data in chunks, each of which may take ``timeout_s``; no answer is read.

        The other side may refuse them half-way. It has said why then, for the next call to read.

        Raises:
            SandboxError: As `call`.
        """
        view = memoryview(data)
        with self._in_use(timeout_s), contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for start in range(0, max(len(view), 1), CHUNK_BYTES):
                chunk = view[start : start + CHUNK_BYTES]
                more = start + CHUNK_BYTES < len(view)
                self._stream.settimeout(timeout_s)
                self._stream.sendall(wire.pack({"more": more}, bytes(chunk)))

    def peer_pid(self, *, timeout_s: float) -> int:
        """Returns the id of the process at the other end, as this process sees it.

        Raises:
            SandboxError: As `call`.
        """
        # The kernel writes the sender's id on a message, in terms of the receiver's namespace.
        question = wire.pack({"op": "read", "path": "/dev/null", "max_bytes": 0})
        with self._in_use(timeout_s):
            self._stream.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            try:
                self._stream.sendall(question)
                _, found, _, _ = self._stream.recvmsg(
                    1, socket.CMSG_SPACE(_CREDENTIALS.size), socket.MSG_PEEK
                )
                self._receive(timeout_s, 0)
            finally:
                self._stream.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
            for _, kind, data in found:
                pid, _, _ = _CREDENTIALS.unpack(data) if kind == _CREDENTIALS_KIND else (0, 0, 0)
                if pid:
                    return int(pid)
            raise wire.ProtocolError("the kernel does not say who answered")

    def require_open(self) -> None:
        """Raises SandboxError where a call would, without one."""
        if os.getpid() != self._owner:
            raise SandboxError("the sandbox belongs to the process that opened it; open another")
        if self._is_closed or self._why_dead:
            raise SandboxError(self._why_dead or "the sandbox is closed")

    def give_up(self, reason: str) -> SandboxError:
        """Returns the error that this and every later call raises."""
        self._why_dead = reason
        return SandboxError(reason)

    def shut(self) -> None:
        """Begins to end the sandbox, and does not wait."""
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_WR)

    def close(self) -> bool:
        """Ends the sandbox and waits until its processes are dead; False when that was done."""
        if self._is_closed:
            return False
        self._is_closed = True
        if os.getpid() != self._owner:
            # A copy that a fork made: the sandbox is the parent's.
            self._stream.close()
            return False
        self.shut()
        # A call in another thread sees the end of the stream first.
        is_mine = self._lock.acquire(timeout=_CLOSE_TIMEOUT_S)
        with contextlib.suppress(OSError):
            self._stream.settimeout(_CLOSE_TIMEOUT_S)
            while is_mine and self._stream.recv(1 << 16):
                pass
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)
        # That ends the other call at last. It must be over before the descriptor's number is free
        # for the next that is opened.
        is_mine = is_mine or self._lock.acquire(timeout=_CLOSE_TIMEOUT_S)
        if is_mine:
            self._lock.release()
        self._stream.close()
        return True

    def _receive(self, timeout_s: float, max_body_bytes: int) -> tuple[dict[str, Any], bytes]:
        deadline = time.monotonic() + timeout_s
        return wire.receive(self._stream, max_body_bytes=max_body_bytes, deadline=deadline)

    @contextlib.contextmanager
    def _in_use(self, timeout_s: float) -> Iterator[None]:
        """Holds the stream for one call; whatever fails in it is the end of the sandbox."""
        self.require_open()
        with self._lock:
            self.require_open()
            try:
                self._stream.settimeout(timeout_s)
                yield
            except BaseException as error:
                self._fail(error)
                raise

    def _fail(self, error: BaseException) -> None:
        """Takes note of what went wrong in a call; raises SandboxError for what the stream did."""
        if isinstance(error, OSError | EOFError | wire.ProtocolError):
            is_closed = self._is_closed
            reason = "the sandbox is closed" if is_closed else f"the sandbox died: {error}"
            raise self.give_up(reason) from error
        # The answer may still come, and would be taken for that of the next call.
        self._why_dead = "a call was interrupted"
