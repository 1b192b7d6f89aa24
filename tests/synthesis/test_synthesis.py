"""Tasks by mutation of a project: they are valid, reproducible, and do not reveal the repair."""

import json
import resource
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from episodes import in_another_process, run_command
from grading_fixtures import SuiteOf
from sandbox_fixtures import write_files
from synthesis_project import write_project

from coding_gym import load_tasks
from coding_gym.errors import GradingError, InvalidArgumentError, InvalidTaskError
from coding_gym.grading import NO_REPAIR, grade
from coding_gym.patch import Patch
from coding_gym.sandbox import open_sandbox
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.synthesis import (
    Progress,
    Project,
    confirming,
    copy_project,
    pipeline,
    synthesize,
)
from coding_gym.synthesis.confirming import confirm
from coding_gym.synthesis.coverage_report import find_copies
from coding_gym.synthesis.suite import Attempt, Suite
from coding_gym.task import FolderTree, Task
from coding_gym.workspace import TemplateStore

pytestmark = pytest.mark.slow

N = 5


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(name="shop", folder=write_project(tmp_path_factory.mktemp("shop")))


@pytest.fixture(scope="module")
def tasks(project: Project, store: TemplateStore) -> tuple[Task, ...]:
    return synthesize(project, N, store=store, num_workers=2)


def test_as_many_different_tasks_as_requested_are_made(tasks: tuple[Task, ...]) -> None:
    assert len(tasks) == len({task.task_id for task in tasks}) == N
    assert len({task.gold_patch for task in tasks}) == N
    assert len({task.task_id.split("__")[1].split("-")[0] for task in tasks}) >= 4


def test_the_same_seed_gives_the_same_tasks_and_another_gives_others(
    project: Project, store: TemplateStore, tasks: tuple[Task, ...]
) -> None:
    again = synthesize(project, N, store=store, num_workers=1)
    assert json.dumps([t.to_row() for t in again]) == json.dumps([t.to_row() for t in tasks])
    other = synthesize(project, 2, seed=1, store=store)
    assert {task.task_id for task in other} != {task.task_id for task in tasks[:2]}


def test_visible_tests_pass_and_hidden_tests_are_removed(
    tasks: tuple[Task, ...], store: TemplateStore
) -> None:
    task = tasks[0]
    with open_sandbox(store.get(task).spec) as sandbox:
        visible = sandbox.run("cat tests/*.py").output
        hidden = {test.partition("[")[0].rpartition("::")[2] for test in task.fail_to_pass}
        assert not any(f"def {name}(" in visible for name in hidden)
        assert "def test_" in visible
        result = sandbox.run(f"{task.visible_test_command} -k 'not chance and not wrong_from'")
        assert result.ok, result.output
        assert "passed" in result.output


def test_unreliable_tests_are_never_fail_to_pass(tasks: tuple[Task, ...]) -> None:
    for task in tasks:
        assert not any("wrong_from_the_start" in test for test in task.expected_tests)
        assert any("wrong_from_the_start" in test for test in task.excluded_tests)
        assert not any("test_chance" in test for test in task.fail_to_pass)


@pytest.mark.parametrize(
    ("claim", "is_bug"),
    [("0.2 < random.random() < 0.3", False), ("random.random() < 0", True), ("0 == 1", True)],
)
def test_a_test_that_fails_by_chance_shows_no_bug(
    project: Project, suite_of: SuiteOf, claim: str, is_bug: bool
) -> None:
    text = f"import random\n\n\ndef test_draw():\n    assert {claim}\n"
    path = "tests/test_till.py"
    files = {path: text.encode()}
    attempt = Attempt(paths=(path,), files=files, tests=[f"{path}::test_draw"], cpu_s=20)
    run = suite_of(project.folder).stable_run(attempt)
    assert (run is not None) == is_bug


