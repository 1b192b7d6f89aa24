"""Unpacks one layer: `tarfile` reads the headers, `Placer` makes the files.

Names say what a layer removes of those below it (https://github.com/opencontainers/image-spec,
``layer.md``): an empty file ``.wh.NAME`` removes NAME, ``.wh..wh..opq`` all that the folder had.
An overlay wants a character device 0:0, and an extended attribute.
"""

import errno
import gzip
import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from coding_gym.errors import (
    InvalidArgumentError,
    MissingDependencyError,
    SandboxUnavailableError,
)
from coding_gym.optional import import_optional
from coding_gym.sandbox.inside.placing import (
    FILE,
    FOLDER,
    FOLDER_FLAGS,
    SYMLINK,
    Attributes,
    Parts,
    Placer,
    Record,
    display_path,
)

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_CHUNK_BYTES = 1 << 18
# Bounds on what one layer may unpack to: the size of the tar, and of all its files, holes included;
# and the number of its entries of any kind.
MAX_BYTES, MAX_ENTRIES = 64 << 30, 2_000_000
# The paths of removals stay in memory up to the end of the layer.
MAX_REMOVAL_CHARS = 64 << 20
# No header of a real archive comes near: a path and some attributes.
_MAX_HEADER_BYTES = 4 << 20
# No program in a sandbox could open a longer path; no real image nests folders deeper.
_MAX_PATH_CHARS, _MAX_PARTS = 4096, 256
# Later times are cut to this one, which every file system can hold.
_MAX_SECONDS = 1 << 33
_ATTRIBUTE = "SCHILY.xattr."
# Only these mean nothing to the system; those of overlays mean something to the mount.
_KEPT_ATTRIBUTES, _OVERLAY_ATTRIBUTES = "user.", "user.overlay."
_REMOVAL, _OPAQUE = ".wh.", ".wh..wh..opq"
# Book-keeping of aufs, which removes nothing.
_RESERVED = ".wh..wh."
# Errors caused by a name or an entry, not by the disk.
_ODD = frozenset({errno.ENAMETOOLONG, errno.EINVAL, errno.EEXIST, errno.EISDIR, errno.ELOOP})
_UNABLE = frozenset({errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL})


def unpack_layer(
    file: IO[bytes], folder: Path, owner: tuple[int, int], *, digest: str = "", diff_id: str = ""
) -> list[str]:
    """Unpacks a layer into a folder.

    One user must be able to read and write all that root could: the owner of folders gets all
    permissions, that of files may read and write. Set-user-id and set-group-id bits are dropped.

    Args:
        file: The layer as it lies in the image; it can seek.
        folder: An empty folder.
        owner: The uid and gid of everything that is made.
        digest: The digest that the file must have; "" for any.
        diff_id: The digest that the uncompressed tar must have; "" for any.

    Returns:
        Entries and attributes that a sandbox must not have and that were left out, each with the
        reason: device nodes, FIFOs, extended attributes that are not a user's.

    Raises:
        InvalidArgumentError: The layer is hostile, broken, too large, or compressed in a way that
            cannot be read here.
        SandboxUnavailableError: The folder's file system cannot hold an overlay's marks.
        OSError: The disk is full.
    """
    return _unpack(_LayerStream(file, digest, diff_id), folder, owner, has_removals=True)


def unpack_tar(file: IO[bytes], folder: Path, owner: tuple[int, int]) -> None:
    """Unpacks a tar from any source as `unpack_layer` does; no name in it removes anything."""
    _unpack(_LayerStream(file, "", ""), folder, owner, has_removals=False)


class _Digested:
    """A file that is read once from front to back and digested."""

    def __init__(self, file: Any, digest: str) -> None:
        self._file = file
        self._wanted = digest
        self._hash = hashlib.new(digest.partition(":")[0] or "sha256")

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._file.read(size)
        if self._wanted:
            self._hash.update(data)
        return data

    def finish(self) -> None:
        """Reads to the end and compares the digests."""
        while self.read(_CHUNK_BYTES):
            pass
        found = f"{self._hash.name}:{self._hash.hexdigest()}"
        if self._wanted and found != self._wanted:
            raise InvalidArgumentError(f"its bytes have the digest {found}, not {self._wanted}")


