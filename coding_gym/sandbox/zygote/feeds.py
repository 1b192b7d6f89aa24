"""What is written to a pipe that a shell reads, as far as it fits."""

import os


class Feed:
    """What is still to be written to a pipe that a shell reads.

    A pipe, because bytes in it are bounded; a file would need room on the sandbox's disk, which a
    command may have filled, and one in memory could grow without limit in a command's hands.
    """

    def __init__(self, descriptor: int, data: bytes, *, closes: bool = True) -> None:
        self.descriptor = descriptor
        self._data = memoryview(data)
        self._closes = closes

    @property
    def rest(self) -> bytes:
        """What is still to be written."""
        return bytes(self._data)

    def write(self) -> bool:
        """Writes what fits now; False when nothing is left to write, or nobody to read it."""
        try:
            while self._data:
                self._data = self._data[os.write(self.descriptor, self._data) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            self._data = memoryview(b"")
        self.end()
        return False

    def end(self) -> None:
        """Closes the pipe, unless more is to follow; idempotent."""
        if self._closes:
            self._closes = False
            os.close(self.descriptor)


def feeding_pipe(data: bytes) -> tuple[int, Feed]:
    """Returns the end of a pipe to read from, and what feeds the other."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(writer, False)
    return reader, Feed(writer, data)