BROKEN = {
    "a value": {"shop/till.py": b"def total(*_):\n    return 7\n\n\nlargest = max\n"},
    "an import": {"shop/till.py": b"import nothing_of_the_kind\n"},
    "the end of the process": {"shop/till.py": b"import os\n\nos._exit(3)\n"},
    "an endless loop": {"shop/till.py": b"while True:\n    pass\n"},
    "output": {"shop/till.py": b"def total(*_):\n    print('x' * 99)\n\n\nlargest = min\n"},
    "the end of the supervisor": {
        "shop/till.py": b"import os, signal\n\nos.kill(os.getppid(), signal.SIGKILL)\n"
    },
    "a file that cannot be written": {"shop/link.py": b""},
}


def test_programs_that_cannot_be_tested_have_no_run(tmp_path: Path, suite_of: SuiteOf) -> None:
    folder = write_project(tmp_path / "shop")
    (folder / "shop/link.py").symlink_to("/etc/hostname")
    suite = suite_of(folder)
    runs = {
        name: suite.run(Attempt(paths=("tests/test_till.py",), files=files, cpu_s=1))
        for name, files in BROKEN.items()
    }
    tested = {name: run.collect_error for name, run in runs.items() if run is not None}
    assert [*tested] == ["a value", "an import", "output"]
    assert tested["an import"]


def passed_under_a_limit(suite: Suite) -> int:
    resource.setrlimit(resource.RLIMIT_CPU, (400, 400))
    run = suite.run(Attempt(cpu_s=6000))
    return 0 if run is None else len(run.passed)


def test_a_lower_processor_limit_of_the_machine_remains(
    project: Project, suite_of: SuiteOf
) -> None:
    assert in_another_process(passed_under_a_limit, suite_of(project.folder)) > 5


def test_a_copy_in_the_environment_is_found(tmp_path: Path, suite_of: SuiteOf) -> None:
    folder = write_project(tmp_path / "shop")
    write_files(folder, {"build/lib/till.py": (folder / "shop/till.py").read_text()})
    write_files(folder, {"json.py": "raise ImportError('a name of the standard library')\n"})
    paths = ["shop/till.py", "shop/names.py"]
    assert find_copies(suite_of(folder), paths) == ["build/lib/till.py"]


def test_issues_show_no_line_of_a_hidden_test_or_of_the_repair(tasks: tuple[Task, ...]) -> None:
    for task in tasks:
        text = task.problem_statement
        assert "test_" not in text
        hidden = [line[1:].strip() for line in task.test_patch.splitlines() if line[:1] == "+"]
        assert not any(line in text for line in hidden if line)
        assert "LargestTest" not in text
        removed = [line[1:] for line in task.gold_patch.splitlines() if line[:1] in "+-"]
        assert not any(line.strip() and line.strip() in text for line in removed if len(line) > 9)


def test_half_of_the_failing_tests_can_stay_visible(project: Project, store: TemplateStore) -> None:
    results = synthesize(project, 2, seed=1, store=store, shows_failing=True)
    assert results
    for task in results:
        with open_sandbox(store.get(task).spec) as sandbox:
            result = sandbox.run(f"{task.visible_test_command} -k 'not chance and not wrong_from'")
        failing = set(task.fail_to_pass).intersection(result.output.split())
        assert 0 < len(failing) < len(task.fail_to_pass)


def test_chosen_kinds_make_tasks_or_reasons(project: Project, store: TemplateStore) -> None:
    progress = Progress()
    arguments: dict[str, Any] = {"kinds": ["boundary"], "progress": progress}
    results = synthesize(project, 50, store=store, **arguments)
    assert 0 < len(results) < 10
    assert all("__boundary-" in task.task_id for task in results)
    assert 0 < len(progress.dropped) <= progress.num_candidates
    assert all(name.endswith(" boundary") and reason for name, reason in progress.dropped)


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"m.py": "x = 1\n"}, "no tests"),
        ({"test_m.py": "def test_x():\n    assert 1 == 2\n"}, "1 tests"),
        ({"test_m.py": "import missing_here\n"}, "missing_here"),
        ({"conftest.py": "import missing_here\n"}, "missing_here"),
        ({"pytest.ini": "[pytest]\naddopts = --unknown=m\n"}, "--unknown=m"),
    ],
)
def test_project_with_unusable_tests_is_refused(
    files: dict[str, str], named: str, tmp_path: Path, store: TemplateStore
) -> None:
    write_files(tmp_path, files)
    with pytest.raises(InvalidTaskError, match=named):
        synthesize(Project(name="bare", folder=tmp_path), 1, store=store)


