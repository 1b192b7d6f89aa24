"""Fixtures of all tests: the cache of the test run, the tiny task and its environments."""

import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from episodes import TINY_ROW, Closing, MakeEnv
from grading_fixtures import grade_tree, store, suite_of
from sandbox_fixtures import write_rows

from coding_gym.envs import CodingRepairEnv
from coding_gym.sandbox.zygotes import stop_zygotes

__all__ = ["grade_tree", "store", "suite_of"]

_SHARED = pytest.StashKey[Path]()
_EXAMPLES = Path(__file__).parents[1] / "examples"


def pytest_configure(config: pytest.Config) -> None:
    """Creates the folder that all workers of the test run share."""
    existing = getattr(config, "workerinput", {}).get("shared_folder")
    folder = Path(existing or tempfile.mkdtemp(prefix="coding-gym-tests-"))
    config.stash[_SHARED] = folder
    if existing is None:
        config.add_cleanup(lambda: shutil.rmtree(folder))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Passes the path of the shared folder to a worker of pytest-xdist."""
    node.workerinput["shared_folder"] = str(node.config.stash[_SHARED])


@pytest.fixture(scope="session", autouse=True)
def own_cache(pytestconfig: pytest.Config) -> Iterator[None]:
    """Sets the cache to the shared folder, so that tests do not change the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(pytestconfig.stash[_SHARED] / "cache"))
        yield


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system of 5 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=5m", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    stop_zygotes()  # zygotes have the mounts of their start time
    yield folder
    stop_zygotes()
    subprocess.run(["umount", "-l", str(folder)], check=True)  # noqa: S607 - the path of umount varies


@pytest.fixture
def tiny_row() -> dict[str, Any]:
    """The row of the tiny task, with inline files: ``area`` adds instead of multiplying."""
    return deepcopy(TINY_ROW)


@pytest.fixture
def rows(tiny_row: dict[str, Any], tmp_path: Path) -> Path:
    """A JSONL file with the row of the tiny task."""
    return write_rows(tmp_path / "rows.jsonl", tiny_row)


@pytest.fixture
def closing() -> Iterator[Closing]:
    """A function that returns its argument, and closes the argument after the test."""
    with ExitStack() as stack:

        def close_later(resource: Any) -> Any:
            stack.callback(resource.close)
            return resource

        yield close_later


@pytest.fixture
def make_env(tiny_row: dict[str, Any], closing: Closing) -> MakeEnv:
    """A function that returns an env of the tiny task, or of its argument ``tasks``."""

    def make(**arguments: Any) -> CodingRepairEnv:
        env: CodingRepairEnv = closing(CodingRepairEnv(**{"tasks": [tiny_row]} | arguments))
        return env

    return make


@pytest.fixture
def run_example(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., list[str]]:
    """A function that runs an example script in this process and returns the printed lines."""

    def run(name: str, *options: str) -> list[str]:
        script = _EXAMPLES / name
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        monkeypatch.syspath_prepend(str(script.parent))  # as Python does for a script
        monkeypatch.setattr(sys, "argv", [str(script), *options])
        runpy.run_path(str(script), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return run
