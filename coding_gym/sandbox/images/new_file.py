"""One file that is being unpacked."""

import os

# Later than what every file system can hold is as late as they can.
_MAX_SECONDS = 1 << 33


class NewFile:
    """A new, empty file.

    Args:
        descriptor: Open for writing; this object's from here on.
        mode: The permissions that it gets in the end.
        mtime: The time that it gets, in seconds since 1970.
    """

    def __init__(self, descriptor: int, mode: int, mtime: float) -> None:
        self.descriptor = descriptor
        self._mode = mode
        self._mtime = mtime

    def write(self, data: bytes, offset: int) -> None:
        """Writes data at a place; what is never written is a hole."""
        view = memoryview(data)
        while view:
            count = os.pwrite(self.descriptor, view, offset)
            view, offset = view[count:], offset + count

    def finish(self, size: int) -> None:
        """Sets the size, the permissions and the time."""
        os.ftruncate(self.descriptor, size)
        os.fchmod(self.descriptor, self._mode)
        os.utime(self.descriptor, ns=nanoseconds(self._mtime))

    def close(self) -> None:
        """Closes the descriptor."""
        os.close(self.descriptor)


def nanoseconds(mtime: float) -> tuple[int, int]:
    """Returns the two times of a file, as `os.utime` takes them."""
    seconds = min(max(mtime, 0.0), _MAX_SECONDS)
    return (int(seconds * 1e9),) * 2
