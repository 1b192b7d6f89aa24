"""Writes the snapshot of a sandbox, a stream of its changed files, and restores such a stream.

Each entry is a line with the JSON list of an `Entry`; the data of a regular file follow its line. A
tar would be slower: Python's tarfile takes twice the time of the system calls.

No other process of the sandbox runs during a snapshot, so files do not change. Sockets are skipped,
and so are extended attributes, except the attribute of opaque folders, which hide a folder of a
lower layer. A tree with a path longer than the kernel accepts has no snapshot.
"""

import contextlib
import errno
import json
import mmap
import os
import socket
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

from coding_gym.sandbox.inside import wire
from coding_gym.sandbox.inside.fixed import OPAQUE
from coding_gym.sandbox.inside.syscalls import SetupError, step

# A snapshot must not change files, not even their access times.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | getattr(os, "O_NOATIME", 0)
_STAT_BLOCK_BYTES = 512  # the unit of `st_blocks` on all file systems
_CHUNK_BYTES = 1 << 20
_FOLDER, _FILE, _SYMLINK, _HARD_LINK, _FIFO = "folder", "file", "symlink", "link", "fifo"
_WHITEOUT = "removal"  # a device 0, 0: hides an entry of a lower layer
_KINDS = {
    stat.S_IFDIR: _FOLDER,
    stat.S_IFREG: _FILE,
    stat.S_IFLNK: _SYMLINK,
    stat.S_IFIFO: _FIFO,
    stat.S_IFCHR: _WHITEOUT,
}
_END = b"[]\n"  # the last line; a snapshot without it is incomplete
_SEND_STEP, _STEP = "take a snapshot", "restore the snapshot"
_MAX_REASON = 200  # characters; the error of a long path would not fit


class Changes(NamedTuple):
    """The folders of a sandbox's changes, opened before other mounts could cover them.

    Attributes:
        folders: Descriptors of the folders by name.
        newest_first: Whether the sandbox's file system lists the newest entry first. A snapshot has
            the order of entries that restores the same listings.
    """

    folders: Mapping[str, int]
    newest_first: bool


class Entry(NamedTuple):
    """A file, folder or link of a snapshot.

    Attributes:
        root: Name of the folder that holds the entry.
        path: Its path in the root: ``.``, or a path that starts with ``./``.
        kind: A value of `_KINDS`, or ``"link"`` for a further name of a file.
        mode: Its permissions.
        mtime_ns: Its time of modification.
        target: The target of a symbolic link, or the first name of a file; for a folder, "" unless
            it is opaque.
        size: Number of bytes of a file.
        extents: Offsets and lengths of its data; the rest are holes.
    """

    root: str
    path: str
    kind: str
    mode: int
    mtime_ns: int
    target: str = ""
    size: int = 0
    extents: Sequence[Sequence[int]] = ()


