"""Patches of a policy's own making, as where it replaced git in its image."""

import base64
from typing import Any

import pytest
from making_images import (
    GIT_PROGRAMS,
    docker_archive,
    folder,
    python_with_pytest,
    symlink,
    system,
    tar_of,
)

from coding_gym.grade import GradeReason
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.sandbox import open_sandbox
from coding_gym.task import Task
from coding_gym.workspace import Template, TemplateStore, diff


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    entries = [*system(*GIT_PROGRAMS), folder("usr"), symlink("usr/bin", "/bin")]
    path = tmp_path_factory.mktemp("image") / "image.tar"
    layers = [tar_of([*entries, *python_with_pytest()])]
    return str(docker_archive(path, layers, Env=["PATH=/opt/python/bin:/bin"]))


@pytest.fixture
def task(tiny_row: dict[str, Any], image: str) -> Task:
    row = tiny_row | {"image": image, "interpreter": "image"}
    row["files"] = row["files"] | {".gitignore": "*.so\n"}
    row["PASS_TO_PASS"] = []
    row["test_patch"] = row["test_patch"].replace("test_hidden", "tests/test_hidden")
    row["FAIL_TO_PASS"] = [f"tests/{name}" for name in row["FAIL_TO_PASS"]]
    return Task.from_row(row)


@pytest.fixture(scope="session")
def image_store(tmp_path_factory: pytest.TempPathFactory) -> TemplateStore:
    return TemplateStore(folder=tmp_path_factory.mktemp("image-store"))


@pytest.fixture
def template(image_store: TemplateStore, task: Task) -> Template:
    return image_store.get(task)


def _new_file(path: str, text: str, *, old: str = "a", new: str = "b", header: bool = True) -> str:
    lines = "".join(f"+{line}\n" for line in text.splitlines())
    count = len(text.splitlines())
    start = f"diff --git {old}/{path} {new}/{path}\nnew file mode 100644\n" if header else ""
    return f"{start}--- /dev/null\n+++ {new}/{path}\n@@ -0,0 +1,{count} @@\n{lines}"


_HONEST = _new_file("a.py", "x = 1\n")


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("conftest.py", _new_file("conftest.py", "import os\nos._exit(0)\n", header=False)),
        ("tests/data.py", _new_file("tests/data.py", "x = 2\n", old="x", new="y")),
    ],
    ids=["behind the lines of another file", "under other prefixes"],
)
def test_it_cannot_hide_what_it_changes(
    task: Task, template: Template, path: str, more: str
) -> None:
    """Git applies what our own reading of the text takes for something else."""
    with open_sandbox(template.spec) as sandbox:
        sandbox.write_file("/forged", base64.b64encode((_HONEST + more).encode()))
        trick = "printf '#!/bin/bash\\ncat /forged\\n' > /bin/base64; echo x > any.py"
        assert sandbox.run(trick).ok
        forged = diff(sandbox, template)
    assert forged.text == _HONEST + more
    verdict = grade(task, template, forged)
    assert verdict.dropped_paths == (path,)
    assert verdict.reason is GradeReason.TESTS_FAILED


def test_it_holds_no_file_that_no_patch_has(task: Task, template: Template) -> None:
    assert grade(task, template, Patch(_HONEST)).reason is GradeReason.TESTS_FAILED
    ignored = grade(task, template, Patch(_new_file("a.so", "code\n")))
    assert ignored.reason is GradeReason.EMPTY_PATCH


@pytest.mark.parametrize("text", ["no patch", "--- a/x\n+++ b/x\n", "diff --git a/x", "\ud800"])
def test_one_that_cannot_be_read_is_the_policys_failure(
    task: Task, template: Template, text: str
) -> None:
    assert grade(task, template, Patch(text)).reason is GradeReason.PATCH_NOT_APPLIED


def test_the_gold_patch_resolves_all_the_same(task: Task, template: Template) -> None:
    assert grade(task, template, Patch(task.gold_patch)).resolved
