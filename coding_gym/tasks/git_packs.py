"""Reading commits out of git's packs, without git.

Formats: ``gitformat-pack`` of git's documentation, version 2 of the index.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

_HEAD = b"\xfftOc\x00\x00\x00\x02"
_FANOUT_END = 8 + 256 * 4
_SHA_BYTES = 20
_COMMIT, _OFFSET_DELTA, _BASE_DELTA = 1, 6, 7
_MAX_DELTAS = 64  # git's own chains have at most 50
_MAX_HEADER_BYTES = 64
MAX_COMMIT_BYTES = 1 << 20


class PackIndex:
    """The index of one pack: names in order, and where each object starts.

    Args:
        path: The ``.idx`` file; the pack lies beside it.

    Raises:
        ValueError: It is not an index of version 2.
        OSError: It cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._pack = path.with_suffix(".pack")
        self._data = data = path.read_bytes()
        if data[:8] != _HEAD or len(data) < _FANOUT_END:
            raise ValueError(f"{path} is not an index of version 2")
        self._fanout = struct.unpack(">256I", data[8:_FANOUT_END])

    def starting_with(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yields (name, offset in the pack) of objects whose name begins with ``prefix``."""
        first = int(prefix[:2], 16)
        start = self._fanout[first - 1] if first else 0
        for number in range(start, min(self._fanout[first], self._fanout[-1])):
            at = _FANOUT_END + number * _SHA_BYTES
            sha = self._data[at : at + _SHA_BYTES].hex()
            if sha.startswith(prefix):
                yield sha, self._offset(number)

    def commit(self, sha: str) -> bytes | None:
        """Returns the text of a commit; None where the pack has no such commit."""
        offset = next((offset for _, offset in self.starting_with(sha)), -1)
        if offset < 0:
            return None
        try:
            pack = os.open(self._pack, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return self._unpack(pack, offset)
        except (IndexError, zlib.error):  # cut off, or not what the index says
            return None
        finally:
            os.close(pack)

    def _offset(self, number: int) -> int:
        count = self._fanout[-1]
        offsets = _FANOUT_END + count * (_SHA_BYTES + 4)  # after the names and the checksums
        at = offsets + number * 4
        offset = int.from_bytes(self._data[at : at + 4], "big")
        if offset < 1 << 31:
            return offset
        at = offsets + count * 4 + (offset & 0x7FFFFFFF) * 8
        return int.from_bytes(self._data[at : at + 8], "big")

    def _unpack(self, pack: int, offset: int) -> bytes | None:
        deltas: list[bytes] = []
        for _ in range(_MAX_DELTAS):
            head = os.pread(pack, _MAX_HEADER_BYTES, offset)
            kind, at = head[0] >> 4 & 7, 1
            while head[at - 1] & 0x80:  # the rest of the size, which the content tells too
                at += 1
            if kind == _COMMIT:
                text = _inflated(pack, offset + at)
                for delta in reversed(deltas):
                    text = _applied(text, delta)
                return text
            if kind == _OFFSET_DELTA:
                back, at = _distance(head, at)
                base = offset - back
            elif kind == _BASE_DELTA:
                name = head[at : at + _SHA_BYTES].hex()
                at += _SHA_BYTES
                base = next((place for _, place in self.starting_with(name)), -1)
            else:
                return None
            deltas.append(_inflated(pack, offset + at))
            if base < 0:
                return None
            offset = base
        return None


def _distance(head: bytes, at: int) -> tuple[int, int]:
    """Returns how far back the base of a delta starts, and where its content begins."""
    value = head[at] & 0x7F
    while head[at] & 0x80:
        at += 1
        value = (value + 1 << 7) | (head[at] & 0x7F)
    return value, at + 1


def _inflated(pack: int, offset: int) -> bytes:
    stream = zlib.decompressobj()
    return stream.decompress(os.pread(pack, MAX_COMMIT_BYTES, offset), MAX_COMMIT_BYTES)


def _applied(base: bytes, delta: bytes) -> bytes:
    at = 0
    for _ in range(2):  # the sizes of both texts
        while delta[at] & 0x80:
            at += 1
        at += 1
    parts: list[bytes] = []
    while at < len(delta) and sum(map(len, parts)) <= MAX_COMMIT_BYTES:
        code = delta[at]
        at += 1
        if not code & 0x80:  # that many new bytes
            parts.append(delta[at : at + code])
            at += code
            continue
        numbers = []
        for bits in (code & 0x0F, code >> 4 & 0x07):
            number = 0
            for place in range(4):
                if bits >> place & 1:
                    number |= delta[at] << 8 * place
                    at += 1
            numbers.append(number)
        start, size = numbers[0], numbers[1] or 0x10000
        parts.append(base[start : start + size])
    return b"".join(parts)
