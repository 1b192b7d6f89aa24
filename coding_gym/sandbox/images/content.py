"""The files of an image: a folder, or members of a tar."""

import contextlib
import gzip
import json
import posixpath
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Protocol

from coding_gym.errors import InvalidArgumentError

# Manifests and configurations; real ones have some kilobytes.
_MAX_DOCUMENT_BYTES = 8 << 20
_MAX_MEMBERS = 100_000
_MAX_LINKS = 8
_GZIP = b"\x1f\x8b"
# Errors of bytes that are no tar, or not compressed as they say.
_UNREADABLE = (
    *(tarfile.TarError, gzip.BadGzipFile, zlib.error),
    *(EOFError, RecursionError, ValueError, OverflowError),
)


class Content(Protocol):
    """Named files."""

    def open(self, name: str) -> IO[bytes] | None:
        """Returns a regular file, to be closed by the caller; None where there is no such file."""
        ...


class _FolderContent:
    """Files of a folder; its symlinks may lead to other files of it, and nowhere else."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    def open(self, name: str) -> IO[bytes] | None:
        try:
            path = (self._folder / name).resolve()
        except (ValueError, RuntimeError):  # no name that a file can have; links in a circle
            return None
        if not path.is_relative_to(self._folder) or not path.is_file():
            return None
        return path.open("rb")


class _Bounded:
    """A file that refuses reads of more bytes at once than a document may have.

    `tarfile` reads as many bytes of a header as the header itself says.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self.seek = file.seek
        self.tell = file.tell
        self.seekable = file.seekable

    def read(self, size: int) -> bytes:
        if not 0 <= size <= _MAX_DOCUMENT_BYTES:
            raise InvalidArgumentError(f"one of its headers says to have {size} bytes")
        data: bytes = self._file.read(size)
        return data


class _TarContent:
    """Members of a tar file."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._members: dict[str, tarfile.TarInfo] = {}
        while (member := tar.next()) is not None:
            self._members[_normal(member.name)] = member
            if len(self._members) > _MAX_MEMBERS:
                raise InvalidArgumentError(f"it holds more than {_MAX_MEMBERS} files")

    def open(self, name: str) -> IO[bytes] | None:
        for _ in range(_MAX_LINKS):  # older `docker save` links layers that are equal
            member = self._members.get(_normal(name))
            if member is None:
                return None
            if member.isreg():
                return self._tar.extractfile(member)
            if not (member.issym() or member.islnk()):
                return None
            above = posixpath.dirname(_normal(name)) if member.issym() else ""
            name = posixpath.join(above, member.linkname)
        return None


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Content]:
    """Yields the files of an image.

    Raises:
        InvalidArgumentError: There is nothing at the path, or it is no folder and no tar.
    """
    if path.is_dir():
        yield _FolderContent(path)
        return
    with path.open("rb") as file:
        is_packed = file.read(2) == _GZIP
        file.seek(0)
        plain: Any = _Bounded(gzip.GzipFile(fileobj=file) if is_packed else file)
        try:
            content = _TarContent(tarfile.TarFile(fileobj=plain, encoding="utf-8"))
        except _UNREADABLE as error:
            raise InvalidArgumentError(f"it is neither a tar nor a folder: {error}") from error
        yield content


def read_document(content: Content, name: str) -> bytes:
    """Returns the bytes of a small file.

    Raises:
        InvalidArgumentError: It is missing, or not small.
    """
    file = content.open(name)
    if file is None:
        raise InvalidArgumentError(f"it has no {name}")
    with file:
        data = file.read(_MAX_DOCUMENT_BYTES + 1)
    if len(data) > _MAX_DOCUMENT_BYTES:
        raise InvalidArgumentError(f"its {name} has more than {_MAX_DOCUMENT_BYTES} bytes")
    return data


def parse(data: bytes, name: str) -> Any:
    """Returns the JSON value of a document; raises InvalidArgumentError where it is not JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"its {name} is not JSON: {error}") from error


def _normal(name: str) -> str:
    return posixpath.normpath(name).lstrip("/")
