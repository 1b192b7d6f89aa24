"""The records of a tar as snapshots have them: a PAX header, a ustar header, then a file's data.

`tarfile` takes several times as long for each, and its memory would be copied into the first
process of every sandbox. The reader trusts nothing: a policy chose the names, the contents, and how
deep they nest.

Besides the standard keywords (``pax`` in POSIX) there are GNU's for holes, in form 0.1, Schily's
for extended attributes, and two of our own. ``CODING_GYM.shared`` is the number of leading folders
that an entry has in common with the entry before; long paths leave these out, so that the size of a
tar does not grow with the depth of its folders. ``CODING_GYM.socket`` marks a FIFO as a socket.
"""

import struct
from dataclasses import dataclass, field

from coding_gym.sandbox.zygote.chunks import ChunkReader
from coding_gym.sandbox.zygote.placing import Attributes

FILE, LINK, SYMLINK, DEVICE, FOLDER, FIFO, SOCKET = b"0", b"1", b"2", b"3", b"5", b"6", b"s"

_BLOCK_BYTES = 512
_EMPTY = bytes(_BLOCK_BYTES)
END = 2 * _EMPTY
_KINDS = frozenset((FILE, LINK, SYMLINK, DEVICE, FOLDER, FIFO))
_KEYWORDS = b"x"
_SHARED, _IS_SOCKET, _XATTR = b"CODING_GYM.shared", b"CODING_GYM.socket", b"SCHILY.xattr."
_EXTENTS, _SIZE_WITH_HOLES = b"GNU.sparse.map", b"GNU.sparse.size"
# path, mode, uid, gid, size, time, checksum, kind, target, magic, device
_HEADER = struct.Struct("100s8s8s8s12s12s8sc100s8s64x8s8s167x")
_NO_NUMBER, _NO_TIME, _NO_CHECKSUM, _MAGIC = b"0" * 7, b"0" * 11, b" " * 8, b"ustar\x0000"
_PATH_BYTES, _MAX_DIGITS = 100, 20
_MAX_MODE, _MAX_SIZE, _MAX_FIELD = 0o7777, (1 << 63) - 1, 8**11 - 1
_ACCESS_LISTS = frozenset({"system.posix_acl_access", "system.posix_acl_default"})

# Offsets and lengths.
Extents = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class Record:
    """One entry of a tar.

    Attributes:
        kind: One of the constants of this module.
        path: Where the entry is, without the folders that it shares with the entry before.
        num_shared: How many these are.
        target: Of a hard or symbolic link.
        attributes: All of a file or folder; of a symbolic link the times. A hard link has none.
        size: Of a file, holes included.
        extents: Where a file has its data, which follows the record.
    """

    kind: bytes
    path: bytes
    num_shared: int = 0
    target: bytes = b""
    attributes: Attributes = field(default_factory=lambda: Attributes(0, (0, 0)))
    size: int = 0
    extents: Extents = ()


def encode(record: Record) -> bytes:
    """Returns a record, without its data."""
    stored = num_stored(record)
    text = b""
    if len(record.path) > _PATH_BYTES:
        text += _line(b"path", record.path)
    if len(record.target) > _PATH_BYTES:
        text += _line(b"linkpath", record.target)
    if record.num_shared:
        text += _line(_SHARED, b"%d" % record.num_shared)
    if record.kind == SOCKET:
        text += _line(_IS_SOCKET, b"1")
    if record.kind != LINK:
        atime_ns, mtime_ns = record.attributes.times_ns
        text += _line(b"atime", _time(atime_ns)) + _line(b"mtime", _time(mtime_ns))
        for name, value in record.attributes.xattrs:
            text += _line(_xattr_keyword(name), value)
    if stored > _MAX_FIELD:
        text += _line(b"size", b"%d" % stored)
    if stored != record.size:
        text += _line(_SIZE_WITH_HOLES, b"%d" % record.size)
        text += _line(_EXTENTS, b",".join(b"%d,%d" % extent for extent in record.extents))
    kind = FIFO if record.kind == SOCKET else record.kind
    mode = record.attributes.mode
    header = _header(kind, record.path, mode, min(stored, _MAX_FIELD), record.target)
    if not text:
        return header
    return _header(_KEYWORDS, b"", 0, len(text), b"") + text + padding(len(text)) + header


def num_stored(record: Record) -> int:
    """Returns how many bytes of data a record has, without what fills their last block."""
    return sum(length for _, length in record.extents)


def padding(size: int) -> bytes:
    """Returns what follows so many bytes, up to the next block."""
    return bytes(-size % _BLOCK_BYTES)


