"""Output that keeps its head and its tail, and forgets the middle while it streams."""

from collections import deque

# Chunks are joined to pieces of this size, so that a flood of tiny ones costs no more than its
# bytes.
_PIECE_BYTES = 1 << 16


class BoundedOutput:
    """Collects bytes, at most ``max_bytes`` of them: the first half and the last half.

    Attributes:
        num_bytes: How many were added.
    """

    def __init__(self, max_bytes: int) -> None:
        self._head_room = max_bytes - max_bytes // 2
        self._tail_room = max_bytes // 2
        self._piece_bytes = min(_PIECE_BYTES, max(1, self._tail_room // 4))
        self._head = bytearray()
        self._tail: deque[bytearray] = deque()
        self._tail_size = 0
        self.num_bytes = 0

    def add(self, chunk: bytes) -> None:
        """Appends a chunk."""
        self.num_bytes += len(chunk)
        room = self._head_room - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if not chunk:
            return
        if self._tail and len(self._tail[-1]) < self._piece_bytes:
            self._tail[-1] += chunk
        else:
            self._tail.append(bytearray(chunk))
        self._tail_size += len(chunk)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_room:
            self._tail_size -= len(self._tail.popleft())

    def parts(self) -> tuple[bytes, bytes]:
        """Returns head and tail; where nothing was left out they join to the whole."""
        tail = b"".join(self._tail)
        return bytes(self._head), tail[max(0, len(tail) - self._tail_room) :]
