"""A patch that prevents test runs fails its tests; without the patch, the infrastructure failed."""

import errno
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain, count, repeat
from pathlib import Path
from typing import Any

import iniconfig
import pytest
from grading_fixtures import BASE, FIXED, TASK, Changes, patch_of
from sandbox_fixtures import write_files

from coding_gym.errors import GradingError, SandboxError
from coding_gym.grade import GradeReason
from coding_gym.grading import NO_REPAIR, grade
from coding_gym.grading.grader import CHALLENGES
from coding_gym.grading.report import TestRun
from coding_gym.grading.runners import pytest_runner
from coding_gym.patch import Patch
from coding_gym.sandbox import Sandbox, open_sandbox
from coding_gym.sandbox.spec import WORKDIR
from coding_gym.task import FilesTree, FolderTree, Task
from coding_gym.workspace import Template, TemplateStore
from coding_gym.wrappers.visible_tests import potential

# The tree of a project that pytest itself imports.
SOURCES = {
    f"iniconfig/{path.name}": path.read_text()
    for path in Path(iniconfig.__file__).parent.glob("*.py")
}
TREE = {**BASE, **SOURCES}
GOLD = {"cart.py": FIXED}
EXITS = "import os\n\nos._exit(0)\n"
# Changes of a module that pytest imports.
SYNTAX, EXIT = ({"iniconfig/__init__.py": text} for text in ("import (\n", EXITS))


def on_path(
    task: Task, store: TemplateStore, files: Mapping[str, str] = TREE
) -> tuple[Task, Template]:
    """Returns a task with its tree on ``sys.path`` before pytest starts, as if installed."""
    task = replace(task, tree=FilesTree(files))
    template = store.get(task)
    spec = replace(template.spec, env={**template.spec.env, "PYTHONPATH": WORKDIR})
    task = replace(task, install_commands=("python -m pip install -e .",))
    return task, replace(template, spec=spec)


@pytest.mark.parametrize(
    ("changes", "challenge"),
    [
        (SYNTAX, "none"),
        (EXIT, "none"),
        *(pytest.param(EXIT, challenge, marks=pytest.mark.slow) for challenge in CHALLENGES),
    ],
)
def test_patch_that_prevents_the_start_fails_its_tests(
    store: TemplateStore, changes: Changes, challenge: str
) -> None:
    task, template = on_path(TASK, store)
    verdict = grade(task, template, patch_of({**GOLD, **changes}, TREE), challenge=challenge)
    assert verdict.reason is GradeReason.TESTS_FAILED, verdict
    assert set(verdict.fail_to_pass.values()) == {"missing"}


@pytest.mark.slow
def test_task_whose_gold_patch_prevents_the_start_is_refused(store: TemplateStore) -> None:
    gold = patch_of({**GOLD, **SYNTAX}, TREE)
    task, template = on_path(replace(TASK, gold_patch=gold.text), store)
    with pytest.raises(GradingError, match="do not start with the gold patch"):
        grade(task, template, patch_of(GOLD, TREE))


BROKEN_BASES = {
    "a module that pytest imports": (
        SYNTAX,
        {"iniconfig/__init__.py": TREE["iniconfig/__init__.py"]},
    ),
    "a conftest": ({"conftest.py": "import (\n"}, {"conftest.py": "x = 1\n"}),
}


@pytest.mark.slow
@pytest.mark.parametrize(("broken", "repair"), BROKEN_BASES.values(), ids=BROKEN_BASES)
def test_task_whose_base_cannot_start_is_gradable(
    store: TemplateStore, broken: Changes, repair: Changes
) -> None:
    base = TREE | broken
    gold = patch_of({**GOLD, **repair}, base)
    task, template = on_path(replace(TASK, gold_patch=gold.text), store, base)
    assert grade(task, template, gold).is_verified
    unrepaired = patch_of(GOLD, base)
    for patch, challenge in ((NO_REPAIR, "none"), (unrepaired, "resolved")):
        verdict = grade(task, template, patch, challenge=challenge)
        assert verdict.reason is GradeReason.TESTS_FAILED, verdict


