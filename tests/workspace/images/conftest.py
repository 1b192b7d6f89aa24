"""An image that contains a project, and a task in this image."""

from typing import Any

import pytest
from image_fixtures import (
    GIT_PROGRAMS,
    Entry,
    entry,
    folder,
    oci_layout,
    python_with_pytest,
    symlink,
    system,
    tar_of,
)
from sandbox_fixtures import run_git, write_files
from workspace_scene import BUILT, PROJECT, SITE, MakeTask

from coding_gym.task import Task
from coding_gym.tasks.task_row import read_task
from coding_gym.workspace import Template, TemplateStore


@pytest.fixture(scope="session")
def layers(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """A layer with Python, pytest and git; a layer with an installed project and its history."""
    source = tmp_path_factory.mktemp("project")
    write_files(source, PROJECT)
    run_git(source, "init", "-q")
    run_git(source, "add", "-f", ".")
    run_git(source, "commit", "-q", "-m", "the fix is in the future of this history")
    write_files(source, BUILT)
    (source / ".git" / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch /hacked\n"
    )
    project: list[Entry] = [
        entry(f"testbed/{path.relative_to(source)}", path.read_bytes())
        for path in source.rglob("*")
        if path.is_file()
    ]
    base = [*system(*GIT_PROGRAMS), symlink("usr/bin", "/bin"), *python_with_pytest()]
    path_file = entry(f"{SITE}/shapes.pth", "/testbed/src\n")
    return [tar_of(base), tar_of([folder("testbed"), *project, path_file])]


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory, layers: list[bytes]) -> str:
    path = tmp_path_factory.mktemp("image") / "image"
    env = ["PATH=/opt/python/bin:/bin", "SHAPE=round"]
    return str(oci_layout(path, layers, Env=env, WorkingDir="/testbed"))


@pytest.fixture
def make_image_task(image: str, tiny_row: dict[str, Any]) -> MakeTask:
    def make(**fields: Any) -> Task:
        row = {k: v for k, v in tiny_row.items() if k != "files"}
        row["patch"] = row["patch"].replace("shapes.py", "src/shapes.py")
        row["PASS_TO_PASS"] = ["tests/test_shapes.py::test_square"]
        row |= {"image": image, "image_path": "/testbed"}
        return read_task({k: v for k, v in (row | fields).items() if v is not None})

    return make


@pytest.fixture
def template(store: TemplateStore, make_image_task: MakeTask) -> Template:
    return store.get(make_image_task())
