"""Templates of tasks in an image: what makes another one, and what an image may lack."""

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from image_fixtures import Entry, docker_archive, entry, tar_of
from image_project import BUILT, PROJECT, SITE, MakeTask
from sandbox_fixtures import stripped_output as output

from coding_gym.errors import InvalidTaskError, PatchError, TemplateError
from coding_gym.sandbox import open_sandbox
from coding_gym.sandbox.spec import Shell
from coding_gym.workspace import Template, TemplateStore, diff

pytestmark = pytest.mark.slow


def test_without_git_history_ignore_files_decide(
    store: TemplateStore, make_image_task: MakeTask, tmp_path: Path, layers: list[bytes]
) -> None:
    plain = tar_of(
        entry(f"plain/{name}", text)
        for name, text in (PROJECT | BUILT).items()
        if name != "config.local"
    )
    image = docker_archive(
        tmp_path / "image.tar", [*layers, plain], Env=["PATH=/opt/python/bin:/bin"]
    )
    template = store.get(make_image_task(image=str(image), image_path="/plain"))
    with open_sandbox(template.spec) as sandbox:
        tracked = output(sandbox, "git ls-files").split()
        assert tracked == [".gitignore", "notes.txt", "src/shapes.py", "tests/test_shapes.py"]
        assert output(sandbox, "cat src/native.so; git status --porcelain") == "machine code"


def test_another_image_gives_another_template(
    store: TemplateStore, make_image_task: MakeTask, template: Template, tmp_path: Path,
    layers: list[bytes],
) -> None:  # fmt: skip
    image = docker_archive(tmp_path / "image.tar", layers, Env=["PATH=/opt/python/bin:/bin"])
    assert store.get(make_image_task(image=str(image))).key != template.key


def test_a_path_puts_a_python_first(store: TemplateStore, make_image_task: MakeTask) -> None:
    template = store.get(make_image_task(interpreter="/opt/python/bin/python3"))
    with open_sandbox(template.spec) as sandbox:
        assert output(sandbox, "python -c 'import sys; print(sys.executable)'") == (
            "/opt/python/bin/python3"
        )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"image_path": "/nothing"}, "'image_path' names '/nothing', which is no folder"),
        ({"interpreter": "/opt/none/python"}, "has no Python at /opt/none/python"),
    ],
    ids=["no folder", "no such Python"],
)
def test_a_row_that_names_what_an_image_lacks_is_told_so(
    store: TemplateStore, make_image_task: MakeTask, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises((InvalidTaskError, TemplateError), match=message) as caught:
        store.get(make_image_task(**fields))
    assert "\n" not in str(caught.value)
    assert "shapes-area" in str(caught.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([entry("bin/.wh.git"), entry("bin/.wh.cmp")], "lacks cmp, git; install git"),
        ([entry(f"{SITE}/.wh.pytest")], "has no pytest for its Python"),
        ([entry("opt/.wh.python")], "has no Python in its PATH"),
    ],
    ids=["no git", "no pytest", "no Python"],
)
def test_what_an_image_lacks_is_told_with_the_way_out(
    store: TemplateStore, make_image_task: MakeTask, tmp_path: Path, layers: list[bytes],
    more: list[Entry], message: str,
) -> None:  # fmt: skip
    place = tmp_path / "image.tar"
    image = docker_archive(place, [*layers, tar_of(more)], Env=["PATH=/opt/python/bin:/bin"])
    with pytest.raises(TemplateError, match=message) as caught:
        store.get(make_image_task(image=str(image)))
    assert "\n" not in str(caught.value)
    assert "shapes-area" in str(caught.value)


def test_a_missing_image_is_refused(store: TemplateStore, make_image_task: MakeTask) -> None:
    with pytest.raises(InvalidTaskError, match="field 'image': no image 'gone/away'"):
        store.get(make_image_task(image="gone/away"))


@pytest.mark.parametrize(
    "trick",
    [
        "rm /bin/git",
        "rm /bin/bash",
        "rm -rf /bin /usr; true",
        "echo '#!/bin/bash' > /bin/git",
        "printf '#!/bin/bash\\necho garbage; exit 1\\n' > /bin/git",
        "printf '#!/bin/bash\\nexit 127\\n' > /bin/git",
        "echo > /bin/bash",
        "chmod 0 /bin/bash",
        "rm /bin/bash; ln -s bash /bin/bash",
        "rm /bin/bash; ln -s $(printf 'a%.0s' {1..300}) /bin/bash",
        "printf '#!/nothing\\n' > /bin/base64",
        "printf '#!/bin/bash\\necho %%%%%%' > /bin/base64",
        "rm -rf /opt/base.git /lib* ",
    ],
)
def test_a_policy_that_breaks_the_image_has_itself_to_blame(template: Template, trick: str) -> None:
    for shell in get_args(Shell):
        with open_sandbox(replace(template.spec, shell=shell)) as sandbox:
            output(sandbox, "echo x > src/new.py")
            sandbox.run(trick)
            sandbox.run("true")
            with contextlib.suppress(PatchError):
                assert diff(sandbox, template).paths <= {"src/new.py"}
            assert sandbox.run("true", timeout_s=20).exit_code in {0, 126, 127}
            assert sandbox.read_file("src/new.py") == b"x\n"
