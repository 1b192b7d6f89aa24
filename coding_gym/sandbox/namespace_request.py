"""What a zygote is asked to open, worked out from a spec."""

from pathlib import Path, PurePosixPath
from stat import S_ISDIR
from typing import Any

from coding_gym.errors import InvalidArgumentError
from coding_gym.host import network as host_network
from coding_gym.sandbox.backend_checks import check_env, check_shell
from coding_gym.sandbox.images import Image
from coding_gym.sandbox.python_source import preload_request
from coding_gym.sandbox.spec import Interpreter, SandboxSpec, environment, mounts_in_place

_PYTHON_FOLDER = "/sandbox/bin"
_SYSTEM_FOLDERS = (Path("/usr"), Path("/bin"), Path("/lib"), Path("/lib64"))


def namespace_request(
    spec: SandboxSpec, upper: Path | None, *, image: Image | None = None, restores: bool = False
) -> dict[str, Any]:
    """Returns the request for a sandbox, in which everything is JSON.

    Args:
        spec: What is wanted.
        upper: A folder on disk for the sandbox's changes; None for a tmpfs.
        image: The spec's image, unpacked; None where it names none.
        restores: Whether the data of a snapshot will follow over the sandbox's channel.

    Raises:
        InvalidArgumentError: A layer or mount that does not exist, or a target that cannot be.
    """
    check_env(spec.env)
    if spec.workspace_alias and image is None:
        raise InvalidArgumentError("workspace_alias needs an image")
    shown: list[dict[str, Any]] = []
    layers = [_show(shown, layer, "layer") for layer in spec.layers]
    mounts = []
    if spec.python is not None and _is_in_system(spec.python.prefix):
        _require_no_image(spec, spec.python)
    elif spec.python is not None:
        index = _show(shown, spec.python.prefix, "interpreter", covered=True)
        mounts.append((index, str(spec.python.prefix)))
    network = host_network.settings() if spec.network else host_network.NONE
    for mount in (*mounts_in_place(network.paths), *spec.mounts):
        index = _show(shown, mount.source, "mount", writable=mount.writable)
        mounts.append((index, _checked_target(mount.target)))
    disk = None if upper is None else _show(shown, upper, "layer", writable=True, once=True)
    return {
        "show": shown,
        "upper": disk,
        "layers": layers,
        "time_ns": Path(shown[layers[0]]["path"]).stat().st_mtime_ns if layers else None,
        "mounts": mounts,
        "image": image and _image(shown, image),
        "alias": _checked_target(spec.workspace_alias) if spec.workspace_alias else "",
        "links": _links(spec.python),
        "files": network.files,
        "env": network.env | _environment(spec, image),
        "limits": {
            "disk_bytes": spec.limits.disk_bytes,
            "num_inodes": spec.limits.num_inodes,
            "num_processes": spec.limits.num_processes,
            "file_bytes": spec.limits.file_bytes,
            "num_open_files": spec.limits.num_open_files,
            "memory_bytes": spec.limits.memory_bytes,
        },
        "network": spec.network,
        "shell": check_shell(spec.shell),
        "restores": restores,
        "preload": preload_request(spec, mounts),
    }


def _image(shown: list[dict[str, Any]], image: Image) -> dict[str, Any]:
    return {
        "folder": _show(shown, image.folder, "layer"),
        "layers": image.layers,
        "uid": image.user.uid,
        "gid": image.user.gid,
    }


def _environment(spec: SandboxSpec, image: Image | None) -> dict[str, str]:
    first = () if spec.python is None and image is not None else (_PYTHON_FOLDER,)
    if image is None:
        return environment(spec, first=first)
    return environment(spec, first=first, image_env=image.env, user=image.user.name)


def _require_no_image(spec: SandboxSpec, python: Interpreter) -> None:
    if spec.image:
        raise InvalidArgumentError(
            f"{python.executable} is part of the host's {python.prefix}, which a sandbox with an "
            "image does not have; give python=None for the image's own, or an interpreter with a "
            "folder of its own"
        )


def _show(
    shown: list[dict[str, Any]],
    path: Path,
    kind: str,
    *,
    writable: bool = False,
    covered: bool = False,
    once: bool = False,
) -> int:
    """Adds a host folder or file to those shown and returns its index."""
    real = path.resolve()
    try:
        facts = real.stat()
    except OSError as error:
        raise InvalidArgumentError(
            f"the sandbox's {kind} {path} cannot be used: {error}"
        ) from error
    if kind in {"layer", "interpreter"} and not real.is_dir():
        raise InvalidArgumentError(f"the sandbox's {kind} {path} must be a folder")
    shown.append(
        {
            "path": str(real),
            "id": [facts.st_dev, facts.st_ino],
            "is_folder": S_ISDIR(facts.st_mode),
            "writable": writable,
            "covered": covered,
            "once": once,
        }
    )
    return len(shown) - 1


def _checked_target(text: str) -> str:
    target = PurePosixPath(text)
    if not target.is_absolute() or ".." in target.parts or target == PurePosixPath("/"):
        raise InvalidArgumentError(
            f"a mount's target must be an absolute path below /, got {text!r}"
        )
    return str(target)


def _is_in_system(prefix: Path) -> bool:
    return any(prefix.is_relative_to(folder) for folder in _SYSTEM_FOLDERS)


def _links(python: Interpreter | None) -> dict[str, str]:
    if python is None:
        return {}
    minor = ".".join(python.version.split(".")[:2])
    names = ("python", "python3", f"python{minor}")
    return {f"{_PYTHON_FOLDER}/{name}": str(python.executable) for name in dict.fromkeys(names)}
