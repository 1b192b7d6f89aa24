"""Makes the folder of a ``landlock`` sandbox, and copies host folders that its user cannot enter.

workspace/  home/  tmp/     folders that commands may write to
python/                     a virtual environment with only the packages of the spec
"""

import os
import weakref
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from coding_gym.process_cache import ProcessCache
from coding_gym.sandbox import layer_union
from coding_gym.sandbox.inside.host_folders import PACKAGE_FOLDERS, THIRD_PARTY
from coding_gym.sandbox.layer_union import IsIncluded, united
from coding_gym.sandbox.ownership import cache_folder, make_folder, remove_unless_fork
from coding_gym.sandbox.served_sandbox import host_path_of
from coding_gym.sandbox.spec import HOME, TMP, WORKDIR, Interpreter, SandboxSpec, environment

_WRITABLE_FOLDERS = {"workspace": WORKDIR, "home": HOME, "tmp": TMP}
# Names of folders with packages, and of large folders that programs do not need.
_SKIPPED_NAMES = {Path(pattern).name for pattern in THIRD_PARTY} | {"test", "idlelib", "lib2to3"}
_NUM_RECENT_COPIES = 8
# This package sets these variables to paths in the spec; other variables are passed unchanged.
_PATH_VARIABLES = {"HOME", "PATH", "TMPDIR", "VIRTUAL_ENV"}

User = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LandlockFiles:
    """The files of one sandbox, and the host paths of its mounts.

    Attributes:
        path: The folder that holds the sandbox's files; removed when the sandbox closes.
        writable: Paths of the folders that commands may write to, by name.
        host_paths: The host path of each path in the spec; also maps each host path to itself.
    """

    path: Path
    writable: Mapping[str, str]
    host_paths: Mapping[str, str]


def fill(folder: Path, spec: SandboxSpec, user: User, cleanup: ExitStack) -> LandlockFiles:
    """Makes the files of a sandbox in an empty folder.

    Args:
        folder: The empty folder.
        spec: The sandbox's spec.
        user: The uid and gid of commands.
        cleanup: Closed after the sandbox's end; then shared copies are released.

    Raises:
        OSError: A layer cannot be read, or the disk is full.
    """
    # Only commands may enter: files inside may be readable for every user.
    os.chown(folder, -1, user[1])
    folder.chmod(0o710)
    for name in _WRITABLE_FOLDERS:
        (folder / name).mkdir(mode=0o755)
        os.chown(folder / name, *user)
    top = {".": spec.layers[0].resolve()} if spec.layers else {}
    layer_union.copy({**top, **united(spec.layers)}, folder / "workspace", user)
    host_paths = {target: folder / name for name, target in _WRITABLE_FOLDERS.items()}
    for mount in spec.mounts:
        source = mount.source.resolve()
        host_paths[mount.target] = source if mount.writable else _reachable(source, user, cleanup)
    if spec.python is not None:
        prefix = _reachable_python(spec.python.prefix.resolve(), user, cleanup)
        host_paths[str(spec.python.prefix)] = prefix
        site = host_paths.get(str(spec.python.site_packages))
        _make_python(folder / "python", spec.python, prefix, site)
    # Without these entries, `host_path_of` would change host paths below /tmp.
    identity = {str(path): str(path) for path in (folder, *host_paths.values())}
    return LandlockFiles(
        path=folder,
        writable={name: str(folder / name) for name in _WRITABLE_FOLDERS},
        host_paths={target: str(path) for target, path in host_paths.items()} | identity,
    )


def variables(
    spec: SandboxSpec, files: LandlockFiles, defaults: Mapping[str, str]
) -> dict[str, str]:
    """Returns the environment variables of commands; `_PATH_VARIABLES` have host paths.

    The fixed variables and the spec's variables take precedence over ``defaults``.
    """
    env = {"TMPDIR": TMP} | environment(spec, first=(str(files.path / "python" / "bin"),))
    for name in _PATH_VARIABLES & env.keys():
        env[name] = ":".join(host_path_of(part, files.host_paths) for part in env[name].split(":"))
    return dict(defaults) | env


