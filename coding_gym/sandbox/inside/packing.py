"""The snapshot of a sandbox: a tar of the folders that hold its changes, and files made from one.

No process of the sandbox runs meanwhile, so the tree is still. Sockets are no part of it, nor are
extended attributes but the overlay's mark of a folder that replaces one of a lower layer. A tree
with a path longer than the kernel takes has no snapshot.
"""

import contextlib
import errno
import mmap
import os
import socket
import stat
import tarfile
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from coding_gym.sandbox.inside import wire
from coding_gym.sandbox.inside.syscalls import SetupError, step

# A snapshot leaves no trace, not even a time of access.
_QUIETLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | getattr(os, "O_NOATIME", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_OPAQUE = "user.overlay.opaque"
_SIZE, _EXTENTS = "GNU.sparse.size", "GNU.sparse.map"
_STAT_BLOCK_BYTES = 512  # the unit of `st_blocks`, whatever the file system
_FORM: dict[str, Any] = {
    "format": tarfile.GNU_FORMAT,
    "encoding": "utf-8",
    "errors": "surrogateescape",
}
_END = "end"  # the last entry: tarfile takes a cut or damaged tar for a short one
_STEP = "restore the snapshot"
_KINDS = {
    stat.S_IFDIR: tarfile.DIRTYPE,
    stat.S_IFREG: tarfile.REGTYPE,
    stat.S_IFLNK: tarfile.SYMTYPE,
    stat.S_IFIFO: tarfile.FIFOTYPE,
    stat.S_IFCHR: tarfile.CHRTYPE,
}


class Changes(NamedTuple):
    """The folders that hold a sandbox's changes, below everything that is mounted on them.

    Attributes:
        folders: Names of places, and descriptors of their folders.
        newest_first: How the file system of the sandbox lists a folder. Entries are written in the
            order in which they must be made for a listing to repeat.
    """

    folders: Mapping[str, int]
    newest_first: bool


def opened(folders: Mapping[str, str], *, newest_first: bool) -> Changes:
    """Returns the folders at some paths, open for as long as this process lives."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    descriptors = {name: os.open(path, flags) for name, path in folders.items()}
    return Changes(folders=descriptors, newest_first=newest_first)


def send(changes: Changes, channel: socket.socket) -> None:
    """Writes all changes to the owner's file, and replies how long they are.

    Through a mapping: the limit on the size of files does not hold there.
    """
    descriptor = wire.receive_file(channel)
    size = os.fstat(descriptor).st_size
    try:
        with mmap.mmap(descriptor, 0) as file:
            os.close(descriptor)
            with tarfile.open(fileobj=file, mode="w", **_FORM) as tar:
                for place, folder in changes.folders.items():
                    _Packer(tar, place, newest_first=changes.newest_first).pack(folder)
                tar.addfile(tarfile.TarInfo(_END))
            reply: dict[str, Any] = {"size": file.tell()}
    except OSError as error:
        reply = {"error": f"no snapshot: {error}"}
    except ValueError:  # of the mapping
        reply = {"error": f"no snapshot: its changes are more than {size} bytes"}
    channel.sendall(wire.pack(reply))


def restore(folders: Mapping[str, int], channel: socket.socket) -> None:
    """Fills empty folders with a snapshot in a file of the owner's.

    Raises:
        SetupError: It does not fit, or is no snapshot of such a sandbox.
    """
    with open(wire.receive_file(channel), "rb") as file, step(_STEP):
        try:
            _unpack(file, folders)
        except (ValueError, KeyError, tarfile.TarError) as error:
            raise SetupError(_STEP, 0, f"it cannot be read: {error}") from error
        finally:
            os.chdir("/")


class _Packer:
    """Adds the folder of one place to a tar, from within that folder."""

    def __init__(self, tar: Any, place: str, *, newest_first: bool) -> None:
        self._tar = tar
        self._place = place
        self._newest_first = newest_first
        self._first_names: dict[int, str] = {}  # of files with several, by inode

    def pack(self, folder: int) -> None:
        own, waiting = os.fstat(folder), ["."]
        with contextlib.ExitStack() as undo:
            self._open_up(folder, own, stat.S_IRWXU, undo)
            os.fchdir(folder)
            while waiting:
                path = waiting.pop()
                facts = own if path == "." else os.lstat(path)
                if stat.S_ISDIR(facts.st_mode):
                    self._open_up(path, facts, stat.S_IRWXU, undo)
                    names = os.listdir(path)
                    waiting += (f"{path}/{name}" for name in self._in_reverse(names))
                self._add(path, facts)

    def _in_reverse(self, names: list[str]) -> list[str]:
        """Returns names of a folder, the one to make first last."""
        return names if self._newest_first else names[::-1]

    def _open_up(
        self, path: str | int, facts: os.stat_result, needed: int, undo: contextlib.ExitStack
    ) -> None:
        """Lets this process in until ``undo`` is closed."""
        mode = stat.S_IMODE(facts.st_mode)
        if mode & needed != needed:
            os.chmod(path, mode | needed)
            undo.callback(os.chmod, path, mode)

    def _add(self, path: str, facts: os.stat_result) -> None:
        kind = _KINDS.get(stat.S_IFMT(facts.st_mode))
        if kind is None or (kind == tarfile.CHRTYPE and facts.st_rdev):
            return
        info = tarfile.TarInfo(f"{self._place}/{path}")
        info.type, info.mode = kind, stat.S_IMODE(facts.st_mode)
        # Keywords for both would take as long again for each entry.
        info.mtime, nanoseconds = divmod(facts.st_mtime_ns, 10**9)
        info.uname = str(nanoseconds)
        if kind == tarfile.DIRTYPE:
            with contextlib.suppress(OSError):  # there is no mark
                info.gname = os.getxattr(path, _OPAQUE).decode()
        elif kind == tarfile.SYMTYPE:
            info.linkname = os.readlink(path)
        elif kind != tarfile.CHRTYPE and facts.st_nlink > 1:
            first = self._first_names.setdefault(facts.st_ino, info.name)
            if first != info.name:
                info.type, info.linkname = tarfile.LNKTYPE, first
        if info.type == tarfile.REGTYPE:
            self._add_file(path, facts, info)
        else:
            self._tar.addfile(info)
        self._tar.members = []  # else it keeps all of them

    def _add_file(self, path: str, facts: os.stat_result, info: tarfile.TarInfo) -> None:
        with contextlib.ExitStack() as undo:
            self._open_up(path, facts, stat.S_IRUSR, undo)
            file = undo.enter_context(open(os.open(path, _QUIETLY), "rb"))
            extents = [(0, facts.st_size)]
            if facts.st_blocks * _STAT_BLOCK_BYTES < facts.st_size:
                extents = list(_extents(file.fileno(), facts.st_size)) or [(facts.st_size, 0)]
                text = ",".join(f"{at},{size}" for at, size in extents)
                info.pax_headers = {_SIZE: str(facts.st_size), _EXTENTS: text}
            info.size = sum(size for _, size in extents)
            self._tar.format = tarfile.PAX_FORMAT if info.pax_headers else tarfile.GNU_FORMAT
            self._tar.addfile(info, _Parts(file, extents))


class _Parts:
    """The data of a file without its holes, as a file."""

    def __init__(self, file: BinaryIO, extents: list[tuple[int, int]]) -> None:
        self._file = file
        self._extents = extents[::-1]
        self._left = 0

    def read(self, size: int = -1) -> bytes:
        pieces = []
        while size:
            if not self._left:
                if not self._extents:
                    break
                start, self._left = self._extents.pop()
                self._file.seek(start)
                continue
            pieces.append(piece := self._file.read(min(size, self._left)))
            size, self._left = size - len(piece), self._left - len(piece)
        return b"".join(pieces)


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


def _unpack(file: BinaryIO, folders: Mapping[str, int]) -> None:
    """Fills empty folders, by the names of their places, with the files of a snapshot.

    The tar is not trusted: an entry is made in a folder that was made before, never through
    a symbolic link, and never in place of another.

    Raises:
        OSError: Something could not be made, as when the disk is full.
        ValueError, tarfile.TarError: The tar makes no sense, or names a place that is not there.
    """
    made: dict[str, _Attributes] = {}
    tar: Any  # mypy does not know its list of members
    with tarfile.open(fileobj=file, mode="r:", **_FORM) as tar:
        for info in tar:
            tar.members = []  # else it keeps all of them
            if info.name == _END:
                break
            place, _, path = info.name.partition("/")
            os.fchdir(folders[place])
            if path != ".":
                _require_made(made, info.name)
                _make(tar, info, path, made, place)
            if info.isdir():
                made[info.name] = _attributes(info)
        else:
            raise ValueError("it ends too early")
    if lacking := [place for place in folders if f"{place}/." not in made]:
        raise ValueError(f"it lacks {' and '.join(lacking)}")
    # What is made in a folder changes its times, and its mode may keep even its owner out.
    for name, attributes in reversed(made.items()):
        place, _, path = name.partition("/")
        os.fchdir(folders[place])
        _set_attributes(path, attributes)


class _Attributes(NamedTuple):
    mode: int
    mtime_ns: int
    opaque: bytes
    is_link: bool


def _attributes(info: tarfile.TarInfo) -> _Attributes:
    mtime_ns = int(info.mtime) * 10**9 + int(info.uname)
    return _Attributes(info.mode & 0o7777, mtime_ns, info.gname.encode(), info.issym())


def _require_made(made: Mapping[str, _Attributes], entry: str) -> None:
    """Raises ValueError for the name of an entry that is not in a folder made before."""
    above, _, name = entry.rpartition("/")
    if above not in made or name in ("", ".", ".."):
        raise ValueError(f"an entry named {entry[:99]!r}")


def _make(
    tar: Any,
    info: tarfile.TarInfo,
    path: str,
    made: Mapping[str, _Attributes],
    place: str,
) -> None:
    """Makes an entry at a path from here; folders get their attributes later."""
    if info.isdir():
        os.mkdir(path, 0o700)
        return
    if info.islnk():
        _require_made(made, info.linkname)
        os.link(info.linkname.removeprefix(f"{place}/"), path, follow_symlinks=False)
        return
    if info.isreg():
        os.close(os.open(path, _NEW, 0o600))
        tar.makefile(info, path)
    elif info.issym():
        os.symlink(info.linkname, path)
    elif info.isfifo():
        os.mkfifo(path)
    elif info.ischr() and not (info.devmajor or info.devminor):
        os.mknod(path, stat.S_IFCHR, 0)  # an overlay's mark for a removal
    else:
        raise ValueError(f"an entry of type {info.type!r}")
    _set_attributes(path, _attributes(info))


def _set_attributes(path: str, attributes: _Attributes) -> None:
    if attributes.opaque:
        os.setxattr(path, _OPAQUE, attributes.opaque)
    if not attributes.is_link:
        os.chmod(path, attributes.mode)
    os.utime(path, ns=(attributes.mtime_ns,) * 2, follow_symlinks=False)