@pytest.mark.parametrize("challenge", ["none", "resolved"])
def test_sandbox_that_does_not_open_is_an_infrastructure_failure(
    store: TemplateStore, monkeypatch: pytest.MonkeyPatch, challenge: str
) -> None:
    template, gold = store.get(TASK), Patch(TASK.gold_patch)
    assert grade(TASK, template, gold).resolved  # makes the plan
    calls = count(1)

    def open_every_second(*arguments: Any, **options: Any) -> Any:
        if next(calls) % 2 == 0:
            raise SandboxError("no process is free")
        return open_sandbox(*arguments, **options)

    monkeypatch.setattr("coding_gym.grading.tree.open_sandbox", open_every_second)
    with pytest.raises(GradingError, match="no process is free"):
        grade(TASK, template, gold, challenge=challenge)


@pytest.mark.slow
def test_visible_tests_that_cannot_start_count_as_failed(store: TemplateStore) -> None:
    task, template = on_path(TASK, store)
    assert potential(task, template, patch_of(EXIT, TREE), "auto") == -1


def test_patch_that_removes_the_test_program_fails(store: TemplateStore, tmp_path: Path) -> None:
    write_files(tmp_path, {"tools/report.sh": "#!/bin/sh\necho 1..1; echo ok 1 - a\n"})
    (tmp_path / "tools/report.sh").chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/report").symlink_to("../tools/report.sh")
    task = replace(TASK, tree=FolderTree(str(tmp_path)), gold_patch="", test_patch="")
    task = replace(task, runner="tap", test_command="report", fail_to_pass=("a",), pass_to_pass=())
    template = store.get(task)
    template = replace(template, spec=replace(template.spec, path=(f"{WORKDIR}/bin",)))
    text = (tmp_path / "tools/report.sh").read_text()
    harmless = Patch.between({}, {"notes.txt": "x\n"})
    assert grade(task, template, harmless).resolved
    removal = Patch.between({"tools/report.sh": text}, {}).text.replace("100644", "100755")
    verdict = grade(task, template, Patch(removal))
    assert verdict.reason is GradeReason.TESTS_FAILED, verdict


@pytest.mark.parametrize("method", ["run_python", "write_file"])
def test_patch_that_ends_or_fills_the_sandbox_fails(
    store: TemplateStore, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    assert grade(TASK, store.get(TASK), patch_of(GOLD)).resolved
    error = SandboxError("it died") if method == "run_python" else OSError(errno.ENOSPC, "full")
    original = getattr(Sandbox, method)

    def fail(sandbox: Sandbox, *arguments: Any, **options: Any) -> Any:
        if "discounts" in sandbox.read_file("cart.py").decode():
            raise error
        return original(sandbox, *arguments, **options)

    monkeypatch.setattr(Sandbox, method, fail)
    broken = patch_of({"cart.py": f"{FIXED}\n\nNAME = 'discounts'\n"})
    verdict = grade(TASK, store.get(TASK), broken)
    assert verdict.reason is GradeReason.TESTS_FAILED, verdict


@pytest.mark.parametrize(
    "error", [GradingError("pytest could not be started"), SandboxError("the sandbox died")]
)
def test_failure_without_the_patch_is_an_infrastructure_failure(
    store: TemplateStore, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    run = pytest_runner.run_tests
    failures = chain([True], repeat(False))

    def fail(*arguments: Any, **options: Any) -> TestRun:
        if next(failures):
            raise error
        return run(*arguments, **options)

    monkeypatch.setattr(pytest_runner, "run_tests", fail)
    gold = Patch(TASK.gold_patch)
    assert grade(TASK, store.get(TASK), gold, challenge="none").resolved
    failures = chain(repeat(True))
    with pytest.raises(GradingError, match=str(error)):
        grade(TASK, store.get(TASK), gold, challenge="none")
