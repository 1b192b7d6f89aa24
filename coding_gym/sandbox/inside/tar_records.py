"""The records of a snapshot's tar: a PAX header, a ustar header, then a file's data.

`tarfile` takes several times as long for each, and its memory would be copied into the first
process of every sandbox. The reader trusts nothing: a policy chose the names, the contents, and how
deep they nest.

Besides the standard keywords (``pax`` in POSIX) there are GNU's for holes, in form 0.1, Schily's
for extended attributes, and two of our own. ``CODING_GYM.shared`` is the number of leading folders
that an entry has in common with the entry before; long paths leave these out, so that the size of a
tar does not grow with the depth of its folders. ``CODING_GYM.socket`` marks a FIFO as a socket.
"""

import struct
from functools import lru_cache

from coding_gym.sandbox.inside.placing import FIFO, LINK, SOCKET, Attributes, Extents, Record
from coding_gym.sandbox.inside.wire import ChunkReader

BLOCK_BYTES = 512
_EMPTY = bytes(BLOCK_BYTES)
END = 2 * _EMPTY
_KEYWORDS = b"x"
_SHARED, _IS_SOCKET, _XATTR = b"CODING_GYM.shared", b"CODING_GYM.socket", b"SCHILY.xattr."
_EXTENTS, _SIZE_WITH_HOLES = b"GNU.sparse.map", b"GNU.sparse.size"
# Numbers as wide as the largest of them, so that the length of the lines is known.
_TIMES = b"40 atime=%b.%b\n40 mtime=%b.%b\n"
# path, mode, uid, gid, size, time, checksum, kind, target, magic, device
_HEADER = struct.Struct("100s8s8s8s12s12s8sc100s8s64x8s8s167x")
_NO_NUMBER, _NO_TIME, _MAGIC = b"0" * 7, b"0" * 11, b"ustar\x0000"
_SIZE, _KIND = slice(124, 135), slice(156, 157)
# The sum of a header's bytes without path, mode, size, kind and target. A checksum counts as blank.
_CONSTANT_SUM = sum(_MAGIC) + 4 * sum(_NO_NUMBER) + sum(_NO_TIME) + 8 * ord(" ")
_PATH_BYTES, _MAX_DIGITS = 100, 20
_MAX_SIZE, _MAX_FIELD = (1 << 63) - 1, 8**11 - 1
_ACCESS_LISTS = frozenset({"system.posix_acl_access", "system.posix_acl_default"})


def encode(record: Record) -> bytes:
    """Returns a record, without its data."""
    kind, path, target, stored = record.kind, record.path, record.target, record.num_stored
    text = b""
    if kind != LINK:
        digits = b"%029d%029d" % record.attributes.times_ns
        text = _TIMES % (digits[:20], digits[20:29], digits[29:49], digits[49:])
        for name, value in record.attributes.xattrs:
            text += _line(_xattr_keyword(name), value)
    if kind == SOCKET:
        kind = FIFO
        text += _line(_IS_SOCKET, b"1")
    if len(path) > _PATH_BYTES:
        text += _line(b"path", path)
    if len(target) > _PATH_BYTES:
        text += _line(b"linkpath", target)
    if record.num_shared:
        text += _line(_SHARED, b"%d" % record.num_shared)
    if stored > _MAX_FIELD:
        text += _line(b"size", b"%d" % stored)
    if record.extents is not None:
        text += _line(_SIZE_WITH_HOLES, b"%d" % record.size)
        text += _line(_EXTENTS, b",".join(b"%d,%d" % extent for extent in record.extents))
    header = _header(kind, path, record.attributes.mode, min(stored, _MAX_FIELD), target)
    if not text:
        return header
    return b"%b%b%b%b" % (_keywords_header(len(text)), text, padding(len(text)), header)


def padding(size: int) -> bytes:
    """Returns the NUL bytes that fill the last block of so many bytes."""
    return bytes(-size % BLOCK_BYTES)


