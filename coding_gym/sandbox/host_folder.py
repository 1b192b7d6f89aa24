"""Sandboxes in a folder of the host: a private copy of the layers, and other written files.

workspace/  home/  tmp/     folders that commands may write
python/                     a virtual environment without packages, for ``python`` and ``pip``
"""

import os
import shutil
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from coding_gym.errors import SandboxError
from coding_gym.sandbox import cgroups, layer_union
from coding_gym.sandbox.backend_checks import check_snapshot, check_spec
from coding_gym.sandbox.channel import Channel
from coding_gym.sandbox.inside import wire
from coding_gym.sandbox.ownership import make_folder, remove_folder
from coding_gym.sandbox.protocol import Promise, Snapshot
from coding_gym.sandbox.served_sandbox import ServedSandbox, translated
from coding_gym.sandbox.spec import HOME, WORKDIR, Interpreter, SandboxSpec, environment
from coding_gym.sandbox.zygotes import with_zygote

TMP = "/tmp"  # noqa: S108 - the path that commands would use


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFolder:
    """The files of one sandbox, and the host paths of its mounts.

    Attributes:
        path: Holds all that the sandbox writes; removed with it.
        writable: Its folders that commands may write, by name.
        host_paths: Host paths by the paths that the spec gives them.
    """

    path: Path
    writable: Mapping[str, str]
    host_paths: Mapping[str, str]


def fill(
    folder: Path,
    spec: SandboxSpec,
    owner: tuple[int, int],
    *,
    has_tmp: bool,
    show: Callable[[Path], Path] = Path.resolve,
    show_python: Callable[[Path], Path] = Path.resolve,
) -> HostFolder:
    """Makes the files of a sandbox in an empty folder.

    Args:
        folder: The empty folder.
        spec: The sandbox's spec.
        owner: The uid and gid of commands.
        has_tmp: Whether they have a private folder for temporary files.
        show: Returns the path at which they find a host path.
        show_python: As ``show``, for the prefix of an interpreter.

    Raises:
        OSError: A layer cannot be read, or the disk is full.
    """
    own = {"workspace": WORKDIR, "home": HOME} | ({"tmp": TMP} if has_tmp else {})
    for name in own:
        (folder / name).mkdir(mode=0o755)
        os.chown(folder / name, *owner)
    layer_union.copy(spec.layers, folder / "workspace", owner=owner)
    host_paths = {target: folder / name for name, target in own.items()}
    for mount in spec.mounts:
        source = mount.source.resolve()
        host_paths[mount.target] = source if mount.writable else show(source)
    if spec.python is not None:
        prefix = host_paths[str(spec.python.prefix)] = show_python(spec.python.prefix)
        site = host_paths.get(str(spec.python.site_packages))
        _make_python(folder / "python", spec.python, prefix, site)
    # Below /tmp, as it may be, are these too: they are what they are.
    known = {str(path): str(path) for path in (folder, *host_paths.values())}
    return HostFolder(
        path=folder,
        writable={name: str(folder / name) for name in own},
        host_paths={target: str(path) for target, path in host_paths.items()} | known,
    )


def _make_python(folder: Path, python: Interpreter, prefix: Path, site: Path | None) -> None:
    """Makes a virtual environment whose only packages are those that the spec mounts.

    The interpreter's own packages may be out of reach; were their folder in ``sys.path`` all the
    same, importing one would be refused instead of finding nothing.
    """
    executable = prefix / python.executable.relative_to(python.prefix)
    minor = ".".join(python.version.split(".")[:2])
    (folder / "bin").mkdir(parents=True)
    for name in ("python", "python3", f"python{minor}"):
        (folder / "bin" / name).symlink_to(executable)
    (folder / "pyvenv.cfg").write_text(
        f"home = {executable.parent}\ninclude-system-site-packages = false\n", encoding="utf-8"
    )
    packages = folder / "lib" / f"python{minor}" / "site-packages"
    packages.parent.mkdir(parents=True)
    if site is None:
        packages.mkdir()
    else:
        packages.symlink_to(site)


def variables(
    spec: SandboxSpec, files: HostFolder, defaults: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Returns the environment of commands, with the paths of the host in it.

    The variables of the spec, and the fixed ones, win over ``defaults``.
    """
    env = environment(spec, first=(str(files.path / "python" / "bin"),))
    if "tmp" in files.writable:
        env = {"TMPDIR": TMP} | env
    return dict(defaults or {}) | {
        name: ":".join(translated(part, files.host_paths) for part in value.split(":"))
        for name, value in env.items()
    }


def open_sandbox(
    backend: str,
    spec: SandboxSpec,
    snapshot: Snapshot | None,
    *,
    owner: tuple[int, int],
    missing: Collection[Promise],
    prepare: Callable[[Path, SandboxSpec], tuple[HostFolder, dict[str, Any]]],
) -> ServedSandbox:
    """Opens a sandbox in a folder of its own.

    Args:
        backend: Name of the backend.
        spec: Its folders, interpreter and limits.
        snapshot: Files that it has from the start.
        owner: The uid and gid of commands.
        missing: The promises that the backend never keeps.
        prepare: Fills a folder; returns its files, and the orders of an inner server about its
            enclosure: ``env`` and ``landlock``, which is None or has ``abi`` and ``grants``.

    Raises:
        InvalidArgumentError: No sandbox of the backend can have that spec or snapshot.
        SetupError: A step of the set-up failed.
        SandboxError: The folder could not be made, or the processes not be started.
    """
    check_spec(spec, backend=backend, missing=missing)
    if snapshot is not None:
        check_snapshot(snapshot, backend=backend, spec=spec)
    with ExitStack() as undo:
        try:
            folder = make_folder(backend)
            undo.callback(remove_folder, folder)
            # The files of a snapshot take the place of all layers.
            wanted = spec if snapshot is None else replace(spec, layers=())
            files, enclosure = prepare(folder, wanted)
            group = cgroups.make_group(spec.limits)
        except (OSError, shutil.Error) as error:
            raise SandboxError(f"cannot open a sandbox: {error}") from error
        if group is not None:
            undo.callback(group.close)
        user = os.geteuid(), os.getegid()
        stream = with_zygote("folder", *user, lambda zygote: zygote.open({}, group, undo))
        channel = Channel(stream, undo)
    channel.wait_until_ready(wire.pack(_orders(spec, files, owner) | enclosure))
    sandbox = ServedSandbox(backend, spec, channel, host_paths=files.host_paths)
    if snapshot is not None:
        sandbox.restore(snapshot)
    return sandbox


def _orders(spec: SandboxSpec, files: HostFolder, owner: tuple[int, int]) -> dict[str, Any]:
    return {
        "uid": owner[0],
        "gid": owner[1],
        "folder": str(files.path),
        "writable": files.writable,
        "network": spec.network,
        "shell": spec.shell,
        "limits": asdict(spec.limits),
    }
