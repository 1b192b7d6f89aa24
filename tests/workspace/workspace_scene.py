"""Shared by tests of workspaces: tasks of a small program, repositories, unfinished builds."""

import multiprocessing
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from image_fixtures import PACKAGES
from sandbox_fixtures import commit

from coding_gym.sandbox import open_sandbox
from coding_gym.sandbox.folder_cache import FolderCache
from coding_gym.task import FilesTree, Task
from coding_gym.workspace import Template

_SPAWN = multiprocessing.get_context("spawn")
# Builds the template of a task, which must fail with an error type; returns the message.
Refused = Callable[..., str]
FILES = {
    ".gitignore": "*.log\nbuild/\n",
    "README.md": "# Program\n\nWhat it does.\n",
    "pkg/__init__.py": "",
    "pkg/core.py": "".join(f"LINE_{n} = {n}\n" for n in range(20)),
    "pkg/sub/.gitignore": "local_*\n",
    "pkg/sub/deep.py": "DEEP = True\n",
    "tests/test_core.py": "def test_core():\n    assert True\n",
}


def _build(folder: Path, begun: Event, go: Event) -> None:
    def build(part: Path) -> None:
        (part / "half").touch()
        begun.set()
        go.wait()
        (part / "whole").touch()

    FolderCache(folder).get("key", build)


@contextmanager
def building(folder: Path) -> Iterator[tuple[BaseProcess, Event]]:
    """Yields a process that is building the cache entry "key", and a way to let it continue."""
    begun, go = _SPAWN.Event(), _SPAWN.Event()
    process = _SPAWN.Process(target=_build, args=(folder, begun, go))
    process.start()
    assert begun.wait(30)
    yield process, go
    process.kill()
    process.join()


def make_task(**fields: Any) -> Task:
    """Makes a task of the program; the arguments replace its usual fields."""
    usual = {
        "task_id": "program-1",
        "tree": FilesTree(FILES),
        "problem_statement": "It is wrong.",
        "created_at": "2024-05-14T09:30:00Z",
    }
    return Task(**(usual | fields))


def inside(template: Template, command: str) -> str:
    """Runs a command that must succeed in a sandbox of a template."""
    with open_sandbox(template.spec) as sandbox:
        result = sandbox.run(command)
        assert result.ok, result.output
        return result.output


def make_repository(folder: Path, *texts: str) -> list[str]:
    """Commits texts of ``code.py``, to a new repository if there is none; returns the commits."""
    return [commit(folder, {"code.py": text}, text) for text in texts]


MakeTask = Callable[..., Task]
SITE = f"opt/python/lib/python{sys.version_info.major}.{sys.version_info.minor}/{PACKAGES}"
PROJECT = {
    ".gitignore": "*.so\n*.egg-info\nconfig.local\n",
    "config.local": "tracked all the same\n",
    "src/shapes.py": "def area(width, height):\n    return width + height\n",
    "tests/test_shapes.py": (
        "from shapes import area\n\n\ndef test_square():\n    assert area(2, 2) == 4\n"
    ),
}
BUILT = {
    "src/native.so": "machine code",
    "shapes.egg-info/PKG-INFO": "Name: shapes\n",
    "notes.txt": "neither tracked nor ignored\n",
}