def open_folders(folders: Mapping[str, str], *, newest_first: bool) -> Changes:
    """Opens the folders of a sandbox's changes; ``folders`` has their paths by name."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    descriptors = {name: os.open(path, flags) for name, path in folders.items()}
    return Changes(folders=descriptors, newest_first=newest_first)


def send(changes: Changes, request: Mapping[str, Any], channel: socket.socket) -> None:
    """Writes a snapshot to the request's file, closes the file, and replies with the size.

    The write uses a mapping, to which the limit on file size does not apply. After a failure the
    sandbox stays usable, because a policy can make a tree that has no snapshot.
    """
    descriptor = request["file"]
    size = os.fstat(descriptor).st_size
    try:
        with mmap.mmap(descriptor, 0) as file:
            os.close(descriptor)
            for root, folder in changes.folders.items():
                _Packer(file, root, newest_first=changes.newest_first).pack(folder)
            file.write(_END)
            reply: dict[str, Any] = {"size": file.tell()}
    except OSError as error:
        reason = str(error)[:_MAX_REASON]
        reply = SetupError(_SEND_STEP, error.errno or 0, reason, "request").to_json()
    except ValueError:  # a write beyond the end of the mapping
        reason = f"the snapshot has more than {size} bytes"
        reply = SetupError(_SEND_STEP, 0, reason, "request").to_json()
    channel.sendall(wire.pack(reply))


def restore(folders: Mapping[str, int], descriptor: int) -> None:
    """Fills empty folders with the snapshot in the owner's file, and closes the file.

    Raises:
        SetupError: A file cannot be written, or the stream is not a snapshot of these folders.
    """
    with open(descriptor, "rb") as file, step(_STEP, "request"):
        umask = os.umask(0)  # files are created with their final modes
        try:
            _unpack(file, folders)
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
            raise SetupError(_STEP, 0, f"the snapshot is malformed: {error}") from error
        finally:
            os.umask(umask)
            os.chdir("/")


class _Packer:
    """Writes all files below a root, which becomes the working folder, to a memory-mapped file."""

    def __init__(self, file: mmap.mmap, root: str, *, newest_first: bool) -> None:
        self._file = file
        self._root = root
        self._newest_first = newest_first
        self._first_names: dict[int, str] = {}  # of files with several names, by inode

    def pack(self, folder: int) -> None:
        top_info, pending_paths = os.fstat(folder), ["."]
        with contextlib.ExitStack() as cleanup:
            _open_up(folder, top_info, stat.S_IRWXU, cleanup)
            os.fchdir(folder)
            while pending_paths:
                path = pending_paths.pop()
                info = top_info if path == "." else os.lstat(path)
                if stat.S_ISDIR(info.st_mode):
                    _open_up(path, info, stat.S_IRWXU, cleanup)
                    names = os.listdir(path)
                    # The last pending entry is written first.
                    names = names if self._newest_first else names[::-1]
                    pending_paths += [f"{path}/{name}" for name in names]
                self._add(path, info)

    def _add(self, path: str, info: os.stat_result) -> None:
        kind = _KINDS.get(stat.S_IFMT(info.st_mode))
        if kind is None or (kind == _WHITEOUT and info.st_rdev):
            return
        target = ""
        if kind == _FOLDER:
            with contextlib.suppress(OSError):
                target = "opaque" if os.getxattr(path, OPAQUE) == b"y" else ""
        elif kind == _SYMLINK:
            target = os.readlink(path)
        elif kind != _WHITEOUT and info.st_nlink > 1:
            first = self._first_names.setdefault(info.st_ino, path)
            if first != path:
                kind, target = _HARD_LINK, first
        mode = stat.S_IMODE(info.st_mode)
        entry = Entry(self._root, path, kind, mode, info.st_mtime_ns, target)
        if kind == _FILE and info.st_size:
            self._add_file(entry, info)
        else:
            self._write(entry)

    def _add_file(self, entry: Entry, info: os.stat_result) -> None:
        with contextlib.ExitStack() as cleanup:
            _open_up(entry.path, info, stat.S_IRUSR, cleanup)
            descriptor = os.open(entry.path, _FLAGS)
            cleanup.callback(os.close, descriptor)
            extents: Sequence[Sequence[int]] = [(0, info.st_size)]
            if info.st_blocks * _STAT_BLOCK_BYTES < info.st_size:
                extents = list(_extents(descriptor, info.st_size))
            self._write(entry._replace(size=info.st_size, extents=extents))
            for offset, size in _chunks(extents):
                data = os.pread(descriptor, size, offset)
                if len(data) < size:
                    raise OSError(errno.EIO, "the file became shorter", entry.path)
                self._file.write(data)

    def _write(self, entry: Entry) -> None:
        self._file.write(json.dumps(entry).encode("ascii") + b"\n")


def _open_up(
    path: str | int, info: os.stat_result, needed_mode: int, cleanup: contextlib.ExitStack
) -> None:
    """Gives this process the ``needed_mode`` permissions on an entry until ``cleanup`` closes."""
    mode = stat.S_IMODE(info.st_mode)
    if mode & needed_mode != needed_mode:
        os.chmod(path, mode | needed_mode)
        cleanup.callback(os.chmod, path, mode)


def _extents(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """Yields the offsets and lengths of a file's data."""
    position = 0
    while position < size:
        try:
            start = os.lseek(descriptor, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return  # a hole to the end
        position = min(os.lseek(descriptor, start, os.SEEK_HOLE), size)
        yield start, position - start


def _chunks(extents: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
    """Yields the offsets and sizes of the chunks in which a file's data are copied."""
    for start, length in extents:
        for offset in range(start, start + length, _CHUNK_BYTES):
            yield offset, min(_CHUNK_BYTES, start + length - offset)


def _unpack(file: BinaryIO, folders: Mapping[str, int]) -> None:
    """Fills empty folders, named as in the entries, with the files of a snapshot.

    The stream is not trusted: an entry is created only in a folder that the stream created before,
    never through a symbolic link, and never in place of another entry.

    Raises:
        OSError: An entry could not be created, for example because the disk is full.
        ValueError, TypeError, LookupError, OverflowError, RecursionError: The stream is malformed,
            or names an unknown folder.
    """
    made_folders: dict[tuple[str, str], Entry] = {}
    current_root = None
    while (line := file.readline()) != _END:
        entry = Entry(*json.loads(line))
        if not (isinstance(entry.path, str) and isinstance(entry.target, str)):
            raise ValueError(f"malformed entry {line[:99]!r}")
        if entry.root != current_root:
            os.fchdir(folders[entry.root])
            current_root = entry.root
        if entry.path != ".":
            _require_parent(made_folders, entry.root, entry.path)
            _make(file, entry, made_folders)
        if entry.kind == _FOLDER:
            made_folders[entry.root, entry.path] = entry
    if missing_roots := [root for root in folders if (root, ".") not in made_folders]:
        raise ValueError(f"the stream lacks {' and '.join(missing_roots)}")
    # Folders last: new entries change a folder's time, and its mode may exclude this process.
    for entry in reversed(made_folders.values()):
        os.fchdir(folders[entry.root])
        if entry.target:
            os.setxattr(entry.path, OPAQUE, b"y")
        _set_time(entry.path, entry)
        os.chmod(entry.path, entry.mode & 0o7777)


def _require_parent(made_folders: Mapping[tuple[str, str], Entry], root: str, path: str) -> None:
    """Raises ValueError for an entry whose parent folder is not earlier in the stream."""
    parent, _, name = path.rpartition("/")
    if (root, parent) not in made_folders or name in ("", ".", ".."):
        raise ValueError(f"misplaced entry {path[:99]!r}")


def _make(file: BinaryIO, entry: Entry, made_folders: Mapping[tuple[str, str], Entry]) -> None:
    """Makes an entry in the current folder; `_unpack` sets the attributes of folders later."""
    path, kind, mode = entry.path, entry.kind, entry.mode & 0o7777
    if kind == _FILE:
        _make_file(file, entry, mode)
        return
    if kind == _FOLDER:
        os.mkdir(path, 0o700)
        return
    if kind == _HARD_LINK:
        _require_parent(made_folders, entry.root, entry.target)
        os.link(entry.target, path, follow_symlinks=False)
        return
    if kind == _SYMLINK:
        os.symlink(entry.target, path)
    elif kind == _FIFO:
        os.mkfifo(path, mode)
    elif kind == _WHITEOUT:
        os.mknod(path, stat.S_IFCHR | mode, 0)
    else:
        raise ValueError(f"unknown kind of entry {kind!r}")
    _set_time(path, entry)


def _make_file(file: BinaryIO, entry: Entry, mode: int) -> None:
    with open(entry.path, "xb", opener=lambda path, flags: os.open(path, flags, mode)) as target:
        for offset, size in _chunks(entry.extents):
            data = file.read(size)
            if len(data) < size:
                raise ValueError("the stream ends too early")
            target.seek(offset)
            target.write(data)
        target.truncate(entry.size)
        if mode & ~0o777:  # writing clears setuid and setgid
            os.chmod(target.fileno(), mode)
        _set_time(target.fileno(), entry)


def _set_time(path: str | int, entry: Entry) -> None:
    follows = isinstance(path, int)  # os.utime rejects follow_symlinks=False for a descriptor
    os.utime(path, ns=(entry.mtime_ns, entry.mtime_ns), follow_symlinks=follows)
