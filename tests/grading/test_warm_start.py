"""A grading sandbox that waits for its patch: the same verdicts, and nothing left behind."""

import os
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
import unittest_task
from cart_task import BASE, TASK
from faults import raising

from coding_gym.errors import SandboxError
from coding_gym.grade import Grade, GradeReason
from coding_gym.grading import WarmStart, grade, start_ahead, tree, warm_start
from coding_gym.patch import Patch
from coding_gym.sandbox import get_backend, open_sandbox
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task
from coding_gym.workspace import TemplateStore

_NOTHING_IS_RUN = "\nimport _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n"
TASKS = {"pytest": TASK, "unittest": unittest_task.TASK}


@pytest.fixture(autouse=True)
def _needs_preparation() -> None:
    if not get_backend().prepares:
        pytest.skip("the backend of this machine starts nothing ahead")


def _noting(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> list[Sandbox]:
    found: list[Sandbox] = []

    def note(*arguments: Any, **options: Any) -> Sandbox:
        found.append(open_sandbox(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(module, "open_sandbox", note)
    return found


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Sandbox]:
    """The sandboxes that grades open for themselves."""
    return _noting(monkeypatch, tree)


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> list[Sandbox]:
    """The sandboxes that are started ahead."""
    return _noting(monkeypatch, warm_start)


@pytest.fixture
def waiting() -> Iterator[list[WarmStart]]:
    found: list[WarmStart] = []
    yield found
    for warm in found:
        warm.close()


def _start(task: Task, store: TemplateStore) -> WarmStart:
    warm = start_ahead(task, store.get(task))
    assert warm is not None
    return warm


def _without_time(verdict: Grade) -> Grade:
    return replace(verdict, duration_s=0.0)


@pytest.mark.parametrize("runner", TASKS)
def test_a_warm_run_says_what_a_cold_one_says(
    runner: str, store: TemplateStore, opened: list[Sandbox]
) -> None:
    task = TASKS[runner]
    template = store.get(task)
    grade(task, template, Patch(task.gold_patch))  # makes the plan
    opened.clear()
    for patch in (Patch(task.gold_patch), Patch.between({}, {"new.py": "x = 1\n"})):
        cold = grade(task, template, patch)
        num_cold = len(opened)
        warm = grade(task, template, patch, warm=_start(task, store))
        assert _without_time(warm) == _without_time(cold)
        assert len(opened) - num_cold == num_cold - 1  # its first run had its sandbox
        opened.clear()
    assert not cold.resolved


def test_a_warm_run_finds_out_what_a_cold_one_finds_out(store: TemplateStore) -> None:
    patch = Patch.between(BASE, BASE | {"cart.py": BASE["cart.py"] + _NOTHING_IS_RUN})
    verdict = grade(TASK, store.get(TASK), patch, warm=_start(TASK, store))
    assert verdict.reason is GradeReason.TAMPERED


def test_code_that_comes_with_the_patch_is_not_what_waited(store: TemplateStore) -> None:
    """A policy puts modules beside the sources that the waiting process could have imported."""
    shadows = {f"{name}.py": "raise SystemExit\n" for name in ("pytest", "_pytest", "unittest")}
    patch = Patch.between(BASE, BASE | shadows)
    verdict = grade(TASK, store.get(TASK), patch, warm=_start(TASK, store))
    assert not verdict.resolved
    assert _without_time(verdict) == _without_time(grade(TASK, store.get(TASK), patch))


def test_one_that_died_while_it_waited_costs_time_only(
    store: TemplateStore, opened: list[Sandbox], ahead: list[Sandbox]
) -> None:
    grade(TASK, store.get(TASK), Patch(TASK.gold_patch))  # makes the plan
    opened.clear()
    assert grade(TASK, store.get(TASK), Patch(TASK.gold_patch)).resolved
    num_cold = len(opened)
    warm = _start(TASK, store)
    ahead[0].close()
    verdict = grade(TASK, store.get(TASK), Patch(TASK.gold_patch), warm=warm)
    assert verdict.resolved
    assert len(opened) == 2 * num_cold  # none of the runs had what waited


def test_a_dead_process_is_started_anew(store: TemplateStore, ahead: list[Sandbox]) -> None:
    warm = _start(TASK, store)
    assert ahead[0].run("kill -KILL 2").ok
    assert grade(TASK, store.get(TASK), Patch(TASK.gold_patch), warm=warm).resolved


def test_a_grade_without_a_run_frees_it(store: TemplateStore, ahead: list[Sandbox]) -> None:
    warm = _start(TASK, store)
    verdict = grade(TASK, store.get(TASK), Patch(""), warm=warm)
    assert verdict.reason is GradeReason.EMPTY_PATCH
    with pytest.raises(SandboxError, match="closed"):
        ahead[0].run("true")
    assert warm.take() is None


def test_only_so_many_wait_in_one_process(store: TemplateStore, waiting: list[WarmStart]) -> None:
    started = [start_ahead(TASK, store.get(TASK)) for _ in range(17)]
    waiting += filter(None, started)
    assert started[-1] is None
    waiting[0].close()
    waiting[0].close()
    waiting.append(_start(TASK, store))
    assert start_ahead(TASK, store.get(TASK)) is None


def test_a_sandbox_that_cannot_be_opened_leaves_no_trace(
    store: TemplateStore, waiting: list[WarmStart], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(warm_start, "open_sandbox", raising(SandboxError("no room")))
        assert {start_ahead(TASK, store.get(TASK)) for _ in range(16)} == {None}
    waiting.append(_start(TASK, store))


def test_a_forked_child_leaves_its_parents_alone(store: TemplateStore) -> None:
    warm = _start(TASK, store)
    pid = os.fork()
    if pid == 0:
        os._exit(warm.take() is not None)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert grade(TASK, store.get(TASK), Patch(TASK.gold_patch), warm=warm).resolved


def test_nothing_is_opened_where_it_gains_nothing(store: TemplateStore) -> None:
    commands = replace(TASK, runner="command", test_command="true")
    # Of an editable install of pytest, or of what it needs, the base would be imported.
    own = replace(TASK, install_commands=("pip install pytest",))
    assert [start_ahead(task, store.get(TASK)) for task in (commands, own)] == [None, None]
    assert start_ahead(TASK, store.get(TASK), backend="process") is None
