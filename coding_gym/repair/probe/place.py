"""Where the driver works: its folder, the private copy of the tree, what it remembers."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent
TREE = FOLDER / "tree"
STATE = FOLDER / "state.json"
REPLY = FOLDER / "reply.txt"


def copy_tree(workspace: Path) -> None:
    """Copies the workspace without its git folder, so that nothing is ever left behind there."""
    shutil.rmtree(TREE, ignore_errors=True)
    shutil.copytree(workspace, TREE, symlinks=True, ignore=shutil.ignore_patterns(".git"))


def enter_tree(workspace: Path) -> None:
    """Makes the copy the current folder and puts it where imports would find the workspace."""
    os.chdir(TREE)
    own = [str(FOLDER), "", str(workspace)]
    paths = [_moved(path, workspace) for path in sys.path if path not in own]
    sys.path[:] = [str(TREE), *paths]
    inherited = os.environ.pop("PYTHONPATH", "").split(os.pathsep)
    kept = [_moved(path, workspace) for path in inherited if path not in ("", str(FOLDER))]
    if kept:
        os.environ["PYTHONPATH"] = os.pathsep.join(kept)
    for finder in sys.meta_path:
        module = sys.modules.get(getattr(finder, "__module__", ""))
        mapping = getattr(module, "MAPPING", None)  # an editable install of setuptools
        if isinstance(mapping, dict):
            for name, path in mapping.items():
                mapping[name] = _moved(str(path), workspace)


def remember(values: dict[str, Any]) -> None:
    """Keeps values for the driver's next call."""
    STATE.write_text(json.dumps(values), encoding="utf-8")


def recall() -> dict[str, Any]:
    """Returns what `remember` kept."""
    values: dict[str, Any] = json.loads(STATE.read_text(encoding="utf-8"))
    return values


def is_program(path: str) -> bool:
    """Whether a file of the copy, given by its absolute path, is part of the program."""
    root = str(TREE) + os.sep
    if not path.startswith(root) or not path.endswith(".py"):
        return False
    *folders, name = Path(path[len(root) :]).parts
    if name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py":
        return False
    return not {"tests", "test", "site-packages", ".venv", "venv"} & set(folders)


def relative(path: str) -> str:
    """Returns a file's path relative to the copy."""
    return Path(path).relative_to(TREE).as_posix()


def _moved(path: str, workspace: Path) -> str:
    try:
        return str(TREE / Path(path).relative_to(workspace))
    except ValueError:
        return path
