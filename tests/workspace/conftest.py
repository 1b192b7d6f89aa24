"""Templates of one small program, in a store for the test run."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from workspace_scene import Refused, make_task

from coding_gym.errors import CodingGymError, InvalidTaskError
from coding_gym.sandbox import Sandbox, open_sandbox
from coding_gym.task import Task
from coding_gym.workspace import Template, TemplateStore, environment


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> TemplateStore:
    return TemplateStore(folder=tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="session")
def template(store: TemplateStore) -> Template:
    return store.get(make_task())


@pytest.fixture
def sandbox(template: Template) -> Iterator[Sandbox]:
    with open_sandbox(template.spec) as sandbox:
        yield sandbox


@pytest.fixture
def fresh_folder(store_folder: Path, tmp_path: Path) -> Path:
    """A store's folder with only the pytest layers, which take a second to build."""
    folder = tmp_path / "store"
    shutil.copytree(store_folder / "pytest", folder / "pytest", copy_function=os.link)
    return folder


@pytest.fixture
def without_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes environments without pip, which takes a tenth of the time."""
    monkeypatch.setattr(environment, "_VENV", f"{environment._VENV} --without-pip")


@pytest.fixture(scope="session")
def store_folder(template: Template) -> Path:
    """The folder of ``store``, after it has built a template."""
    return template.spec.layers[0].parents[2]


@pytest.fixture
def refused(fresh_folder: Path) -> Refused:
    """Returns a function that asserts that a task gets no template, and returns the error."""

    def refuse(task: Task, kind: type[CodingGymError] = InvalidTaskError) -> str:
        with pytest.raises(kind) as caught:
            TemplateStore(folder=fresh_folder).get(task)
        assert "\n" not in str(caught.value)
        for kind in ("templates", "environments"):
            assert not any(fresh_folder.glob(f"{kind}/*/"))
        return str(caught.value)

    return refuse
