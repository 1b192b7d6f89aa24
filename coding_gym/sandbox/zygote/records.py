"""The form in which a snapshot describes files: one record per entry, folders before their content.

A record is a fixed head, the name, extended attributes, and for a file its data: extents of an
offset, a length and so many bytes, ended by an empty one, so that holes stay holes. Whoever reads
it trusts nothing: a policy chose the names, the contents, and how deep they nest.
"""

import struct
from dataclasses import dataclass

from coding_gym.sandbox.zygote.chunks import ChunkReader, ChunkWriter

MAGIC = b"coding_gym changes 1\n"

PLACE, FOLDER, UP, FILE, SYMLINK, FIFO, SOCKET, WHITEOUT, HARD_LINK, END = range(10)

# kind, permissions, length of the name, number of extended attributes, number of the inode among
# those with several names (0: it has one), how many names, size, times of access and change.
_HEAD = struct.Struct("<BHHHIIQqIqI")
_SECOND_NS = 10**9
_XATTR = struct.Struct("<HI")
_EXTENT = struct.Struct("<QQ")
_MAX_MODE = 0o7777
_MAX_SIZE = (1 << 63) - 1
_MAX_NAME_BYTES = 255
_MAX_XATTR_BYTES = 1 << 16
_MAX_TARGET_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One entry of a folder, or a step of the way: the name of a place, back up, the end.

    Attributes:
        kind: One of the constants of this module.
        name: What the entry is called.
        mode: Its permissions.
        inode: A number that names of one file share; 0 where this is its only name.
        num_names: How many names the file had, of which this snapshot may hold fewer.
        size: Of a file, in bytes; of a symlink's target.
        times_ns: When it was last read and changed.
        xattrs: Extended attributes.
    """

    kind: int
    name: bytes = b""
    mode: int = 0
    inode: int = 0
    num_names: int = 0
    size: int = 0
    times_ns: tuple[int, int] = (0, 0)
    xattrs: tuple[tuple[str, bytes], ...] = ()


def write(writer: ChunkWriter, record: Record) -> None:
    """Writes one record, without a file's data or a symlink's target."""
    writer.write(
        _HEAD.pack(
            record.kind,
            record.mode,
            len(record.name),
            len(record.xattrs),
            record.inode,
            record.num_names,
            record.size,
            *divmod(record.times_ns[0], _SECOND_NS),
            *divmod(record.times_ns[1], _SECOND_NS),
        )
        + record.name
    )
    for name, value in record.xattrs:
        encoded = name.encode("utf-8", "surrogateescape")
        writer.write(_XATTR.pack(len(encoded), len(value)) + encoded + value)


def read(reader: ChunkReader) -> Record:
    """Reads one record.

    Raises:
        ValueError: Not a record.
    """
    head = _HEAD.unpack(reader.read(_HEAD.size))
    kind, mode, name_size, num_xattrs, inode, num_names, size = head[:7]
    read_s, read_ns, changed_s, changed_ns = head[7:]
    if kind > END or mode > _MAX_MODE or size > _MAX_SIZE or max(read_ns, changed_ns) >= _SECOND_NS:
        raise ValueError("a record that cannot be")
    return Record(
        kind=kind,
        name=_checked_name(reader.read(name_size)) if name_size else b"",
        mode=mode,
        inode=inode,
        num_names=num_names,
        size=size,
        times_ns=(read_s * _SECOND_NS + read_ns, changed_s * _SECOND_NS + changed_ns),
        xattrs=tuple(_read_xattr(reader) for _ in range(num_xattrs)),
    )


def write_extent(writer: ChunkWriter, offset: int, size: int) -> None:
    """Announces ``size`` bytes of a file; none ends the file."""
    writer.write(_EXTENT.pack(offset, size))


def read_extent(reader: ChunkReader, file_size: int) -> tuple[int, int]:
    """Returns where the next bytes of a file go and how many they are; 0 at its end.

    Raises:
        ValueError: They are not within the file.
    """
    offset, size = _EXTENT.unpack(reader.read(_EXTENT.size))
    if offset + size > file_size:
        raise ValueError("data beyond the end of its file")
    return offset, size


def read_target(reader: ChunkReader, record: Record) -> bytes:
    """Returns the target of a symlink.

    Raises:
        ValueError: No symlink can have it.
    """
    if not 0 < record.size < _MAX_TARGET_BYTES:
        raise ValueError("a symlink to nowhere")
    target = reader.read(record.size)
    if b"\0" in target:
        raise ValueError("a symlink whose target holds a NUL")
    return target


def _read_xattr(reader: ChunkReader) -> tuple[str, bytes]:
    name_size, value_size = _XATTR.unpack(reader.read(_XATTR.size))
    if name_size > _MAX_NAME_BYTES or value_size > _MAX_XATTR_BYTES:
        raise ValueError("too long an extended attribute")
    name = reader.read(name_size).decode("utf-8", "surrogateescape")
    if not is_kept(name) or "\0" in name:
        raise ValueError(f"an extended attribute named {name!r}")
    return name, reader.read(value_size)


def is_kept(xattr: str) -> bool:
    """Whether an extended attribute is part of a snapshot: what a policy or the overlay may set."""
    return xattr.startswith("user.") or xattr in _ACCESS_LISTS


_ACCESS_LISTS = frozenset({"system.posix_acl_access", "system.posix_acl_default"})


def _checked_name(name: bytes) -> bytes:
    if len(name) > _MAX_NAME_BYTES or b"/" in name or b"\0" in name or name in (b".", b".."):
        raise ValueError(f"an entry named {name[:_MAX_NAME_BYTES]!r}")
    return name
