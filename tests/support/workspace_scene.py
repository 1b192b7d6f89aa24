"""One small program, tasks made from it, and types of the fixtures of tests of workspaces."""

from collections.abc import Callable
from typing import Any

from coding_gym.errors import CodingGymError
from coding_gym.task import FilesTree, Task

Refused = Callable[[Task], CodingGymError]
FILES = {
    ".gitignore": "*.log\nbuild/\n",
    "README.md": "# Program\n\nWhat it does.\n",
    "pkg/__init__.py": "",
    "pkg/core.py": "".join(f"LINE_{n} = {n}\n" for n in range(20)),
    "pkg/sub/.gitignore": "local_*\n",
    "pkg/sub/deep.py": "DEEP = True\n",
    "tests/test_core.py": "def test_core():\n    assert True\n",
}


def make_task(**fields: Any) -> Task:
    """Makes a task of the program, with other fields than usual."""
    usual = {
        "task_id": "program-1",
        "tree": FilesTree(FILES),
        "problem_statement": "It is wrong.",
        "created_at": "2024-05-14T09:30:00Z",
    }
    return Task(**(usual | fields))