class _LayerStream:
    """A layer's tar for `tarfile`, from front to back: uncompressed, bounded and digested."""

    def __init__(self, file: IO[bytes], digest: str, diff_id: str) -> None:
        magic = file.read(len(_ZSTD))
        file.seek(0)
        self._file = _Digested(file, digest)
        self._plain = _Digested(_uncompressed(self._file, magic), diff_id)
        self._limit = MAX_BYTES
        self._position = 0

    def bound(self, num_bytes: int) -> None:
        """Bounds the reads that follow; `tarfile` reads as much as a header says that it has."""
        self._limit = min(MAX_BYTES, self._position + num_bytes)

    def read(self, size: int) -> bytes:
        """Returns so many bytes, fewer at the end.

        Raises:
            InvalidArgumentError: They are above the bound, or cannot be uncompressed.
        """
        try:
            data = self._plain.read(min(size, self._limit - self._position + 1))
        except Exception as error:  # of whichever library uncompresses
            raise InvalidArgumentError(f"it cannot be uncompressed: {error}") from error
        self._position += len(data)
        if self._position > MAX_BYTES:
            raise InvalidArgumentError(f"it unpacks to more than {MAX_BYTES} bytes")
        if self._position > self._limit:
            raise InvalidArgumentError(f"one of its headers is above {_MAX_HEADER_BYTES} bytes")
        return data

    def tell(self) -> int:
        """Returns the number of bytes that were read."""
        return self._position

    def seek(self, position: int) -> None:
        """Reads up to a position; raises InvalidArgumentError where there is none ahead."""
        if not self._position <= position <= MAX_BYTES:
            raise InvalidArgumentError("it ends in the middle of a file")
        while self._position < position:
            if not self.read(min(position - self._position, _CHUNK_BYTES)):
                raise InvalidArgumentError("it ends in the middle of a file")

    def finish(self) -> None:
        """Reads to the end; raises InvalidArgumentError where a digest is another."""
        while self.read(_CHUNK_BYTES):
            pass
        self._plain.finish()
        self._file.finish()


def _uncompressed(file: _Digested, magic: bytes) -> Any:
    """Returns a file object that gives the tar."""
    if magic.startswith(_GZIP):
        reads_only: Any = file
        return gzip.GzipFile(fileobj=reads_only, mode="rb")
    if magic != _ZSTD:
        return file
    try:
        zstandard = import_optional("zstandard", "zstandard")
    except MissingDependencyError as error:
        raise InvalidArgumentError(
            f"it is compressed with zstd, and {error}; or load the image into Docker and write it "
            "with `docker save`"
        ) from error
    decompressor = zstandard.ZstdDecompressor()
    return io.BufferedReader(decompressor.stream_reader(file, read_across_frames=True))


def _unpack(
    stream: _LayerStream, folder: Path, owner: tuple[int, int], *, has_removals: bool
) -> list[str]:
    descriptor = os.open(folder, FOLDER_FLAGS)
    try:
        placer = Placer(descriptor, owner=owner, replaces=True)
    finally:
        os.close(descriptor)
    try:
        unpacker = _Unpacker(placer, has_removals=has_removals)
        unpacker.unpack(stream)
        placer.finish()
        stream.finish()
    except (tarfile.TarError, EOFError, OverflowError, RecursionError) as error:
        raise InvalidArgumentError(f"it is no tar that can be read: {error}") from error
    except OSError as error:
        if error.errno not in _ODD:
            raise
        raise InvalidArgumentError(f"it cannot be unpacked: {error}") from error
    except InvalidArgumentError:
        raise
    except ValueError as error:  # an entry that cannot be, or a number or name that is none
        raise InvalidArgumentError(f"it is malformed: {error}") from error
    finally:
        placer.close()
    return unpacker.skipped


