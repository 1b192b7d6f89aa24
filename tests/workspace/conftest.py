"""Templates of one small program, and of tasks made from it, in a store of the test run's own."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from workspace_scene import Refused

from coding_gym.errors import CodingGymError
from coding_gym.sandbox import Sandbox, open_sandbox
from coding_gym.task import FilesTree, Task
from coding_gym.workspace import Template, TemplateStore, environment

FILES = {
    ".gitignore": "*.log\nbuild/\n",
    "README.md": "# Program\n\nWhat it does.\n",
    "pkg/__init__.py": "",
    "pkg/core.py": "".join(f"LINE_{n} = {n}\n" for n in range(20)),
    "pkg/sub/.gitignore": "local_*\n",
    "pkg/sub/deep.py": "DEEP = True\n",
    "tests/test_core.py": "def test_core():\n    assert True\n",
}


@pytest.fixture(scope="session")
def make_task() -> Callable[..., Task]:
    """Returns a function that makes a task of the program, with other fields than usual."""

    def make(**fields: Any) -> Task:
        usual = {
            "task_id": "program-1",
            "tree": FilesTree(FILES),
            "problem_statement": "It is wrong.",
            "created_at": "2024-05-14T09:30:00Z",
        }
        return Task(**(usual | fields))

    return make


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> TemplateStore:
    return TemplateStore(folder=tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="session")
def template(store: TemplateStore, make_task: Callable[..., Task]) -> Template:
    return store.get(make_task())


@pytest.fixture
def sandbox(template: Template) -> Iterator[Sandbox]:
    with open_sandbox(template.spec) as opened:
        yield opened


@pytest.fixture
def fresh_folder(store_folder: Path, tmp_path: Path) -> Path:
    """A store's folder with nothing but the pytest layers, which take a second to make."""
    folder = tmp_path / "store"
    shutil.copytree(store_folder / "pytest", folder / "pytest", copy_function=os.link)
    return folder


@pytest.fixture
def without_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes environments without pip, in a tenth of the time."""
    monkeypatch.setattr(environment, "VENV", f"{environment.VENV} --without-pip")


@pytest.fixture(scope="session")
def store_folder(template: Template) -> Path:
    """The folder of ``store``, once it holds something."""
    return template.spec.layers[0].parents[2]


@pytest.fixture
def refused(fresh_folder: Path) -> Refused:
    """Returns a function that gives the one-line error of a task that must not get a template."""

    def refuse(task: Task) -> CodingGymError:
        with pytest.raises(CodingGymError) as caught:
            TemplateStore(folder=fresh_folder).get(task)
        assert "\n" not in str(caught.value)
        places = ("templates", "environments")
        assert [left for place in places for left in fresh_folder.glob(f"{place}/*/")] == []
        return caught.value

    return refuse
