"""Unpacks one layer: `tarfile` reads the headers, everything that is made is made by `Placer`.

Names say what a layer removes of those below it (https://github.com/opencontainers/image-spec,
``layer.md``): an empty file ``.wh.NAME`` removes NAME, ``.wh..wh..opq`` all that the folder had.
An overlay wants a character device 0:0, and an extended attribute.
"""

import errno
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from coding_gym.errors import InvalidArgumentError, SandboxUnavailableError
from coding_gym.sandbox.images.stream import CHUNK_BYTES, LayerLimits, LayerStream
from coding_gym.sandbox.zygote.placing import (
    FOLDER_FLAGS,
    Attributes,
    Parts,
    Placer,
    fill,
    set_attributes,
    shown,
)

_ATTRIBUTE = "SCHILY.xattr."
# Only these mean nothing to the system; those of overlays mean something to the mount.
_KEPT_ATTRIBUTES, _OVERLAY_ATTRIBUTES = "user.", "user.overlay."
# No program in a sandbox could open a longer one; nobody nests folders deeper on purpose.
_MAX_PATH_CHARS, _MAX_PARTS = 4096, 256
# Later than what every file system can hold is as late as they can.
_MAX_SECONDS = 1 << 33
_REMOVAL, _OPAQUE = ".wh.", ".wh..wh..opq"
# Book-keeping of aufs, which removes nothing.
_RESERVED = ".wh..wh."
# What a name or an entry is to blame for, and not the disk.
_ODD = frozenset({errno.ENAMETOOLONG, errno.EINVAL, errno.EEXIST, errno.EISDIR, errno.ELOOP})
_UNABLE = frozenset({errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL})


class LayerUnpacker:
    """Unpacks a layer into a folder.

    What root could read and write, one user must be able to: the owner of folders gets all
    permissions, that of files may read and write. Set-user-id and set-group-id bits are dropped.

    Args:
        folder: An empty folder.
        owner: The uid and gid that everything gets.
        limits: Upper bounds.
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
        self._has_whiteouts = whiteouts
        self._num_bytes = 0
        self._num_entries = 0
        self._skipped: list[str] = []

    def unpack(self, stream: LayerStream) -> list[str]:
        """Unpacks all of a stream and verifies its digests.

        Returns:
            What a sandbox must not have and was left out, each with the reason: device nodes,
            FIFOs, extended attributes that are not a user's.

        Raises:
            InvalidArgumentError: The layer is hostile, broken or too large.
            SandboxUnavailableError: The folder's file system cannot hold an overlay's marks.
            OSError: The disk is full.
        """
        try:
            self._unpack(stream)
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
        return self._skipped

    def _unpack(self, stream: LayerStream) -> None:
        descriptor = os.open(self._folder, FOLDER_FLAGS)
        try:
            placer = Placer(descriptor, owner=self._owner, replaces=True)
        finally:
            os.close(descriptor)
        try:
            for member, data in self._members(stream):
                self._place(member, placer, data)
                if self._num_entries + placer.num_implied > self._limits.max_entries:
                    raise InvalidArgumentError(
                        f"it has more than {self._limits.max_entries} entries"
                    )
            placer.finish()
        finally:
            placer.close()

    def _members(self, stream: LayerStream) -> Iterator[tuple[tarfile.TarInfo, Any]]:
        """Yields entries with a file that can read their data and seek forwards."""
        with stream.header():
            file: Any = stream
            tar: Any = tarfile.open(  # noqa: SIM115 - it has nothing to close
                fileobj=file, mode="r|", bufsize=CHUNK_BYTES, encoding="utf-8"
            )
        while True:
            with stream.header():
                member = tar.next()
            if member is None:
                return
            tar.members.clear()  # it would keep all of them
            self._num_entries += 1
            yield member, tar.fileobj
            if tar.offset > self._limits.max_bytes:  # skipping what is not there takes as long
                raise InvalidArgumentError("it ends in the middle of a file")
            tar.fileobj.seek(tar.offset)

    def _place(self, member: tarfile.TarInfo, placer: Placer, data: Any) -> None:
        parts = _parts(member.name)
        if self._has_whiteouts and _remove(parts, member, placer):
            return
        if parts and not (member.isdir() or member.isreg() or member.issym() or member.islnk()):
            kind = "a FIFO" if member.isfifo() else "a device node" if member.isdev() else "unknown"
            self._skip(parts, kind)
            return
        placer.enter(parts[:-1])
        if member.isdir():
            if parts:
                placer.make_folder(parts[-1])
            placer.set_attributes(Attributes(member.mode & 0o1777 | 0o700, _times_ns(member)))
            self._set_xattrs(placer.here, parts, member)
        elif not parts:
            raise InvalidArgumentError(f"its root is an entry of type {member.type!r}")
        elif member.isreg():
            self._write(member, parts, placer, data)
        elif member.issym():
            placer.make_symlink(parts[-1], member.linkname, _times_ns(member))
        else:
            _link(parts, _parts(member.linkname), placer)

    def _write(self, member: tarfile.TarInfo, parts: Parts, placer: Placer, data: Any) -> None:
        self._num_bytes += max(member.size, 0)
        if member.size < 0 or self._num_bytes > self._limits.max_bytes:
            raise InvalidArgumentError(
                f"its files have more than {self._limits.max_bytes} bytes: {shown(parts)!r} alone "
                f"says {member.size}"
            )
        descriptor = placer.make_file(parts[-1])
        try:
            data.seek(member.offset_data)
            pieces: Any = member.sparse or [(0, member.size)]
            for offset, size in pieces:
                if not 0 <= offset <= offset + size <= member.size:
                    raise InvalidArgumentError(f"{shown(parts)!r} has holes that cannot be")
                fill(descriptor, offset, size, data.read)
            os.ftruncate(descriptor, member.size)
            self._set_xattrs(descriptor, parts, member)
            set_attributes(descriptor, Attributes(member.mode & 0o777 | 0o600, _times_ns(member)))
        finally:
            os.close(descriptor)

    def _set_xattrs(self, descriptor: int, parts: Parts, member: tarfile.TarInfo) -> None:
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
        self._skipped.append(f"{shown(parts)} ({reason})")


def unpack_tar(file: IO[bytes], folder: Path, owner: tuple[int, int]) -> None:
    """Unpacks a tar of anybody's into an empty folder; raises as `LayerUnpacker.unpack` does."""
    limits = LayerLimits()
    unpacker = LayerUnpacker(str(folder), owner, limits, whiteouts=False)
    unpacker.unpack(LayerStream(file, limits))