def _make_python(folder: Path, python: Interpreter, prefix: Path, site: Path | None) -> None:
    """Makes a virtual environment whose only packages are those that the spec mounts.

    If ``sys.path`` contained the interpreter's folder of packages, imports from that folder would
    raise PermissionError instead of ModuleNotFoundError.
    """
    executable = prefix / python.executable.relative_to(python.prefix)
    (folder / "bin").mkdir(parents=True)
    for name in python.names:
        (folder / "bin" / name).symlink_to(executable)
    (folder / "pyvenv.cfg").write_text(
        f"home = {executable.parent}\ninclude-system-site-packages = false\n", encoding="utf-8"
    )
    packages = folder / "lib" / python.names[-1] / "site-packages"
    packages.parent.mkdir(parents=True)
    if site is None:
        packages.mkdir()
    else:
        packages.symlink_to(site)


def _reachable(path: Path, user: User, cleanup: ExitStack) -> Path:
    """Returns a path at which a user can read a host folder or file: ``path`` or a copy's path.

    Commands run as a user who cannot enter root's home, even if Landlock allows it.
    """
    if _parents_are_traversable(path, user):
        return path
    # Folders of the cache never change, and listing a large folder takes longer than an open.
    is_fixed = path.is_file() or path.is_relative_to(cache_folder().resolve())
    return _borrow(path, user, cleanup, () if is_fixed else _fingerprint(path))


def _fingerprint(folder: Path) -> tuple[object, ...]:
    """Returns path, size and change time of every entry of a folder."""
    entries = united((folder,)).items()
    stats = ((name, entry.stat(follow_symlinks=False)) for name, entry in entries)
    return tuple((name, stat.st_size, stat.st_ctime_ns) for name, stat in stats)


def _reachable_python(prefix: Path, user: User, cleanup: ExitStack) -> Path:
    """Returns an interpreter's prefix, or a copy of it without third-party packages.

    Python lists the folder of its modules to find them. Landlock cannot allow a listing of a
    folder but refuse listings of its subfolders, where most installations keep such packages.
    """
    packages = [path for pattern in PACKAGE_FOLDERS for path in prefix.glob(pattern)]
    is_mixed = any((path.parent / "os.py").exists() for path in packages)
    if not is_mixed and _parents_are_traversable(prefix, user):
        return prefix
    return _borrow(prefix, user, cleanup, is_included=_is_needed)


def _parents_are_traversable(path: Path, user: User) -> bool:
    """Returns whether a user may enter every folder above a path; the user owns none of them."""
    stats = [folder.stat() for folder in path.parents]
    return all(stat.st_mode & (0o010 if stat.st_gid == user[1] else 0o001) for stat in stats)


def _is_needed(entry: "os.DirEntry[str]") -> bool:
    """Returns whether an entry of an interpreter's prefix is copied; packages and tests are not."""
    name = entry.name
    return name not in _SKIPPED_NAMES and not name.endswith(".a")


class _Copy:
    """A copy of a host folder or file.

    The copy is removed when no sandbox and no cache entry uses this object, or at exit.

    One group may enter the folder of the copy. Files keep owner and mode, so a file that the user
    may not read stays unreadable.
    """

    def __init__(self, source: Path, gid: int, is_included: IsIncluded) -> None:
        folder = make_folder("copies")
        weakref.finalize(self, remove_unless_fork, folder, os.getpid())
        os.chown(folder, -1, gid)
        folder.chmod(0o710)
        self.path = folder / source.name
        content = united((source,), is_included) if source.is_dir() else {}
        entries = {f"{source.name}/{name}": entry for name, entry in content.items()}
        layer_union.copy({source.name: source, **entries}, folder)


_copies: ProcessCache[_Copy] = ProcessCache(_NUM_RECENT_COPIES)


def _borrow(
    source: Path,
    user: User,
    cleanup: ExitStack,
    fingerprint: tuple[object, ...] = (),
    is_included: IsIncluded = lambda _: True,
) -> Path:
    """Returns the path of a shared copy, which exists at least until ``cleanup`` closes."""
    info = source.stat()
    key = (os.getpid(), source, info.st_ino, info.st_mtime_ns, fingerprint, user[1], is_included)
    copy = _copies.get(key, lambda: _Copy(source, user[1], is_included))
    cleanup.callback(id, copy)  # keeps a reference to the copy
    return copy.path
