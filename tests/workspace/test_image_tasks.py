"""Tasks in an image: its tree, its Python, its pytest; the same rules as for every other task."""

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from making_images import (
    GIT_PROGRAMS,
    PACKAGES,
    Entry,
    docker_archive,
    entry,
    folder,
    python_with_pytest,
    symlink,
    system,
    tar_of,
)

from coding_gym.errors import InvalidTaskError, PatchError, TemplateError
from coding_gym.grade import GradeReason
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.sandbox import Sandbox, open_sandbox
from coding_gym.task import GitTree, ImageTree, Task
from coding_gym.tasks import load_tasks
from coding_gym.workspace import Template, TemplateStore, apply_patch, diff

MakeTask = Callable[..., Task]
_SITE = f"opt/python/lib/python{sys.version_info.major}.{sys.version_info.minor}/{PACKAGES}"
_PROJECT = {
    ".gitignore": "*.so\n*.egg-info\nconfig.local\n",
    "config.local": "tracked all the same\n",
    "src/shapes.py": "def area(width, height):\n    return width + height\n",
    "tests/test_shapes.py": (
        "from shapes import area\n\n\ndef test_square():\n    assert area(2, 2) == 4\n"
    ),
}
_BUILT = {
    "src/native.so": "machine code",
    "shapes.egg-info/PKG-INFO": "Name: shapes\n",
    "notes.txt": "neither tracked nor ignored\n",
}


def _git(place: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    command = [str(shutil.which("git")), *identity, *arguments]
    return subprocess.run(
        command, cwd=place, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture(scope="session")
def layers(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """A system with Python, pytest and git; a project installed from /testbed, with its history."""
    place = tmp_path_factory.mktemp("project")
    for name, text in _PROJECT.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    _git(place, "init", "-q")
    _git(place, "add", "-f", ".")
    _git(place, "commit", "-q", "-m", "the fix is in the future of this history")
    for name, text in _BUILT.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    (place / ".git" / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch /hacked\n"
    )
    project: list[Entry] = [
        entry(f"testbed/{path.relative_to(place)}", path.read_bytes())
        for path in place.rglob("*")
        if path.is_file()
    ]
    base = [*system(*GIT_PROGRAMS), symlink("usr/bin", "/bin"), *python_with_pytest()]
    installed = entry(f"{_SITE}/shapes.pth", "/testbed/src\n")
    return [tar_of(base), tar_of([folder("testbed"), *project, installed])]


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory, layers: list[bytes]) -> str:
    path = tmp_path_factory.mktemp("image") / "image.tar"
    env = ["PATH=/opt/python/bin:/bin", "SHAPE=round"]
    return str(docker_archive(path, layers, Env=env, WorkingDir="/testbed"))


@pytest.fixture
def make_image_task(image: str, tiny_row: dict[str, Any]) -> MakeTask:
    def make(**fields: Any) -> Task:
        row = {k: v for k, v in tiny_row.items() if k != "files"}
        row["patch"] = row["patch"].replace("shapes.py", "src/shapes.py")
        row["PASS_TO_PASS"] = ["tests/test_shapes.py::test_square"]
        row |= {"image": image, "image_path": "/testbed"}
        return Task.from_row({k: v for k, v in (row | fields).items() if v is not None})

    return make


@pytest.fixture(scope="session")
def image_store(tmp_path_factory: pytest.TempPathFactory) -> TemplateStore:
    return TemplateStore(folder=tmp_path_factory.mktemp("image-store"))


@pytest.fixture
def template(image_store: TemplateStore, make_image_task: MakeTask) -> Template:
    return image_store.get(make_image_task())


@pytest.fixture
def sandbox(template: Template) -> Any:
    with open_sandbox(template.spec) as opened:
        yield opened


def output(sandbox: Sandbox, command: str) -> str:
    result = sandbox.run(command)
    assert result.ok, result.output
    return result.output.strip()


def test_a_row_with_a_path_in_an_image_is_a_task_in_it(make_image_task: MakeTask) -> None:
    task = make_image_task()
    assert (task.tree, task.interpreter, task.image_path) == (ImageTree(), "image", "/testbed")
    assert Task.from_row(task.to_row()) == task
    assert task.has_own_pytest


def test_a_row_that_only_names_an_image_stays_what_it_was(make_image_task: MakeTask) -> None:
    """As SWE-bench's rows do, which other environments serve just as well."""
    task = make_image_task(image_path="", repo="owner/name", base_commit="0" * 40)
    assert task.tree == GitTree("https://github.com/owner/name")
    assert (task.interpreter, task.is_in_image) == ("base", False)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"image": ""}, "'image' is missing"),
        ({"image_path": "testbed"}, "'image_path' must be an absolute path below /"),
        ({"image_path": "/"}, "'image_path' must be"),
        ({"image_path": "/a/../b"}, "'image_path' must be"),
        ({"install_commands": ["true"]}, "'install_commands' must be empty"),
        ({"image": 3}, "'image' must be text"),
        (
            {"image": "", "image_path": "", "files": {}, "interpreter": "image"},
            "'image' is missing",
        ),
        ({"image_pth": "/x", "image_path": None}, "did you mean 'image_path'"),
    ],
)
def test_rows_that_cannot_be_are_refused(
    make_image_task: MakeTask, change: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidTaskError, match=field):
        make_image_task(**change)


