"""A layer's tar as a stream: uncompressed, counted and digested on the way."""

import contextlib
import gzip
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from coding_gym.errors import InvalidArgumentError, MissingDependencyError
from coding_gym.optional import import_optional

CHUNK_BYTES = 1 << 18
# No header of a real archive comes near: a path and some attributes.
_MAX_HEADER_BYTES = 4 << 20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerLimits:
    """Bounds on what one layer may unpack to.

    Attributes:
        max_bytes: Size of the uncompressed tar, and of all its files, holes included.
        max_entries: Files, folders and everything else.
    """

    max_bytes: int = 64 << 30
    max_entries: int = 2_000_000


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
        while self.read(CHUNK_BYTES):
            pass
        found = f"{self._hash.name}:{self._hash.hexdigest()}"
        if self._wanted and found != self._wanted:
            raise InvalidArgumentError(f"its bytes have the digest {found}, not {self._wanted}")


class LayerStream:
    """Reads a layer's tar from front to back.

    Args:
        file: The layer as it lies in the image; it can seek.
        limits: Upper bounds.
        digest: What the digest of the file must be; "" for anything.
        diff_id: What the digest of the uncompressed tar must be; "" for anything.

    Raises:
        InvalidArgumentError: It is compressed in a way that cannot be read here.
    """

    def __init__(
        self, file: IO[bytes], limits: LayerLimits, digest: str = "", diff_id: str = ""
    ) -> None:
        magic = file.read(len(_ZSTD))
        file.seek(0)
        self._file = _Digested(file, digest)
        self._plain = _Digested(_uncompressed(self._file, magic), diff_id)
        self._limits = limits
        self._num_bytes = 0
        self._max_bytes = limits.max_bytes

    @contextlib.contextmanager
    def header(self) -> Iterator[None]:
        """Bounds what the block reads: `tarfile` reads as much as a header says that it has."""
        self._max_bytes = min(self._limits.max_bytes, self._num_bytes + _MAX_HEADER_BYTES)
        yield
        self._max_bytes = self._limits.max_bytes

    def read(self, size: int) -> bytes:
        """Returns at most so many bytes of the tar; none at its end.

        Raises:
            InvalidArgumentError: They are too many, or cannot be uncompressed.
        """
        try:
            data = self._plain.read(size)
        except Exception as error:  # of whichever library uncompresses
            raise InvalidArgumentError(f"it cannot be uncompressed: {error}") from error
        self._num_bytes += len(data)
        if self._num_bytes > self._limits.max_bytes:
            raise InvalidArgumentError(f"it unpacks to more than {self._limits.max_bytes} bytes")
        if self._num_bytes > self._max_bytes:
            raise InvalidArgumentError(f"one of its headers is above {_MAX_HEADER_BYTES} bytes")
        return data

    def finish(self) -> None:
        """Reads to the end and compares the digests.

        Raises:
            InvalidArgumentError: One of them is another than it must be.
        """
        while self.read(CHUNK_BYTES):
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
    return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
