"""Reads and writes one file inside a sandbox, where symbolic links resolve; removes folders."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Collection

# As `os.open`: path, flags, mode of a new file.
Opener = Callable[[str, int, int], int]

_CHUNK_BYTES = 1 << 20
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def read(path: str, max_bytes: int, opener: Opener = os.open) -> bytes:
    """Returns a regular file's bytes.

    Raises:
        OSError: As ``open``; EISDIR for a folder, EINVAL for a special file, EFBIG above
            ``max_bytes``.
    """
    # Non-blocking, so that the open of a FIFO does not wait for a writer.
    try:
        descriptor = opener(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, 0)
    except OSError as error:
        if error.errno != errno.ENXIO:  # the error for a socket
            raise
        raise OSError(errno.EINVAL, "not a regular file", path) from error
    try:
        _require_regular(descriptor, path)
        data = bytearray()
        # Reads until end-of-file, because the size of files in /proc is 0.
        while chunk := os.read(descriptor, _CHUNK_BYTES):
            data += chunk
            if len(data) > max_bytes:
                raise OSError(errno.EFBIG, f"the file is larger than {max_bytes} bytes", path)
        return bytes(data)
    finally:
        os.close(descriptor)


def write(path: str, data: bytes, opener: Opener = os.open) -> None:
    """Writes a file, creating missing folders and keeping an existing file's mode.

    Space is reserved first: if the disk is full, an existing file keeps its content and a new
    file is removed. The existing parent of the first missing folder is opened through ``opener`` as
    well, so that an opener that refuses some folders also refuses new folders in them.

    Raises:
        OSError: As ``open``; ENOSPC when the sandbox is full.
    """
    is_new = not os.path.lexists(path)
    if is_new:
        _make_folders(os.path.dirname(path), opener)
    flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = opener(path, flags, 0o644)
    try:
        _require_regular(descriptor, path)
        if data:
            os.posix_fallocate(descriptor, 0, len(data))
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.ftruncate(descriptor, len(data))
    except OSError:
        if is_new:
            os.unlink(path)
        raise
    finally:
        os.close(descriptor)


def _make_folders(folder: str, opener: Opener) -> None:
    """Makes a folder and its parents, without recursion, because a path can be very deep."""
    missing_folders = []
    while folder and not os.path.isdir(folder):
        missing_folders.append(folder)
        folder = os.path.dirname(folder)
    if missing_folders and folder:
        os.close(opener(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0))
    for name in reversed(missing_folders):
        with contextlib.suppress(FileExistsError):  # a path such as new/.. exists by now
            os.mkdir(name)


def _require_regular(descriptor: int, path: str) -> None:
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file", path)


def remove_tree(folder: str) -> None:
    """Removes a folder and its content as far as possible; a missing folder is no error.

    An overlay's work folder has no permissions, and a policy can remove permissions of folders, so
    each folder gets permissions first. A policy may also nest folders too deeply for paths and
    recursion: only one folder is open at a time, and ``..`` leads back to its parent.
    Entries that cannot be removed, or that another process removes meanwhile, are skipped.
    """
    with contextlib.suppress(OSError):
        current = _enter(folder)
        parents: list[str] = []
        visited: list[set[str]] = [set()]  # names of the subfolders entered, by level
        try:
            while (name := _first_folder(current, visited[-1])) or parents:
                if name:
                    visited[-1].add(name)
                    with contextlib.suppress(OSError):
                        _replace(current, _enter(name, current))
                        parents.append(name)
                        visited.append(set())
                    continue
                _replace(current, os.open("..", _FOLDER_FLAGS, dir_fd=current))
                visited.pop()
                name = parents.pop()
                with contextlib.suppress(OSError):
                    os.rmdir(name, dir_fd=current)
                    visited[-1].remove(name)
        finally:
            os.close(current)
        os.rmdir(folder)


def _replace(descriptor: int, other: int) -> None:
    """Makes ``descriptor`` refer to the file of ``other``, and closes ``other``."""
    os.dup2(other, descriptor, inheritable=False)
    os.close(other)


def _enter(name: str, parent: int | None = None) -> int:
    # Changes modes by descriptor, because the name may be a symbolic link by now.
    try:
        descriptor = os.open(name, _FOLDER_FLAGS, dir_fd=parent)
    except PermissionError:
        location = os.open(name, os.O_PATH | _FOLDER_FLAGS, dir_fd=parent)
        try:
            os.chmod(f"/proc/self/fd/{location}", 0o700)
            return os.open(".", _FOLDER_FLAGS, dir_fd=location)
        finally:
            os.close(location)
    with contextlib.suppress(PermissionError):  # another user owns it; its mode may allow access
        os.chmod(descriptor, 0o700)
    return descriptor


def _first_folder(descriptor: int, visited: Collection[str]) -> str:
    """Removes files up to the first subfolder that is not in ``visited``.

    Returns:
        The name of the subfolder; "" without a subfolder.
    """
    with os.scandir(descriptor) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    os.unlink(entry.name, dir_fd=descriptor)
            elif entry.name not in visited:
                return entry.name
    return ""