def read(reader: ChunkReader) -> Record | None:
    """Reads a record, without its data; returns None at the end of the tar.

    Raises:
        ValueError: It is none.
    """
    block = reader.read(BLOCK_BYTES)
    keywords: dict[bytes, bytes] = {}
    if block[_KIND] == _KEYWORDS:
        size = int(block[_SIZE], 8)
        if size < 0:
            raise ValueError(f"keywords of {size} bytes")
        data = reader.read(size + -size % BLOCK_BYTES + BLOCK_BYTES)
        keywords, block = _parsed_keywords(data[:size]), data[-BLOCK_BYTES:]
    if block == _EMPTY:
        if keywords or reader.read(BLOCK_BYTES) != _EMPTY:
            raise ValueError("it ends in the middle")
        reader.finish()
        return None
    path, mode, _, _, stored, _, _, kind, target, *_ = _HEADER.unpack(block)
    times_ns = _nanoseconds(keywords, b"atime"), _nanoseconds(keywords, b"mtime")
    xattrs = [(_xattr_name(key), keywords[key]) for key in keywords if key.startswith(_XATTR)]
    record = Record(
        kind=SOCKET if kind == FIFO and _IS_SOCKET in keywords else kind,
        path=keywords.get(b"path") or path.partition(b"\0")[0],
        attributes=Attributes(int(mode[:7], 8), times_ns, tuple(xattrs)),
        num_shared=int(keywords.get(_SHARED, 0)),
        target=keywords.get(b"linkpath") or target.partition(b"\0")[0],
        size=int(keywords.get(b"size") or int(stored[:11], 8)),
    )
    if _EXTENTS in keywords:
        record.size = int(keywords.get(_SIZE_WITH_HOLES, -1))
        record.extents = _extents(keywords[_EXTENTS], record.size)
    return record


def is_kept(xattr: str) -> bool:
    """Whether an extended attribute is part of a snapshot: a policy or the overlay may set it."""
    return xattr.startswith("user.") or xattr in _ACCESS_LISTS


def _header(kind: bytes, path: bytes, mode: int, size: int, target: bytes) -> bytes:
    """Returns a ustar header; texts that are too long for it are cut."""
    path, target = path[:_PATH_BYTES], target[:_PATH_BYTES]
    numbers = b"%07o%011o" % (mode, size)
    checksum = _CONSTANT_SUM + sum(path) + sum(numbers) + kind[0] + sum(target)
    return _HEADER.pack(
        path,
        numbers[:7],
        *(_NO_NUMBER, _NO_NUMBER),
        numbers[7:],
        _NO_TIME,
        b"%06o\0 " % checksum,
        kind,
        target,
        *(_MAGIC, _NO_NUMBER, _NO_NUMBER),
    )


@lru_cache(maxsize=16)  # most have a length of a few
def _keywords_header(size: int) -> bytes:
    return _header(_KEYWORDS, b"", 0, size, b"")


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


def _extents(text: bytes, size: int) -> Extents:
    """Returns where a file has its data; raises ValueError where that lies beyond its end."""
    numbers = list(map(int, text.split(b",")))
    extents = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    is_within = all(0 <= start <= start + length <= size for start, length in extents)
    if not is_within or size > _MAX_SIZE:
        raise ValueError("data beyond the end of its file")
    return extents


def _nanoseconds(keywords: dict[bytes, bytes], name: bytes) -> int:
    found = int(keywords.get(name, b"0").replace(b".", b""))
    if abs(found) > _MAX_SIZE * 10**9:
        raise ValueError("a time that no file can have")
    return found


def _xattr_keyword(name: str) -> bytes:
    text = name.encode("utf-8", "surrogateescape")
    return _XATTR + text.replace(b"%", b"%25").replace(b"=", b"%3D")


def _xattr_name(keyword: bytes) -> str:
    text = keyword.removeprefix(_XATTR).replace(b"%3D", b"=").replace(b"%25", b"%")
    name = text.decode("utf-8", "surrogateescape")
    if not is_kept(name):
        raise ValueError(f"an extended attribute named {name!r}")
    return name