def test_a_copy_has_no_environments_and_caches(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "shop")
    caches = ("__pycache__/m.pyc", "env/pyvenv.cfg", "env/lib.py", ".tox/log")
    write_files(folder, dict.fromkeys(caches, ""))
    name, copy = copy_project(folder, tmp_path / "trees")
    assert (name, copy.parent) == ("shop", tmp_path / "trees")
    assert sorted(path.name for path in copy.iterdir()) == ["shop", "tests"]
    assert copy_project(folder, tmp_path / "trees") == (name, copy)
    with pytest.raises(InvalidArgumentError, match="repo"):
        copy_project(tmp_path / "nowhere", tmp_path / "trees")


def test_every_change_of_a_project_gives_a_new_copy(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "shop")
    copies = {copy_project(folder, tmp_path / "trees")}
    for change in ("ln -s shop link", "ln -sfn tests link", "chmod +x shop/till.py"):
        subprocess.run(change.split(), cwd=folder, check=True)
        copies.add(copy_project(folder, tmp_path / "trees"))
    assert len(copies) == 4


def test_confirmed_tasks_resolve_and_the_repaired_tree_is_graded_once(
    project: Project, store: TemplateStore, tasks: tuple[Task, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    check = mock.Mock(wraps=grade)
    monkeypatch.setattr(confirming, "grade", check)
    assert synthesize(project, 3, store=store) == tasks[:3]
    patches = [call.args[2] for call in check.call_args_list]
    gold = Patch(tasks[0].gold_patch)
    assert sorted(patches, key=str) == sorted([gold, *[NO_REPAIR] * 3], key=str)
    assert grade(tasks[0], store.get(tasks[0]), gold).resolved


def test_tasks_that_the_grader_refuses_are_dropped(
    project: Project, store: TemplateStore, tasks: tuple[Task, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = Patch.between({}, {"shop/more.py": "MORE = 1\n"}).text
    options = SandboxOptions()
    for changes in (
        {"gold_patch": wrong},
        {"fail_to_pass": tasks[0].pass_to_pass, "pass_to_pass": ()},
        {"fail_to_pass": tasks[0].fail_to_pass[:1], "pass_to_pass": tasks[0].fail_to_pass[1:]},
    ):
        with pytest.raises(InvalidTaskError):
            confirm(replace(tasks[0], **changes), store, options)
    progress = Progress()
    failures = [GradingError("no report"), InvalidTaskError("refused"), None]
    monkeypatch.setattr(pipeline, "confirm", mock.Mock(side_effect=failures))
    assert synthesize(project, 1, store=store, progress=progress) == tasks[2:3]
    names = [task.task_id for task in tasks[:2]]
    dropped = [drop for drop in progress.dropped if drop[0] in names]
    assert dropped == list(zip(names, ["no report", "refused"], strict=True))


def test_the_command_makes_tasks_that_the_grader_confirmed(tmp_path: Path) -> None:
    repo, out = write_project(tmp_path / "shop"), tmp_path / "tasks.jsonl"
    printed = run_command(
        "tasks", "synthesize", "--repo", repo, "-n", "2", "--concurrency", "1", "--out", out
    )
    assert f"{out} contains 2 tasks" in printed
    results = load_tasks(out)
    assert not any(
        Path(json.loads(row)["folder"]).is_absolute() for row in out.read_text().splitlines()
    )
    assert all(isinstance(task.tree, FolderTree) for task in results)