def test_an_image_beside_a_file_of_rows_is_found(make_image_task: MakeTask, tmp_path: Path) -> None:
    (tmp_path / "made.tar").write_bytes(b"")
    rows = [make_image_task(image=name).to_row() for name in ("made.tar", "owner/name:1")]
    rows[1]["instance_id"] = "second"
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tasks = load_tasks(tmp_path / "rows.jsonl")
    assert [task.image for task in tasks] == [str(tmp_path / "made.tar"), "owner/name:1"]


def test_an_environments_entry_puts_a_row_into_its_image(make_image_task: MakeTask) -> None:
    """As for SWE-bench's rows, which name an image and no path."""
    row = make_image_task(image_path="", repo="owner/name", base_commit="0" * 40).to_row()
    row.pop("repository")
    [task] = load_tasks([row], environments={"shapes-area": {"image_path": "/testbed"}})
    assert (task.tree, task.interpreter, task.image_path) == (ImageTree(), "image", "/testbed")
    both = {"image_path": "/testbed", "install_commands": ["true"]}
    with pytest.raises(InvalidTaskError, match="'install_commands' must be empty"):
        load_tasks([row], environments={"shapes-area": both})


def test_the_tree_is_what_the_images_git_tracks(sandbox: Sandbox) -> None:
    assert output(sandbox, "git ls-files").split() == sorted(_PROJECT)
    assert output(sandbox, "cat config.local") == "tracked all the same"
    assert output(sandbox, "git status --porcelain; git log --oneline | cat").endswith(
        "Initial commit"
    )


def test_the_images_own_history_stays_behind(sandbox: Sandbox) -> None:
    said = output(sandbox, "git log --all --format=%s; cat .git/config; git stash list")
    assert "future" not in said
    assert "fsmonitor" not in said
    assert not sandbox.run("ls /hacked").ok


def test_what_was_built_beside_the_tree_is_there_and_not_part_of_a_patch(
    sandbox: Sandbox, template: Template
) -> None:
    assert output(sandbox, "cat src/native.so shapes.egg-info/PKG-INFO notes.txt") == (
        "".join(_BUILT.values()).strip()
    )
    assert diff(sandbox, template).is_empty
    output(sandbox, "echo more >> notes.txt; echo x > src/new.py")
    assert [change.path for change in diff(sandbox, template).files] == ["src/new.py"]


