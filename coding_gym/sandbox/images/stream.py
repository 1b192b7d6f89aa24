"""A layer's tar as a stream: uncompressed, counted and digested on the way."""

import gzip
import hashlib
import importlib
import io
from dataclasses import dataclass
from typing import IO, Any

from coding_gym.errors import InvalidArgumentError

_CHUNK_BYTES = 1 << 18
# No header of a real archive comes near: a path and some attributes.
_MAX_HEADER_BYTES = 4 << 20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_OTHERS = {b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}
# Python's own from 3.14 on, then packages; each has a file object for reading.
_ZSTD_MODULES = (
    ("compression.zstd", "ZstdFile"),
    ("backports.zstd", "ZstdFile"),
    ("pyzstd", "ZstdFile"),
    ("zstandard", "open"),
)
_WAY_OUT = "load the image into Docker and write it with `docker save`"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerLimits:
    """Bounds on what one layer may unpack to; beyond them it is taken for a bomb.

    Attributes:
        max_bytes: Size of the uncompressed tar, and of all its files, holes included.
        max_entries: Files, folders and everything else.
        max_ratio: Uncompressed bytes for each compressed one, once there are `free_bytes`.
        free_bytes: Below this uncompressed size a layer may be as compressible as it likes.
    """

    max_bytes: int = 64 << 30
    max_entries: int = 2_000_000
    max_ratio: float = 200.0
    free_bytes: int = 256 << 20


class _Digested:
    """A file that is read once from front to back, counted and digested."""

    def __init__(self, file: IO[bytes], digest: str) -> None:
        self._file = file
        self._digest = _Digest(digest)
        self.num_bytes = 0

    def read(self, size: int = -1) -> bytes:
        chunk = self._file.read(size)
        self.num_bytes += len(chunk)
        self._digest.update(chunk)
        return chunk

    def finish(self) -> None:
        while self.read(_CHUNK_BYTES):
            pass
        self._digest.check()


class _Digest:
    def __init__(self, wanted: str) -> None:
        self._wanted = wanted
        self._hash = hashlib.new(wanted.partition(":")[0] or "sha256")

    def update(self, data: bytes) -> None:
        if self._wanted:
            self._hash.update(data)

    def check(self) -> None:
        if self._wanted and self._wanted.partition(":")[2] != self._hash.hexdigest():
            found = f"{self._hash.name}:{self._hash.hexdigest()}"
            raise InvalidArgumentError(f"its bytes have the digest {found}, not {self._wanted}")


class LayerStream(io.RawIOBase):
    """Reads a layer's tar forwards, which is how `tarfile` reads when members are taken in order.

    Args:
        file: The layer as it lies in the image; it can seek.
        limits: What is too much.
        digest: What the digest of the file must be; "" for anything.
        diff_id: What the digest of the uncompressed tar must be; "" for anything.

    Raises:
        InvalidArgumentError: It is compressed in a way that cannot be read here.
    """

    def __init__(
        self, file: IO[bytes], limits: LayerLimits, digest: str = "", diff_id: str = ""
    ) -> None:
        super().__init__()
        self._limits = limits
        magic = file.read(8)
        file.seek(0)
        self._file = _Digested(file, digest)
        self._plain = _uncompressed(self._file, magic)
        self._digest = _Digest(diff_id)
        self._position = 0
        self._header_bytes: int | None = None

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True, forwards."""
        return True

    def tell(self) -> int:
        """Returns how many uncompressed bytes were read or skipped."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Skips to a place further on."""
        if whence != io.SEEK_SET or offset < self._position:
            raise InvalidArgumentError("its headers point backwards")
        while self._position < offset:
            if not self._read_some(min(offset - self._position, _CHUNK_BYTES)):
                raise InvalidArgumentError("it ends in the middle of a file")
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """Returns so many bytes, fewer only at the end."""
        if size is None or size < 0:
            raise InvalidArgumentError("its headers have a size below 0")
        if self._header_bytes is not None:
            self._header_bytes += size
            if self._header_bytes > _MAX_HEADER_BYTES:
                raise InvalidArgumentError(f"one of its headers is above {_MAX_HEADER_BYTES} bytes")
        parts = []
        while size and (chunk := self._read_some(size)):
            parts.append(chunk)
            size -= len(chunk)
        return b"".join(parts)

    def begin_header(self) -> None:
        """From here on, reads are those of one header, which has a greatest size."""
        self._header_bytes = 0

    def end_header(self) -> None:
        """From here on, reads are those of a file's content."""
        self._header_bytes = None

    def finish(self) -> None:
        """Reads to the end and compares the digests.

        Raises:
            InvalidArgumentError: One of them is another than it must be.
        """
        while self._read_some(_CHUNK_BYTES):
            pass
        self._digest.check()
        self._file.finish()

    def _read_some(self, size: int) -> bytes:
        try:
            part: bytes = self._plain.read(min(size, _CHUNK_BYTES))
        except Exception as error:  # of whichever library uncompresses
            raise InvalidArgumentError(f"it cannot be uncompressed: {error}") from error
        self._position += len(part)
        self._digest.update(part)
        self._check()
        return part

    def _check(self) -> None:
        if self._position > self._limits.max_bytes:
            raise InvalidArgumentError(f"it unpacks to more than {self._limits.max_bytes} bytes")
        is_large = self._position > self._limits.free_bytes
        if is_large and self._position > self._file.num_bytes * self._limits.max_ratio:
            raise InvalidArgumentError(
                f"it unpacks to more than {self._limits.max_ratio:g} times its size"
            )


def _uncompressed(file: _Digested, magic: bytes) -> Any:
    """Returns a file object that gives the tar."""
    if magic.startswith(_GZIP):
        reads_only: Any = file
        return gzip.GzipFile(fileobj=reads_only, mode="rb")
    if magic.startswith(_ZSTD):
        return _zstd(file)
    for prefix, name in _OTHERS.items():
        if magic.startswith(prefix):
            raise InvalidArgumentError(f"it is compressed with {name}, not gzip; {_WAY_OUT}")
    return file


def _zstd(file: _Digested) -> Any:
    for name, function in _ZSTD_MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        return getattr(module, function)(file, "rb")
    raise InvalidArgumentError(
        "it is compressed with zstd, which this Python cannot read; run: pip install zstandard, "
        f"or {_WAY_OUT}"
    )
