"""Python source as a command, and the modules that an interpreter may have imported before it."""

import os
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.inside.request import MountRequest, Preload
from coding_gym.sandbox.spec import Mount, SandboxSpec

# One argument of exec may not be longer (MAX_ARG_STRLEN), its NUL included.
_MAX_SOURCE_BYTES = (128 << 10) - 1
_OLDEST_PRELOADED = (3, 11)  # the package's own code runs under it


def python_command(source: str) -> str:
    """Returns the command that runs Python source in an isolated interpreter.

    Raises:
        InvalidArgumentError: Too long a source; a NUL in it is refused by `run`.
    """
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > _MAX_SOURCE_BYTES:
        raise InvalidArgumentError(
            f"source must be at most {_MAX_SOURCE_BYTES} bytes, got {size}; "
            "write a module with write_file and run that"
        )
    return f"exec python -I -S -c {shlex.quote(source)}"


def preload_of(spec: SandboxSpec, mounts: Sequence[MountRequest]) -> Preload | None:
    """Returns the modules that are to be imported ahead; None where runs start cold.

    Their folders are read-only mounts of the spec, or within such, that are in its PYTHONPATH or
    are the interpreter's own folder of packages. An image may bring libraries and an interpreter of
    its own, and its runs start cold; so do those with the host's network.

    Args:
        spec: The spec.
        mounts: All that is mounted in its sandboxes.
    """
    if not spec.preload or spec.python is None or spec.image or spec.network:
        return None
    if tuple(map(int, spec.python.version.split(".")[:2])) < _OLDEST_PRELOADED:
        return None
    wanted = spec.env.get("PYTHONPATH", "").split(os.pathsep)
    wanted.append(str(spec.python.site_packages))
    folders = [folder for folder in wanted if _is_read_only(folder, spec.mounts)]
    if not folders:
        return None
    needed = [str(spec.python.prefix)]
    needed += [m.target for m in spec.mounts if any(_is_in(f, m.target) for f in folders)]
    return Preload(
        executable=str(spec.python.executable),
        modules=spec.preload,
        folders=tuple(folders),
        mounts=tuple(mount for mount in mounts if mount.target in needed),
    )


def _is_read_only(folder: str, mounts: tuple[Mount, ...]) -> bool:
    """Whether a folder is part of a mount, and nothing else is mounted in or over it."""
    around = [mount for mount in mounts if _is_in(folder, mount.target)]
    below = [mount for mount in mounts if mount.target != folder and _is_in(mount.target, folder)]
    return len(around) == 1 and not around[0].writable and not below


def _is_in(path: str, folder: str) -> bool:
    return PurePosixPath(path).is_absolute() and PurePosixPath(path).is_relative_to(folder)
