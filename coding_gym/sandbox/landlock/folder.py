"""The folder of one ``landlock`` sandbox: a private copy of the layers, and what else it writes.

workspace/  home/  tmp/     what commands may write
python/                     a virtual environment without packages, for ``python`` and ``pip``
"""

import os
from pathlib import Path

from coding_gym.sandbox.landlock.reach import admit, reachable, reachable_python
from coding_gym.sandbox.spec import HOME, WORKDIR, Interpreter, SandboxSpec
from coding_gym.sandbox.tree_copies import add_tree

WRITABLE = ("workspace", "home", "tmp")
_TMP = "/tmp"  # noqa: S108 - the path that commands would use


def fill(folder: Path, spec: SandboxSpec, owner: tuple[int, int]) -> dict[str, Path]:
    """Makes the files of a sandbox in an empty folder.

    Args:
        folder: Where.
        spec: What is wanted.
        owner: The uid and gid of commands.

    Returns:
        Where commands find what the spec mounts, and the folders of their own, by path elsewhere.

    Raises:
        OSError: A layer cannot be read, or the disk is full.
    """
    admit(folder, owner)
    for name in WRITABLE:
        (folder / name).mkdir(mode=0o755)
        os.chown(folder / name, *owner)
    for layer in spec.layers:
        add_tree(layer, folder / "workspace", owner=owner)
    places = {name: folder / end for name, end in zip((WORKDIR, HOME, _TMP), WRITABLE, strict=True)}
    for mount in spec.mounts:
        source = mount.source.resolve()
        places[mount.target] = source if mount.writable else reachable(source, owner)
    if spec.python is not None:
        _make_python(folder / "python", spec.python, places, owner)
    # Below /tmp, as it may be, are these too: they are what they are.
    return places | {str(place): place for place in (folder, *places.values())}


def _make_python(
    folder: Path, python: Interpreter, places: dict[str, Path], owner: tuple[int, int]
) -> None:
    """Makes a virtual environment whose only packages are what the spec mounts as such.

    The interpreter's own packages are out of reach; were their folder in ``sys.path`` all the
    same, importing one would be refused instead of finding nothing.
    """
    prefix = reachable_python(python.prefix, owner)
    executable = prefix / python.executable.relative_to(python.prefix)
    minor = ".".join(python.version.split(".")[:2])
    (folder / "bin").mkdir(parents=True)
    for name in ("python", "python3", f"python{minor}"):
        (folder / "bin" / name).symlink_to(executable)
    (folder / "pyvenv.cfg").write_text(
        f"home = {executable.parent}\ninclude-system-site-packages = false\n", encoding="utf-8"
    )
    site = folder / "lib" / f"python{minor}" / "site-packages"
    site.parent.mkdir(parents=True)
    mounted = places.get(str(python.site_packages))
    if mounted is None:
        site.mkdir()
    else:
        site.symlink_to(mounted)
    places[str(python.prefix)] = prefix
