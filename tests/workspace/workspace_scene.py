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
Refused = Callable[..., str]  # the fixture ``refused``
FILES = {
    ".gitignore": "*.log\nbuild/\n",
    "README.md": "# Program\n\nWhat it does.\n",
    "pkg/__init__.py": "",
    "pkg/core.py": "".join(f"LINE_{n} = {n}\n" for n in range(20)),
    "pkg/sub/.gitignore": "local_*\n",
    "pkg/sub/deep.py": "DEEP = True\n",
    "tests/test_core.py": "def test_core():\n    assert True\n",
}


def _build(folder: Path, started: Event, resume: Event) -> None:
    def build(part: Path) -> None:
        (part / "half").touch()
        started.set()
        resume.wait()
        (part / "whole").touch()

    FolderCache(folder).get("key", build)


@contextmanager
def building(folder: Path) -> Iterator[tuple[BaseProcess, Event]]:
    """Yields a process that pauses in the build of entry "key", and the event that resumes it."""
    started, resume = _SPAWN.Event(), _SPAWN.Event()
    process = _SPAWN.Process(target=_build, args=(folder, started, resume))
    process.start()
    assert started.wait(30)
    yield process, resume
    process.kill()
    process.join()


def make_task(**fields: Any) -> Task:
    """Returns a task of the program; the arguments replace its default fields."""
    defaults = {
        "task_id": "program-1",
        "tree": FilesTree(FILES),
        "problem_statement": "It is wrong.",
        "created_at": "2024-05-14T09:30:00Z",
    }
    return Task(**(defaults | fields))


def inside(template: Template, command: str) -> str:
    """Returns the output of a command in a sandbox of a template; asserts that it succeeds."""
    with open_sandbox(template.spec) as sandbox:
        result = sandbox.run(command)
        assert result.ok, result.output
        return result.output


def make_repository(folder: Path, *texts: str) -> list[str]:
    """Commits each text as ``code.py``, after the existing commits; returns the new shas."""
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