def read(reader: ChunkReader) -> Record | None:
    """Reads a record, without its data; returns None at the end of the tar.

    Raises:
        ValueError: It is none.
    """
    keywords: dict[bytes, bytes] = {}
    kind, path, mode, stored, target = _parsed_header(reader.read(_BLOCK_BYTES))
    if kind == _KEYWORDS:
        filled = stored + len(padding(stored))
        data = reader.read(filled + _BLOCK_BYTES)
        keywords = _parsed_keywords(data[:stored])
        kind, path, mode, stored, target = _parsed_header(data[filled:])
    if not kind:
        if keywords or reader.read(_BLOCK_BYTES) != _EMPTY:
            raise ValueError("it ends in the middle")
        reader.finish()
        return None
    stored = int(keywords.get(b"size", stored))
    if kind not in _KINDS or stored < 0:
        raise ValueError(f"an entry that cannot be, of type {kind!r}")
    times_ns = _nanoseconds(keywords.get(b"atime")), _nanoseconds(keywords.get(b"mtime"))
    xattrs = [(_xattr_name(key), keywords[key]) for key in keywords if key.startswith(_XATTR)]
    has_map = _EXTENTS in keywords
    return Record(
        kind=SOCKET if kind == FIFO and _IS_SOCKET in keywords else kind,
        path=keywords.get(b"path", path),
        num_shared=int(keywords.get(_SHARED, 0)),
        target=keywords.get(b"linkpath", target),
        attributes=Attributes(mode, times_ns, tuple(xattrs)),
        size=int(keywords[_SIZE_WITH_HOLES]) if has_map else stored,
        extents=_extents(keywords, stored) if has_map else ((0, stored),),
    )


def is_kept(xattr: str) -> bool:
    """Whether an extended attribute is part of a snapshot: what a policy or the overlay may set."""
    return xattr.startswith("user.") or xattr in _ACCESS_LISTS


def _header(kind: bytes, path: bytes, mode: int, size: int, target: bytes) -> bytes:
    """Returns a ustar header; texts that are too long for it are cut."""
    block = _HEADER.pack(
        path,
        b"%07o" % mode,
        *(_NO_NUMBER, _NO_NUMBER),
        b"%011o" % size,
        *(_NO_TIME, _NO_CHECKSUM),
        kind,
        target,
        *(_MAGIC, _NO_NUMBER, _NO_NUMBER),
    )
    return b"%b%06o\0 %b" % (block[:148], _sum(block), block[156:])


def _parsed_header(block: bytes) -> tuple[bytes, bytes, int, int, bytes]:
    """Returns kind, path, mode, size and target of a ustar header; no kind for an empty block."""
    if block == _EMPTY:
        return b"", b"", 0, 0, b""
    path, mode, _, _, size, _, checksum, kind, target, *_ = _HEADER.unpack(block)
    if int(checksum[:6], 8) != _sum(block) - sum(checksum) + sum(_NO_CHECKSUM):
        raise ValueError("a record with a wrong checksum")
    numbers = int(mode[:7], 8), int(size[:11], 8)
    if not 0 <= numbers[0] <= _MAX_MODE or numbers[1] < 0:
        raise ValueError("a record with numbers that cannot be")
    return kind, path.partition(b"\0")[0], *numbers, target.partition(b"\0")[0]


def _sum(block: bytes) -> int:
    return sum(block.translate(None, b"\0"))  # much the faster where most are NUL


def _line(keyword: bytes, value: bytes) -> bytes:
    """Returns a line of a PAX header; the length with which it begins counts itself."""
    rest = b" %b=%b\n" % (keyword, value)
    num_digits = len(str(len(rest)))
    size = len(rest) + num_digits
    return b"%d%b" % (size + len(str(size)) - num_digits, rest)


def _parsed_keywords(text: bytes) -> dict[bytes, bytes]:
    """Returns the keywords of a PAX header."""
    keywords, start = {}, 0
    while start < len(text):
        digits = text[start : start + _MAX_DIGITS].partition(b" ")[0]
        end = start + int(digits)
        keyword, equals, value = text[start + len(digits) + 1 : end - 1].partition(b"=")
        if not start < end <= len(text) or not equals:
            raise ValueError("a keyword that cannot be")
        keywords[keyword] = value
        start = end
    return keywords


def _extents(keywords: dict[bytes, bytes], stored: int) -> Extents:
    """Returns where a file with holes has its data; raises ValueError for more than there is."""
    size = int(keywords.get(_SIZE_WITH_HOLES, -1))
    numbers = list(map(int, keywords[_EXTENTS].split(b",")))
    extents = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    is_within = all(0 <= start <= start + length <= size for start, length in extents)
    if not is_within or size > _MAX_SIZE or sum(numbers[1::2]) != stored:
        raise ValueError("data beyond the end of its file")
    return extents


def _time(nanoseconds: int) -> bytes:
    digits = b"%011d" % nanoseconds
    return b"%b.%b" % (digits[:-9], digits[-9:])


def _nanoseconds(text: bytes | None) -> int:
    if text is None:
        return 0
    if text[-10:-9] != b".":
        raise ValueError(f"a time that cannot be, {text[:30]!r}")
    return int(text.replace(b".", b""))


def _xattr_keyword(name: str) -> bytes:
    text = name.encode("utf-8", "surrogateescape")
    return _XATTR + text.replace(b"%", b"%25").replace(b"=", b"%3D")


def _xattr_name(keyword: bytes) -> str:
    text = keyword.removeprefix(_XATTR).replace(b"%3D", b"=").replace(b"%25", b"%")
    name = text.decode("utf-8", "surrogateescape")
    if not is_kept(name):
        raise ValueError(f"an extended attribute named {name!r}")
    return name
