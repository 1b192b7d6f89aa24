"""Unpacks one layer: `tarfile` reads the headers, everything that is made is made by `Placer`."""

import errno
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.images.new_file import NewFile
from coding_gym.sandbox.images.placing import Parts, Placer, shown
from coding_gym.sandbox.images.stream import LayerLimits, LayerStream
from coding_gym.sandbox.images.whiteouts import Whiteouts

_CHUNK_BYTES = 1 << 20
_ATTRIBUTE = "SCHILY.xattr."
# Only these mean nothing to the system; those of overlays mean something to the mount.
_KEPT_ATTRIBUTES, _OVERLAY_ATTRIBUTES = "user.", "user.overlay."
# No program in a sandbox could open a longer one; nobody nests folders deeper on purpose.
_MAX_PATH_CHARS, _MAX_PARTS = 4096, 256
# What a name or an entry is to blame for, and not the disk.
_ODD = frozenset({errno.ENAMETOOLONG, errno.EINVAL, errno.EEXIST, errno.EISDIR, errno.ELOOP})


@dataclass
class Unpacked:
    """What became of a layer's entries.

    Attributes:
        num_entries: How many there were.
        skipped: Those that a sandbox must not have, each with the reason: device nodes, FIFOs,
            extended attributes that are not a user's.
    """

    num_entries: int = 0
    skipped: list[str] = field(default_factory=list)


class LayerUnpacker:
    """Unpacks a layer into a folder.

    Args:
        folder: Where to, empty.
        owner: The uid and gid that everything gets.
        limits: What is too much.
        whiteouts: Whether names that begin with ``.wh.`` remove what lower layers have.
    """

    def __init__(
        self,
        folder: str,
        owner: tuple[int, int],
        limits: LayerLimits | None = None,
        *,
        whiteouts: bool = True,
    ) -> None:
        self._folder = folder
        self._owner = owner
        self._limits = limits or LayerLimits()
        self._whiteouts = Whiteouts() if whiteouts else None
        self._num_bytes = 0
        self._done = Unpacked()

    def unpack(self, stream: LayerStream) -> Unpacked:
        """Unpacks all of a stream and verifies its digests.

        Raises:
            InvalidArgumentError: The layer is hostile, broken or too large.
            SandboxUnavailableError: The folder's file system cannot hold an overlay's marks.
            OSError: The disk is full.
        """
        try:
            with Placer(self._folder, self._owner) as placer:
                for member in self._members(stream):
                    self._place(member, placer, stream)
                    self._check_count(placer)
                if self._whiteouts is not None:
                    for _ in self._whiteouts.apply(placer):
                        self._check_count(placer)
                placer.settle()
            stream.finish()
        except (tarfile.TarError, EOFError, OverflowError, RecursionError) as error:
            raise InvalidArgumentError(f"it is no tar that can be read: {error}") from error
        except OSError as error:
            if error.errno not in _ODD:
                raise
            raise InvalidArgumentError(f"it cannot be unpacked: {error}") from error
        except InvalidArgumentError:
            raise
        except ValueError as error:  # a number or name that is none, from `tarfile` or the system
            raise InvalidArgumentError(f"it is malformed: {error}") from error
        return self._done

    def _check_count(self, placer: Placer) -> None:
        if self._done.num_entries + placer.num_implied > self._limits.max_entries:
            raise InvalidArgumentError(f"it has more than {self._limits.max_entries} entries")

    def _members(self, stream: LayerStream) -> Iterator[tarfile.TarInfo]:
        stream.begin_header()
        tar: Any = tarfile.TarFile(fileobj=stream, mode="r", encoding="utf-8")
        while (member := tar.next()) is not None:
            stream.end_header()
            tar.members.clear()  # it would keep all of them
            self._done.num_entries += 1
            yield member
            stream.begin_header()
        stream.end_header()

    def _place(self, member: tarfile.TarInfo, placer: Placer, stream: LayerStream) -> None:
        parts = _parts(member.name)
        if self._whiteouts is not None and self._whiteouts.take(parts, member):
            return
        if member.isdir():
            here = placer.make_folder(parts, member.mode, member.mtime)
            self._set_attributes(here, parts, member)
        elif not parts:
            raise InvalidArgumentError(f"its root is an entry of type {member.type!r}")
        elif member.isreg():
            self._write(member, parts, placer, stream)
        elif member.issym():
            placer.make_symlink(parts, member.linkname, member.mtime)
        elif member.islnk():
            placer.make_link(parts, _parts(member.linkname))
        else:
            kind = "a FIFO" if member.isfifo() else "a device node" if member.isdev() else "unknown"
            self._skip(parts, kind)

    def _write(
        self, member: tarfile.TarInfo, parts: Parts, placer: Placer, stream: LayerStream
    ) -> None:
        self._num_bytes += max(member.size, 0)
        if member.size < 0 or self._num_bytes > self._limits.max_bytes:
            raise InvalidArgumentError(
                f"its files have more than {self._limits.max_bytes} bytes: {shown(parts)!r} alone "
                f"says {member.size}"
            )
        file = placer.make_file(parts, member.mode, member.mtime)
        try:
            stream.seek(member.offset_data)
            pieces: Any = member.sparse or [(0, member.size)]
            for offset, size in pieces:
                if not 0 <= offset <= offset + size <= member.size:
                    raise InvalidArgumentError(f"{shown(parts)!r} has holes that cannot be")
                _copy(stream, file, offset, size)
            file.finish(member.size)
            self._set_attributes(file.descriptor, parts, member)
        finally:
            file.close()

    def _set_attributes(self, descriptor: int, parts: Parts, member: tarfile.TarInfo) -> None:
        for key, text in member.pax_headers.items():
            name = key.removeprefix(_ATTRIBUTE)
            if name == key:
                continue
            if not name.startswith(_KEPT_ATTRIBUTES) or name.startswith(_OVERLAY_ATTRIBUTES):
                self._skip(parts, f"attribute {name[:40]}")
                continue
            try:
                os.setxattr(descriptor, name, text.encode("utf-8", "surrogateescape"))
            except OSError as error:  # more, or longer, than this file system takes
                self._skip(parts, f"attribute {name[:40]}: {error.strerror}")

    def _skip(self, parts: Parts, reason: str) -> None:
        self._done.skipped.append(f"{shown(parts)} ({reason})")


def unpack_tar(file: IO[bytes], folder: Path, owner: tuple[int, int]) -> Unpacked:
    """Unpacks a tar of anybody's into an empty folder; raises as `LayerUnpacker.unpack` does."""
    limits = LayerLimits()
    unpacker = LayerUnpacker(str(folder), owner, limits, whiteouts=False)
    return unpacker.unpack(LayerStream(file, limits))


def _copy(stream: LayerStream, file: NewFile, offset: int, size: int) -> None:
    while size:
        data = stream.read(min(size, _CHUNK_BYTES))
        if not data:
            raise InvalidArgumentError("it ends in the middle of a file")
        file.write(data, offset)
        offset, size = offset + len(data), size - len(data)


def _parts(name: str) -> Parts:
    """Returns the components of a path; one that begins with a slash means the same without."""
    parts = tuple(part for part in name.split("/") if part not in {"", "."})
    if len(name) > _MAX_PATH_CHARS or len(parts) > _MAX_PARTS:
        raise InvalidArgumentError(f"{shown(parts)!r} is longer than a path may be")
    if ".." in parts:
        raise InvalidArgumentError(f"{shown(parts)!r} leads out of it")
    return parts
