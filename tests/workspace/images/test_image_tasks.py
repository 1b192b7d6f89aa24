"""Tasks in an image: the tree, Python and pytest of the image; grading as for all tasks."""

import base64
from pathlib import Path

import pytest
from sandbox_fixtures import commit
from sandbox_fixtures import stripped_output as output
from workspace_scene import BUILT, PROJECT, SITE, MakeTask

from coding_gym.grade import GradeReason
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.sandbox import Sandbox, open_sandbox
from coding_gym.tasks.task_row import read_task
from coding_gym.tasks.validation import Checks, validate_task
from coding_gym.workspace import Template, TemplateStore, apply_patch, diff

pytestmark = pytest.mark.slow


def test_a_reverse_patch_applies_to_the_tree_of_an_image(
    store: TemplateStore, template: Template, make_image_task: MakeTask
) -> None:
    text = PROJECT["src/shapes.py"]
    base = {"src/shapes.py": text.replace("+", "-")}
    patch = Patch.between(base, {"src/shapes.py": text}).text
    template_of_base = store.get(make_image_task(reverse_patch=patch))
    assert template_of_base.key != template.key
    with open_sandbox(template_of_base.spec) as sandbox:
        assert sandbox.read_file("src/shapes.py").decode() == base["src/shapes.py"]
        assert output(sandbox, "git status --short; git rev-list --all --count") == "1"


def test_the_tree_has_the_tracked_files_of_the_image(sandbox: Sandbox, template: Template) -> None:
    assert output(sandbox, "git ls-files").split() == sorted(PROJECT)
    assert output(sandbox, "cat config.local") == "tracked all the same"
    history = output(sandbox, "git status --porcelain; git log --all --format=%s; cat .git/config")
    assert history.startswith("Initial commit")
    assert "fsmonitor" not in history
    assert not sandbox.run("ls /hacked").ok
    built = output(sandbox, "cat src/native.so shapes.egg-info/PKG-INFO notes.txt")
    assert built == "".join(BUILT.values()).strip()
    assert diff(sandbox, template).is_empty
    output(sandbox, "echo more >> notes.txt; echo x > src/new.py")
    assert [change.path for change in diff(sandbox, template).files] == ["src/new.py"]


def test_the_workspace_replaces_the_project_folder_of_the_image(
    sandbox: Sandbox, template: Template
) -> None:
    assert output(sandbox, "pwd; python -c 'import shapes; print(shapes.__file__)'") == (
        "/workspace\n/testbed/src/shapes.py"
    )
    assert output(sandbox, "command -v python3; echo $SHAPE") == "/opt/python/bin/python3\nround"
    output(sandbox, "echo 'area = None' >> src/shapes.py")
    assert output(sandbox, "cd /; python -c 'import shapes; print(shapes.area)'") == "None"
    output(sandbox, "echo 'area = 1' >> /testbed/src/shapes.py")
    patch = diff(sandbox, template)
    assert patch.paths == {"src/shapes.py"}
    with open_sandbox(template.spec) as fresh:
        apply_patch(fresh, patch)
        assert diff(fresh, template) == patch


def test_programs_that_a_policy_changed_do_not_affect_grading(
    make_image_task: MakeTask, template: Template, sandbox: Sandbox
) -> None:
    output(sandbox, f"echo 'import sys; sys.exit(0)' > /{SITE}/pytest.py; rm /bin/ls")
    output(sandbox, "echo x > src/other.py")
    verdict = grade(make_image_task(), template, diff(sandbox, template))
    assert verdict.reason is GradeReason.TESTS_FAILED


_HONEST = Patch.between({}, {"a.py": "x = 1\n"}).text
_CONFTEST = Patch.between({}, {"conftest.py": "import os\nos._exit(0)\n"}).text
_DATA = Patch.between({}, {"tests/data.py": "x = 2\n"}).text


@pytest.mark.parametrize(
    ("path", "hidden_patch"),
    [
        ("conftest.py", _CONFTEST[_CONFTEST.index("--- ") :]),
        ("tests/data.py", _DATA.replace(" a/", " x/").replace(" b/", " y/")),
    ],
    ids=["behind the lines of another file", "under other prefixes"],
)
def test_a_forged_patch_cannot_hide_a_change(
    make_image_task: MakeTask, template: Template, sandbox: Sandbox, path: str, hidden_patch: str
) -> None:
    """Git applies a change that this package's parser does not find in the text."""
    sandbox.write_file("/forged", base64.b64encode((_HONEST + hidden_patch).encode()))
    trick = "printf '#!/bin/bash\\ncat /forged\\n' > /bin/base64; echo x > any.py"
    assert sandbox.run(trick).ok
    forged_patch = diff(sandbox, template)
    assert forged_patch.text == _HONEST + hidden_patch
    verdict = grade(make_image_task(), template, forged_patch)
    assert verdict.dropped_paths == (path,)
    assert verdict.reason is GradeReason.TESTS_FAILED


def test_a_git_tree_runs_in_an_image(
    store: TemplateStore, make_image_task: MakeTask, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    files = {"src/shapes.py": "def area(width, height):\n    return 7\n"}
    base = commit(clone, files, "older")
    task = make_image_task(repository=str(clone), base_commit=base)
    template = store.get(task)
    with open_sandbox(template.spec) as sandbox:
        assert output(sandbox, "git log --format=%s; git status --porcelain") == "older"
        # The repository's files, and only the built files of the image's tree.
        assert output(sandbox, "ls; ls src") == (
            "notes.txt\nshapes.egg-info\nsrc\nnative.so\nshapes.py"
        )
        assert output(sandbox, "cd /; python -c 'import shapes; print(shapes.area(1, 2))'") == "7"
        assert diff(sandbox, template).is_empty


def test_a_test_that_needs_root_is_named_with_its_remedy(
    make_image_task: MakeTask, store: TemplateStore
) -> None:
    path = "tests/test_root.py"
    needs_root = "def test_root(tmp_path):\n    import os\n    os.chown(tmp_path, 12, 12)\n"
    row = make_image_task().to_row()
    row["test_patch"] += Patch.between({}, {path: needs_root}).text
    row["PASS_TO_PASS"] = [f"{path}::test_root"]
    checks = Checks(repeats=1, looks_for_leaks=False)
    report = validate_task(read_task(row), store, checks)
    assert not report.ok
    assert "chown" in report.detail, report.error
    assert "excluded_tests" in report.detail
    assert "LFS" not in report.detail  # although the image lacks many programs
