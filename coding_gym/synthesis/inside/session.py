"""One run of pytest in this process, and what it needs to start fast."""

# ruff: noqa: TID252 - in the sandbox this package has another name

from __future__ import annotations

import importlib
import os
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Runs more of a test that draws from chance: one that passes half the time does in one of 256.
NUM_CHANCES = 8
# Where each test has a limit of its own, a run of tests that all wait for ever may last so long.
MAX_STILL_S = 60.0


def root_folder() -> str:
    """Returns the project's folder, with a slash at its end."""
    return f"{os.path.realpath(Path.cwd())}/"


def run_pytest(arguments: Iterable[str], plugins: list[Any]) -> None:
    """Runs pytest, its output thrown away."""
    sys.stdout.flush()
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)
    root = str(Path.cwd())
    if sys.path[0] != root:
        sys.path.insert(0, root)
    sys.argv = [str(pytest.__file__), *arguments]
    pytest.main([*arguments, "-p", "no:cacheprovider", f"--rootdir={root}"], plugins=plugins)


def run_tests(
    arguments: Iterable[str], root: str, options: Mapping[str, object], chance: int, **choices: Any
) -> Recorder:
    """Runs tests once, and returns what was noted.

    Args:
        arguments: What pytest is told.
        root: The project's folder, with a slash at its end.
        options: Values of pytest's options; see `Recorder`.
        chance: Seed of the random generator that all tests share.
        choices: More arguments of `Recorder`.
    """
    random.seed(chance)
    recorder = Recorder(root, options, **choices)
    run_pytest(arguments, [recorder])
    return recorder


def foreign_modules(root: str) -> list[str]:
    """Returns the imported modules that are not the project's, in the order of their import."""
    return [
        name
        for name, module in list(sys.modules.items())
        if not str(getattr(module, "__file__", None) or root).startswith(root)
    ]


def preload(names: Iterable[str], root: str) -> None:
    """Imports what tests need beside the project, so that forks have it already.

    A module that would bring the project in, which is not broken yet, is forgotten again.
    """
    for name in names:
        if name in sys.modules:
            continue
        before = set(sys.modules)
        try:
            importlib.import_module(name)
        except BaseException:  # noqa: BLE001, S112 - what a test imports one way may refuse another
            continue
        new = set(sys.modules) - before
        if any(str(getattr(sys.modules[n], "__file__", "")).startswith(root) for n in new):
            for one in new:
                del sys.modules[one]
