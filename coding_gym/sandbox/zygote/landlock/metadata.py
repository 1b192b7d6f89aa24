"""The calls that change a file's metadata: where their arguments say the file is, and what to do.

Each is done to a file that somebody holds on to by an ``O_PATH`` descriptor, so that no link can
lead it elsewhere.
"""

import errno
import os
import struct
from collections.abc import Callable, Sequence

from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.syscalls import AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW

_PATH_BYTES, _PAGE_BYTES = 4096, 4096

Arguments = Sequence[int]
# Descriptor of a folder, address of a path (0 for none: the folder itself), flags.
Place = tuple[int, int, int]
# What is done, given the file's path in /proc, its descriptor, the arguments, and who asked.
Action = Callable[[str, int, Arguments, int], None]


def text_of(pid: int, address: int) -> bytes:
    """Returns a text of another process, up to its NUL."""
    size = _PAGE_BYTES - address % _PAGE_BYTES  # what follows may not be mapped
    data = _memory(pid, address, size)
    if b"\0" not in data:
        data += _memory(pid, address + size, _PATH_BYTES)
    text, end, _ = data.partition(b"\0")
    if not end:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    return text


def _memory(pid: int, address: int, size: int) -> bytes:
    descriptor = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(descriptor, size, address)
    except (OSError, OverflowError) as error:
        raise OSError(errno.EFAULT, os.strerror(errno.EFAULT)) from error
    finally:
        os.close(descriptor)


def _signed(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _by_path(a: Arguments) -> Place:
    return AT_FDCWD, a[0], 0


def _by_link(a: Arguments) -> Place:
    return AT_FDCWD, a[0], AT_SYMLINK_NOFOLLOW


def _by_descriptor(a: Arguments) -> Place:
    return _signed(a[0]), 0, 0


def _at(flags: int | None) -> Callable[[Arguments], Place]:
    return lambda a: (_signed(a[0]), a[1], 0 if flags is None else a[flags])


def _chmod(index: int) -> Action:
    return lambda place, _, a, __: os.chmod(place, a[index] & 0o7777)


def _chown(index: int) -> Action:
    def change(_: str, target: int, a: Arguments, __: int) -> None:
        uid, gid = _signed(a[index]), _signed(a[index + 1])
        sc.NOW.call("fchownat", target, b"", uid, gid, AT_EMPTY_PATH)

    return change


def _times(index: int, read: Callable[[int, int], bytes]) -> Action:
    def change(_: str, target: int, a: Arguments, pid: int) -> None:
        times = read(pid, a[index]) if a[index] else 0
        sc.NOW.call("utimensat", target, b"", times, AT_EMPTY_PATH)

    return change


def _timespecs(pid: int, address: int) -> bytes:
    return _memory(pid, address, 32)


def _timevals(pid: int, address: int) -> bytes:
    times = struct.unpack("<4q", _memory(pid, address, 32))
    return struct.pack("<4q", times[0], times[1] * 1000, times[2], times[3] * 1000)


def _seconds(pid: int, address: int) -> bytes:
    accessed_s, modified_s = struct.unpack("<2q", _memory(pid, address, 16))
    return struct.pack("<4q", accessed_s, 0, modified_s, 0)


# The calls: where each says its file is, and what it does to it.
CALLS: dict[str, tuple[Callable[[Arguments], Place], Action]] = {
    "chmod": (_by_path, _chmod(1)),
    "fchmod": (_by_descriptor, _chmod(1)),
    "fchmodat": (_at(None), _chmod(2)),
    "fchmodat2": (_at(3), _chmod(2)),
    "chown": (_by_path, _chown(1)),
    "lchown": (_by_link, _chown(1)),
    "fchown": (_by_descriptor, _chown(1)),
    "fchownat": (_at(4), _chown(2)),
    "utime": (_by_path, _times(1, _seconds)),
    "utimes": (_by_path, _times(1, _timevals)),
    "futimesat": (_at(None), _times(2, _timevals)),
    "utimensat": (_at(3), _times(2, _timespecs)),
}
