"""The owner's end of a sandbox's channel: one message out, one answer back."""

import contextlib
import os
import socket
import threading
import time
from typing import Any

from coding_gym.errors import SandboxError
from coding_gym.sandbox.zygote import wire

_CLOSE_TIMEOUT_S = 5.0


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
        if os.getpid() != self._owner:
            raise SandboxError("the sandbox belongs to the process that opened it; open another")
        with self._lock:
            if self._is_closed or self._why_dead:
                raise SandboxError(self._why_dead or "the sandbox is closed")
            return self._exchange(message, timeout_s, max_body_bytes)

    def give_up(self, reason: str) -> SandboxError:
        """Returns the error that this and every later call raises."""
        self._why_dead = reason
        return SandboxError(reason)

    def close(self) -> bool:
        """Ends the sandbox and waits until its processes are dead; False when that was done."""
        if self._is_closed:
            return False
        self._is_closed = True
        if os.getpid() != self._owner:
            # A copy that a fork made: the sandbox is the parent's.
            self._stream.close()
            return False
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_WR)
        # A call in another thread sees the end of the stream first.
        is_mine = self._lock.acquire(timeout=_CLOSE_TIMEOUT_S)
        with contextlib.suppress(OSError):
            self._stream.settimeout(_CLOSE_TIMEOUT_S)
            while is_mine and self._stream.recv(1 << 16):
                pass
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)
        if is_mine:
            self._lock.release()
        self._stream.close()
        return True

    def _exchange(
        self, message: bytes, timeout_s: float, max_body_bytes: int
    ) -> tuple[dict[str, Any], bytes]:
        deadline = time.monotonic() + timeout_s
        try:
            self._stream.settimeout(timeout_s)
            if message:
                self._stream.sendall(message)
            return wire.receive(self._stream, max_body_bytes=max_body_bytes, deadline=deadline)
        except (OSError, EOFError, wire.ProtocolError) as error:
            reason = "the sandbox is closed" if self._is_closed else f"the sandbox died: {error}"
            raise self.give_up(reason) from error
        except BaseException:
            # The answer may still come, and would be taken for that of the next call.
            self._why_dead = "a call was interrupted"
            raise
