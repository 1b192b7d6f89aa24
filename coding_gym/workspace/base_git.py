"""A second, read-only git folder of the base commit, against which patches are computed.

A policy can change the ``.git`` of the checkout, but not this folder.
"""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from coding_gym.workspace.history import ATTRIBUTES_OFF
from coding_gym.workspace.host_git import GIT_SETTINGS, run_git
from coding_gym.workspace.template import BASE_IGNORES, BASE_PATHS

_GITLINK = "160000"
_REGULAR = ("100644", "100755")

_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"

# Caches of tools and editors are not part of a patch, even if no `.gitignore` names them.
_CACHES = (
    b"__pycache__/\n*.py[co]\n.pytest_cache/\n.mypy_cache/\n.ruff_cache/\n.hypothesis/\n"
    b".*.sw[a-p]\n"
)


@dataclass(frozen=True, slots=True)
class BaseFiles:
    """The files of the base commit.

    Attributes:
        paths: Files and symlinks, in git's order.
        ignores: The ``.gitignore`` files in ``paths``.
        gitlinks: Submodules, which stay empty.
    """

    paths: tuple[str, ...]
    ignores: tuple[str, ...]
    gitlinks: tuple[str, ...]


def list_base(tree: Path) -> BaseFiles:
    """Returns the files in the index of ``tree``."""
    stages = run_git("ls-files", "--stage", "-z", cwd=tree).split("\0")[:-1]
    modes = {path: stage.split(" ", 1)[0] for stage, path in (s.split("\t", 1) for s in stages)}
    ignores = (path for path in modes if PurePosixPath(path).name == ".gitignore")
    return BaseFiles(
        paths=tuple(path for path, mode in modes.items() if mode != _GITLINK),
        ignores=tuple(path for path in ignores if modes[path] in _REGULAR),
        gitlinks=tuple(path for path, mode in modes.items() if mode == _GITLINK),
    )


def exclude_patterns(paths: tuple[str, ...]) -> bytes:
    """Returns the content of ``info/exclude`` for caches of tools and for these paths.

    Paths with a line feed are skipped, because the file format cannot express them.
    """
    patterns = (re.sub(r"[\\*?[ !#]", r"\\\g<0>", path) for path in paths if "\n" not in path)
    return _CACHES + b"".join(os.fsencode(f"/{pattern}\n") for pattern in patterns)


def write_base_git(folder: Path, tree: Path, base: BaseFiles, exclude: bytes) -> None:
    """Writes the second git folder of a checkout, with hard links to the objects of ``.git``.

    Args:
        folder: A new, empty folder.
        tree: The checkout.
        base: The files of the base commit.
        exclude: The patterns of ``info/exclude``.
    """
    git = tree / ".git"
    shutil.copytree(git / "objects", folder / "objects", copy_function=os.link)
    shutil.copytree(git / "refs", folder / "refs")
    for name in ("HEAD", "shallow"):
        if (git / name).exists():
            shutil.copy(git / name, folder / name)
    (folder / "config").write_text(_CONFIG + GIT_SETTINGS.read_text())
    (folder / "info").mkdir()
    (folder / "info" / "attributes").write_text(ATTRIBUTES_OFF)
    (folder / "info" / "exclude").write_bytes(exclude)
    (folder / BASE_PATHS).write_bytes(b"".join(os.fsencode(path) + b"\0" for path in base.paths))
    (folder / BASE_IGNORES).mkdir()
    for path in base.ignores:
        target = folder / BASE_IGNORES / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(tree / path, target)