class _Unpacker:
    """Makes the entries of one tar, and keeps count of them."""

    def __init__(self, placer: Placer, *, has_removals: bool) -> None:
        self._placer = placer
        self._has_removals = has_removals
        self._num_bytes = 0
        self._num_entries = 0
        self._removals: list[str] = []
        self._num_removal_chars = 0
        self.skipped: list[str] = []

    def unpack(self, stream: _LayerStream) -> None:
        for member in self._members(stream):
            self._place(member, stream)
            self._check_count()
        # The entries of the layer itself stay, whether they come before or after a removal.
        # A removal below another one's name needs a folder there, and comes first.
        for path in sorted(self._removals, key=lambda path: path.count("/"), reverse=True):
            self._remove(tuple(path.split("/")))
            self._check_count()

    def _members(self, stream: _LayerStream) -> Iterator[tarfile.TarInfo]:
        """Yields entries, and skips the rest of their data."""
        stream.bound(_MAX_HEADER_BYTES)
        file: Any = stream
        tar: Any = tarfile.TarFile(fileobj=file, encoding="utf-8")  # it has nothing to close
        while (member := tar.next()) is not None:
            stream.bound(MAX_BYTES)
            tar.members.clear()  # it would keep all of them
            self._num_entries += 1
            yield member
            stream.seek(tar.offset)
            stream.bound(_MAX_HEADER_BYTES)

    def _check_count(self) -> None:
        # An entry that is left out counts twice; each of its attributes may be.
        if self._num_entries + self._placer.num_implied + len(self.skipped) > MAX_ENTRIES:
            raise InvalidArgumentError(f"it has more than {MAX_ENTRIES} entries")

    def _place(self, member: tarfile.TarInfo, stream: _LayerStream) -> None:
        parts = _parts(member.name)
        if self._has_removals and any(part.startswith(_REMOVAL) for part in parts):
            self._note_removal(parts, member)
        elif member.islnk():
            _link(parts, _parts(member.linkname), self._placer)
        elif member.isdir() or member.isreg() or member.issym():
            self._make(parts, member, stream)
        else:
            kind = "a FIFO" if member.isfifo() else "a device node" if member.isdev() else "unknown"
            self._skip(parts, kind)

    def _make(self, parts: Parts, member: tarfile.TarInfo, stream: _LayerStream) -> None:
        """Makes a file, folder or symbolic link."""
        times_ns = (int(min(max(member.mtime, 0.0), _MAX_SECONDS) * 1e9),) * 2
        if member.isdir():
            record = Record(FOLDER, attributes=Attributes(member.mode & 0o1777 | 0o700, times_ns))
        elif member.issym():
            target = os.fsencode(member.linkname)
            record = Record(SYMLINK, attributes=Attributes(0, times_ns), target=target)
        else:
            record = Record(FILE, attributes=Attributes(member.mode & 0o777 | 0o600, times_ns))
            self._add_data(record, parts, member)
            stream.seek(member.offset_data)
        self._placer.make(parts, record, stream.read)
        here = self._placer.here
        if member.isdir():
            self._set_xattrs(here, parts, member)
        elif member.isreg():
            self._set_xattrs(f"/proc/self/fd/{here}/{parts[-1]}", parts, member)

    def _add_data(self, record: Record, parts: Parts, member: tarfile.TarInfo) -> None:
        """Completes the record of a file."""
        self._num_bytes += max(member.size, 0)
        if member.size < 0 or self._num_bytes > MAX_BYTES:
            raise InvalidArgumentError(
                f"its files have more than {MAX_BYTES} bytes: {display_path(parts)!r} alone says "
                f"{member.size}"
            )
        sparse: Any = member.sparse
        record.size, record.extents = member.size, sparse
        if not all(0 <= start <= start + length <= member.size for start, length in record.data):
            raise InvalidArgumentError(f"{display_path(parts)!r} has holes that cannot be")

    def _set_xattrs(self, made: str | int, parts: Parts, member: tarfile.TarInfo) -> None:
        for key, text in member.pax_headers.items():
            name = key.removeprefix(_ATTRIBUTE)
            if name == key:
                continue
            if not name.startswith(_KEPT_ATTRIBUTES) or name.startswith(_OVERLAY_ATTRIBUTES):
                self._skip(parts, f"attribute {name[:40]}")
                continue
            try:
                os.setxattr(made, name, text.encode("utf-8", "surrogateescape"))
            except OSError as error:  # more, or longer, than this file system takes
                self._skip(parts, f"attribute {name[:40]}: {error.strerror}")

    def _skip(self, parts: Parts, reason: str) -> None:
        self.skipped.append(f"{display_path(parts)} ({reason})")

    def _note_removal(self, parts: Parts, member: tarfile.TarInfo) -> None:
        """Checks and remembers an entry that removes something of lower layers."""
        *above, name = parts
        if any(part.startswith(_REMOVAL) for part in above):
            if not parts[0].startswith(_RESERVED):
                raise InvalidArgumentError(
                    f"{display_path(parts)!r} is below a name that only removes"
                )
        elif name == _OPAQUE or not name.startswith(_RESERVED):
            if not (member.isreg() or member.islnk()) or member.size:
                raise InvalidArgumentError(
                    f"{display_path(parts)!r} removes something and is not empty"
                )
            if name.removeprefix(_REMOVAL) in {"", ".", ".."}:
                raise InvalidArgumentError(f"{display_path(parts)!r} removes no name")
            self._removals.append("/".join(parts))
            self._num_removal_chars += len(self._removals[-1])
            if self._num_removal_chars > MAX_REMOVAL_CHARS:
                raise InvalidArgumentError(
                    f"the paths that it removes have more than {MAX_REMOVAL_CHARS} characters"
                )

    def _remove(self, parts: Parts) -> None:
        """Has an overlay hide the entries of lower layers that an entry removes."""
        *above, name = parts
        try:
            if name == _OPAQUE:
                self._placer.enter(above)
                self._placer.mark_opaque()
            else:
                self._placer.hide((*above, name.removeprefix(_REMOVAL)))
        except OSError as error:
            if error.errno not in _UNABLE:
                raise
            raise SandboxUnavailableError(
                "the cache folder's file system cannot hold what image layers need (character "
                f"devices 0:0 and user extended attributes): {error}",
                "set XDG_CACHE_HOME to a folder on ext4, xfs, btrfs or a recent tmpfs",
            ) from error


def _link(parts: Parts, target: Parts, placer: Placer) -> None:
    """Makes a second name of an entry that was made before."""
    if not parts or not target:
        raise InvalidArgumentError(
            f"a hard link from {display_path(parts)!r} to {display_path(target)!r}"
        )
    if parts != target:
        folder = os.dup(placer.enter(target[:-1]))
        try:
            placer.make_link(parts, folder, target[-1])
        finally:
            os.close(folder)


def _parts(name: str) -> Parts:
    """Returns the components of a path; one that begins with a slash means the same without."""
    parts = tuple(part for part in name.split("/") if part not in {"", "."})
    if len(name) > _MAX_PATH_CHARS or len(parts) > _MAX_PARTS:
        raise InvalidArgumentError(f"{display_path(parts)!r} is longer than a path may be")
    if ".." in parts:
        raise InvalidArgumentError(f"{display_path(parts)!r} leads out of it")
    return parts