def test_the_workspace_shows_where_the_project_is_installed_from(sandbox: Sandbox) -> None:
    assert output(sandbox, "pwd; python -c 'import shapes; print(shapes.__file__)'") == (
        "/workspace\n/testbed/src/shapes.py"
    )
    output(sandbox, "echo 'area = None' >> src/shapes.py")
    assert output(sandbox, "cd /; python -c 'import shapes; print(shapes.area)'") == "None"


def test_the_images_python_pytest_and_variables_run_the_visible_tests(sandbox: Sandbox) -> None:
    assert output(sandbox, "python -m pytest -q").endswith("passed in 0.00s") or "1 passed" in (
        sandbox.run("python -m pytest -q").output
    )
    assert output(sandbox, "command -v python3; echo $SHAPE") == "/opt/python/bin/python3\nround"


def test_the_gold_patch_resolves_it_and_the_base_does_not(
    make_image_task: MakeTask, template: Template
) -> None:
    task = make_image_task()
    assert grade(task, template, Patch(task.gold_patch)).resolved
    harmless = Patch(
        "diff --git a/README b/README\nnew file mode 100644\n--- /dev/null\n+++ b/README\n"
        "@@ -0,0 +1 @@\n+Hello\n"
    )
    verdict = grade(task, template, harmless)
    assert (verdict.resolved, verdict.reason) == (False, GradeReason.TESTS_FAILED)


def test_a_patch_made_inside_is_graded(
    make_image_task: MakeTask, template: Template, sandbox: Sandbox
) -> None:
    output(sandbox, "sed -i 's/width + height/width * height/' /testbed/src/shapes.py")
    task = make_image_task()
    patch = diff(sandbox, template)
    assert patch.text == task.gold_patch or grade(task, template, patch).resolved
    with open_sandbox(template.spec) as fresh:
        apply_patch(fresh, patch)
        assert diff(fresh, template) == patch


def test_what_a_policy_installs_does_not_reach_the_grading(
    make_image_task: MakeTask, template: Template, sandbox: Sandbox
) -> None:
    output(sandbox, f"echo 'import sys; sys.exit(0)' > /{_SITE}/pytest.py; rm /bin/ls")
    output(sandbox, "echo x > src/other.py")
    verdict = grade(make_image_task(), template, diff(sandbox, template))
    assert verdict.reason is GradeReason.TESTS_FAILED


