"""Templates of tasks in an image: their base files, and errors for unsuitable images."""

import contextlib
from pathlib import Path
from typing import Any

import pytest
from image_fixtures import Entry, entry, oci_layout, tar_of
from sandbox_fixtures import stripped_output as output
from workspace_scene import BUILT, PROJECT, SITE, MakeTask

from coding_gym.errors import InvalidTaskError, PatchError, TemplateError
from coding_gym.sandbox import open_sandbox
from coding_gym.workspace import Template, TemplateStore, diff

pytestmark = pytest.mark.slow


def test_ignore_files_select_the_base_without_git_history(
    store: TemplateStore, make_image_task: MakeTask, tmp_path: Path, layers: list[bytes]
) -> None:
    layer = tar_of(
        entry(f"plain/{name}", text)
        for name, text in (PROJECT | BUILT).items()
        if name != "config.local"
    )
    image = oci_layout(tmp_path / "image", [*layers, layer], Env=["PATH=/opt/python/bin:/bin"])
    template = store.get(make_image_task(image=str(image), image_path="/plain"))
    with open_sandbox(template.spec) as sandbox:
        paths = output(sandbox, "git ls-files").split()
        assert paths == [".gitignore", "notes.txt", "src/shapes.py", "tests/test_shapes.py"]
        assert output(sandbox, "cat src/native.so; git status --porcelain") == "machine code"


def test_a_tree_of_another_owner_is_split_by_its_git(
    store: TemplateStore, make_image_task: MakeTask, tmp_path: Path, layers: list[bytes]
) -> None:
    other_owner = "GIT_TEST_ASSUME_DIFFERENT_OWNER"  # a variable of git's own tests
    env = ["PATH=/opt/python/bin:/bin", f"{other_owner}=1"]
    image = oci_layout(tmp_path / "image", layers, Env=env)
    with open_sandbox(store.get(make_image_task(image=str(image))).spec) as sandbox:
        assert "dubious" in sandbox.run("git status").output
        assert output(sandbox, f"{other_owner}=0 git ls-files").split() == sorted(PROJECT)


def test_warnings_of_an_images_python_are_ignored(
    store: TemplateStore, make_image_task: MakeTask, tmp_path: Path, layers: list[bytes]
) -> None:
    warn = entry(f"{SITE}/warn.pth", "import sys; sys.stderr.write('a warning of python: x\\n')\n")
    env = ["PATH=/opt/python/bin:/bin"]
    image = oci_layout(tmp_path / "image", [*layers, tar_of([warn])], Env=env)
    with open_sandbox(store.get(make_image_task(image=str(image))).spec) as sandbox:
        assert output(sandbox, "python -c 'print(1)'").endswith("1")


UNUSABLE: dict[str, tuple[dict[str, Any], list[Entry], str]] = {
    "no folder": ({"image_path": "/nothing"}, [], "/nothing"),
    "no interpreter": ({"interpreter": "/opt/none/python"}, [], "/opt/none/python"),
    "no image": ({"image": "gone/away"}, [], "gone/away"),
    "no git": ({}, [entry("bin/.wh.git"), entry("bin/.wh.xargs")], "git, xargs"),
    "no pytest": ({}, [entry(f"{SITE}/.wh.pytest")], "pytest"),
    "no Python": ({}, [entry("opt/.wh.python")], "Python"),
    "a broken repository": ({}, [entry("testbed/.git/config", "[core")], "bad config"),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_an_image_unusable_for_a_task_is_refused(
    store: TemplateStore, make_image_task: MakeTask, tmp_path: Path, layers: list[bytes], case: str
) -> None:
    fields, entries, message = UNUSABLE[case]
    env = ["PATH=/opt/python/bin:/bin"]
    image = oci_layout(tmp_path / "image", [*layers, tar_of(entries)], Env=env)
    task = make_image_task(**{"image": str(image)} | fields)
    kinds = (InvalidTaskError, TemplateError) if fields else TemplateError
    with pytest.raises(kinds, match=message) as caught:
        store.get(task)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "trick",
    [
        "rm /bin/bash",
        "rm -rf /bin /usr; true",
        "printf '#!/bin/bash\\necho %%%%%%' > /bin/base64",
        "printf '#!/bin/bash\\necho garbage; exit 1\\n' > /bin/git",
    ],
)
def test_a_policy_that_breaks_the_image_loses_no_files(template: Template, trick: str) -> None:
    with open_sandbox(template.spec) as sandbox:
        output(sandbox, "echo x > src/new.py")
        sandbox.run(trick)
        sandbox.run("true")
        with contextlib.suppress(PatchError):
            assert diff(sandbox, template).paths <= {"src/new.py"}
        assert sandbox.run("true", timeout_s=20).exit_code in {0, 126, 127}
        assert sandbox.read_file("src/new.py") == b"x\n"