def _link(parts: Parts, target: Parts, placer: Placer) -> None:
    """Makes a second name of an entry that was made before."""
    if parts == target:
        return
    if not target or not placer.kind(target):
        raise InvalidArgumentError(
            f"{shown(parts)!r} is a hard link to {shown(target)!r}, which is no file of the layer"
        )
    folder = os.dup(placer.enter(target[:-1]))
    try:
        placer.enter(parts[:-1])
        placer.make_link(parts[-1], folder, target[-1])
    finally:
        os.close(folder)


def _remove(parts: Parts, member: tarfile.TarInfo, placer: Placer) -> bool:
    """Marks what an entry removes of lower layers; returns whether it is a removal.

    What the layer itself has of a name stays, whether it comes before or after.
    """
    if not any(part.startswith(_REMOVAL) for part in parts):
        return False
    *above, name = parts
    if any(part.startswith(_REMOVAL) for part in above):
        if not parts[0].startswith(_RESERVED):
            raise InvalidArgumentError(f"{shown(parts)!r} is below a name that only removes")
    elif name == _OPAQUE or not name.startswith(_RESERVED):
        if not (member.isreg() or member.islnk()) or member.size:
            raise InvalidArgumentError(f"{shown(parts)!r} removes something and is not empty")
        _mark((*above, name.removeprefix(_REMOVAL)), placer, is_opaque=name == _OPAQUE)
    return True


def _mark(parts: Parts, placer: Placer, *, is_opaque: bool) -> None:
    """Has an overlay hide what lower layers have at a path, or in the folder around it."""
    try:
        if is_opaque:
            placer.enter(parts[:-1])
            placer.mark_opaque()
        elif parts[-1] in {"", ".", ".."}:
            raise InvalidArgumentError(f"{shown(parts)!r} removes no name")
        elif placer.kind(parts) == stat.S_IFDIR:
            placer.enter(parts)
            placer.mark_opaque()
        else:
            placer.enter(parts[:-1])
            placer.remove(parts[-1])
    except OSError as error:
        if error.errno not in _UNABLE:
            raise
        raise SandboxUnavailableError(
            "the cache folder's file system cannot hold what image layers need (character "
            f"devices 0:0 and user extended attributes): {error}",
            "set XDG_CACHE_HOME to a folder on ext4, xfs, btrfs or a recent tmpfs",
        ) from error


def _times_ns(member: tarfile.TarInfo) -> tuple[int, int]:
    seconds = min(max(member.mtime, 0.0), _MAX_SECONDS)
    return (int(seconds * 1e9),) * 2


def _parts(name: str) -> Parts:
    """Returns the components of a path; one that begins with a slash means the same without."""
    parts = tuple(part for part in name.split("/") if part not in {"", "."})
    if len(name) > _MAX_PATH_CHARS or len(parts) > _MAX_PARTS:
        raise InvalidArgumentError(f"{shown(parts)!r} is longer than a path may be")
    if ".." in parts:
        raise InvalidArgumentError(f"{shown(parts)!r} leads out of it")
    return parts
