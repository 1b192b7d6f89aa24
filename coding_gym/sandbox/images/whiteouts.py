"""What a layer removes of those below it: from an image's notation to an overlay's.

An image says it by names (https://github.com/opencontainers/image-spec, ``layer.md``): an empty
file ``.wh.NAME`` removes NAME, ``.wh..wh..opq`` all that the folder had. An overlay wants a
character device 0:0, which anyone may make, and a user extended attribute.
"""

import errno
import stat
import tarfile
from collections.abc import Iterator

from coding_gym.errors import InvalidArgumentError, SandboxUnavailableError
from coding_gym.sandbox.images.placing import Parts, Placer, shown

_PREFIX = ".wh."
_OPAQUE = ".wh..wh..opq"
# Book-keeping of aufs, which removes nothing.
_RESERVED = ".wh..wh."
_UNABLE = frozenset({errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL})


class Whiteouts:
    """Collects a layer's removals and makes them when everything else is there.

    They are about lower layers only, so what the layer itself has of that name stays.

    Args:
        max_parts: Components of all removed paths, which are held in memory; real layers have some
            thousands.
    """

    def __init__(self, max_parts: int = 4_000_000) -> None:
        self._max_parts = max_parts
        self._removed: list[Parts] = []
        self._opaque: list[Parts] = []
        self._num_parts = 0

    def take(self, parts: Parts, member: tarfile.TarInfo) -> bool:
        """Returns whether an entry is one, and notes it.

        Raises:
            InvalidArgumentError: A name has the form of one, where it cannot be one; or there are
                too many.
        """
        if any(part.startswith(_PREFIX) for part in parts[:-1]):
            # The folder of aufs' own files, or something that will never be there.
            if parts[0].startswith(_RESERVED):
                return True
            raise InvalidArgumentError(f"{shown(parts)!r} is below a name that only removes")
        name = parts[-1] if parts else ""
        if not name.startswith(_PREFIX):
            return False
        if name.startswith(_RESERVED) and name != _OPAQUE:
            return True
        if not (member.isreg() or member.islnk()) or member.size:
            raise InvalidArgumentError(f"{shown(parts)!r} removes something and is not empty")
        self._num_parts += len(parts)
        if self._num_parts > self._max_parts:
            raise InvalidArgumentError(
                f"it removes too much: paths of {self._max_parts} names in all"
            )
        hidden = name.removeprefix(_PREFIX)
        if name == _OPAQUE:
            self._opaque.append(parts[:-1])
        elif hidden in {"", ".", ".."}:
            raise InvalidArgumentError(f"{shown(parts)!r} removes no name")
        else:
            self._removed.append((*parts[:-1], hidden))
        return True

    def apply(self, placer: Placer) -> Iterator[None]:
        """Makes an overlay's marks, and yields after each.

        Raises:
            SandboxUnavailableError: The file system cannot hold them.
        """
        try:
            for parts in self._removed:
                kind = placer.kind(parts)
                if kind == stat.S_IFDIR:
                    placer.make_opaque(parts)
                elif not kind:
                    placer.make_node(parts)
                yield
            for parts in self._opaque:
                placer.make_opaque(parts)
                yield
        except OSError as error:
            if error.errno not in _UNABLE:
                raise
            raise SandboxUnavailableError(
                "the cache folder's file system cannot hold what image layers need (character "
                f"devices 0:0 and user extended attributes): {error}",
                "set XDG_CACHE_HOME to a folder on ext4, xfs, btrfs or a recent tmpfs",
            ) from error
