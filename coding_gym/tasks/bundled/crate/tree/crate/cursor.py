"""Reading bytes from front to back."""

from __future__ import annotations

from crate.errors import CorruptError


class Cursor:
    """A place in some bytes, which moves on as they are read.

    Args:
        data: the bytes.
        position: where to begin.
    """

    def __init__(self, data: bytes, position: int = 0) -> None:
        self._data = data
        self.position = position

    @property
    def is_at_end(self) -> bool:
        """Whether there is nothing left."""
        return self.position >= len(self._data)

    def take(self, count: int) -> bytes:
        """The next bytes.

        Raises:
            CorruptError: if there are not so many left.
        """
        end = self.position + count
        if not self.position <= end <= len(self._data):
            raise CorruptError(f"expected {count} more bytes at {self.position}")
        start, self.position = self.position, end
        return self._data[start:end]

    def varint(self) -> int:
        """The next number from zero.

        Raises:
            CorruptError: if it does not end.
        """
        number = shift = 0
        while True:
            (byte,) = self.take(1)
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def signed(self) -> int:
        """The next whole number.

        Raises:
            CorruptError: if it does not end.
        """
        counted = self.varint()
        return -(counted + 1) // 2 if counted % 2 else counted // 2


def varint(number: int) -> bytes:
    """A number from zero, 7 bits per byte."""
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


def signed(number: int) -> bytes:
    """A whole number, as a varint in which 0, -1, 1, -2 are counted 0, 1, 2, 3."""
    return varint(2 * number if number >= 0 else -2 * number - 1)