def test_a_git_tree_runs_in_an_image_too(
    image_store: TemplateStore, make_image_task: MakeTask, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    (clone / "src").mkdir(parents=True)
    (clone / "src/shapes.py").write_text("def area(width, height):\n    return 7\n")
    _git(clone, "init", "-q")
    _git(clone, "add", ".")
    _git(clone, "commit", "-q", "-m", "older")
    task = make_image_task(repository=str(clone), base_commit=_git(clone, "rev-parse", "HEAD"))
    template = image_store.get(task)
    with open_sandbox(template.spec) as sandbox:
        assert output(sandbox, "git log --format=%s; git status --porcelain") == "older"
        # Not what the image's tree had in that place, but what was built there.
        assert output(sandbox, "ls; ls src") == (
            "notes.txt\nshapes.egg-info\nsrc\nnative.so\nshapes.py"
        )
        assert output(sandbox, "cd /; python -c 'import shapes; print(shapes.area(1, 2))'") == "7"
        assert diff(sandbox, template).is_empty


def test_a_tree_of_an_image_runs_without_it_too(
    image_store: TemplateStore, make_image_task: MakeTask
) -> None:
    template = image_store.get(make_image_task(interpreter="base"))
    assert (template.spec.image, template.spec.workspace_alias) == ("", "")
    with open_sandbox(template.spec) as sandbox:
        assert output(sandbox, "git ls-files").split() == sorted(_PROJECT)


def test_without_git_history_ignore_files_decide(
    image_store: TemplateStore, make_image_task: MakeTask, tmp_path: Path, layers: list[bytes]
) -> None:
    plain = tar_of(
        entry(f"plain/{name}", text)
        for name, text in (_PROJECT | _BUILT).items()
        if name != "config.local"
    )
    image = docker_archive(
        tmp_path / "image.tar", [*layers, plain], Env=["PATH=/opt/python/bin:/bin"]
    )
    template = image_store.get(make_image_task(image=str(image), image_path="/plain"))
    with open_sandbox(template.spec) as sandbox:
        tracked = output(sandbox, "git ls-files").split()
        assert tracked == [".gitignore", "notes.txt", "src/shapes.py", "tests/test_shapes.py"]
        assert output(sandbox, "cat src/native.so; git status --porcelain") == "machine code"


def test_the_same_image_and_path_are_copied_once(
    image_store: TemplateStore, make_image_task: MakeTask, template: Template
) -> None:
    other = image_store.get(make_image_task(instance_id="another"))
    assert (other.key, other.spec.layers) == (template.key, template.spec.layers)


def test_another_image_gives_another_template(
    image_store: TemplateStore, make_image_task: MakeTask, template: Template, tmp_path: Path,
    layers: list[bytes],
) -> None:  # fmt: skip
    image = docker_archive(tmp_path / "image.tar", layers, Env=["PATH=/opt/python/bin:/bin"])
    assert image_store.get(make_image_task(image=str(image))).key != template.key


def test_the_path_of_a_python_puts_it_first(
    image_store: TemplateStore, make_image_task: MakeTask
) -> None:
    template = image_store.get(make_image_task(interpreter="/opt/python/bin/python3"))
    with open_sandbox(template.spec) as sandbox:
        assert output(sandbox, "python -c 'import sys; print(sys.executable)'") == (
            "/opt/python/bin/python3"
        )


@pytest.mark.parametrize(
    ("more", "fields", "message"),
    [
        ([], {"image_path": "/nothing"}, "'image_path' names '/nothing', which is no folder"),
        ([], {"interpreter": "/opt/none/python"}, "has no Python at /opt/none/python"),
        ([entry("bin/.wh.git"), entry("bin/.wh.cmp")], {}, "lacks cmp, git; install git"),
        ([entry(f"{_SITE}/.wh.pytest")], {}, "has no pytest for its Python"),
        ([entry("opt/.wh.python")], {}, "has no Python in its PATH"),
    ],
    ids=["no folder", "no such Python", "no git", "no pytest", "no Python"],
)
def test_what_an_image_lacks_is_told_with_the_way_out(
    image_store: TemplateStore, make_image_task: MakeTask, tmp_path: Path, layers: list[bytes],
    more: list[Entry], fields: dict[str, Any], message: str,
) -> None:  # fmt: skip
    place = tmp_path / "image.tar"
    image = docker_archive(place, [*layers, tar_of(more)], Env=["PATH=/opt/python/bin:/bin"])
    with pytest.raises((InvalidTaskError, TemplateError), match=message) as caught:
        image_store.get(make_image_task(image=str(image), **fields))
    assert "\n" not in str(caught.value)
    assert "shapes-area" in str(caught.value)


def test_an_image_that_is_not_there_is_the_rows_mistake(
    image_store: TemplateStore, make_image_task: MakeTask
) -> None:
    with pytest.raises(InvalidTaskError, match="field 'image': no image 'gone/away'"):
        image_store.get(make_image_task(image="gone/away"))


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
@pytest.mark.parametrize("shell", ["fresh", "waiting", "persistent"])
def test_a_policy_that_breaks_the_image_has_itself_to_blame(
    template: Template, shell: Any, trick: str
) -> None:
    with open_sandbox(replace(template.spec, shell=shell)) as sandbox:
        output(sandbox, "echo x > src/new.py")
        sandbox.run(trick)
        sandbox.run("true")
        with contextlib.suppress(PatchError):
            diff(sandbox, template)
        assert sandbox.run("true", timeout_s=20).exit_code in {0, 126, 127}
        assert sandbox.read_file("src/new.py") == b"x\n"
