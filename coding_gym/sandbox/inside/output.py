"""Bounded output: keeps the head and the tail, and drops the middle while it streams."""


class BoundedOutput:
    """Collects bytes, at most ``max_bytes`` of them: the first half and the last half.

    Attributes:
        num_bytes: How many were added.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_head = max_bytes - max_bytes // 2
        self._max_tail = max_bytes // 2
        self._head, self._tail = bytearray(), bytearray()
        self.num_bytes = 0

    def add(self, chunk: bytes) -> None:
        """Appends a chunk."""
        self.num_bytes += len(chunk)
        num_left = self._max_head - len(self._head)
        self._head += chunk[:num_left]
        self._tail += chunk[num_left:]
        if len(self._tail) > 2 * self._max_tail:  # not at once: each cut moves what is left
            del self._tail[: len(self._tail) - self._max_tail]

    def parts(self) -> tuple[bytes, bytes]:
        """Returns head and tail; where nothing was left out they join to the whole."""
        return bytes(self._head), bytes(self._tail[max(0, len(self._tail) - self._max_tail) :])
