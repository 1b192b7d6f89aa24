"""Tries candidates inside one collected test session, by patching functions in forks."""

# ruff: noqa: TID252 - in the sandbox this package has another name

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest

from .clock import forked
from .hotpatch import Change, HotPatcher
from .verdicts import BREAKS, DIED, UNTRIED, Verdict
from .written import Written

if TYPE_CHECKING:
    from .suite import Recorder
    from .trial import Trial

_MAX_WAITS_S = 20.0  # of all tests


class FastLoop:
    """A pytest plugin that tries candidates where pytest would run the tests.

    Args:
        trial: Knows the candidates and takes the verdicts.
        recorder: Notes outcomes; must be a plugin of the same session.
        seconds: Time for all candidates.

    Attributes:
        waiting: Indices of the candidates that need a fresh import.
    """

    def __init__(self, trial: Trial, recorder: Recorder, seconds: float) -> None:
        self.waiting: list[int] = []
        self._trial = trial
        self._recorder = recorder
        self._seconds = seconds
        self._first: list[pytest.Item] = []
        self._rest: list[pytest.Item] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Tries every candidate whose function can be patched, and runs nothing else."""
        state = self._trial.state
        imported = {name: set(lines) for name, lines in state["imported"].items()}
        patcher = HotPatcher(imported)
        failing = set(self._trial.judge.failing)
        in_order = state["in_order"]
        self._first = [item for item in session.items if in_order or item.nodeid in failing]
        first = set(self._first)
        self._rest = [item for item in session.items if item not in first]
        gc.collect()
        gc.freeze()
        for index in range(len(self._trial.verdicts)):
            if self._trial.is_over(index, self._seconds):
                break
            edits = self._trial.edits(index)
            changes = patcher.changes(self._trial.units(index), edits)
            if changes is None:
                self.waiting.append(index)
            else:
                self._attempt(index, edits, changes)
        return True

    def _attempt(self, index: int, edits: list[Any], changes: list[Change]) -> None:
        state = self._trial.state
        with Written(edits, index):  # for tests that start the program as a process
            verdict = self._forked(changes, self._first, state["candidate_s"])
            if verdict.code == BREAKS and self._rest:
                everything = [*self._first, *self._rest]
                verdict = self._forked(changes, everything, state["suite_s"])
        if verdict.code == UNTRIED:
            self.waiting.append(index)
        self._trial.verdicts[index] = verdict

    def _forked(self, changes: list[Change], items: list[pytest.Item], seconds: float) -> Verdict:
        waits_s = min(_MAX_WAITS_S, len(items) * self._trial.state["waits_s"])
        answer = forked(lambda: self._run(changes, items), seconds, waits_s)
        return Verdict(DIED, []) if answer is None else Verdict(*answer)

    def _run(self, changes: list[Change], items: list[pytest.Item]) -> Verdict:
        try:
            for change in changes:
                change.make()
        except NameError:
            return Verdict(UNTRIED, [])  # it needs a fresh import after all
        recorder, judge = self._recorder, self._trial.judge
        recorder.clear()
        for item, following in zip(items, [*items[1:], None]):  # noqa: B905 - Python 3.8
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if recorder.timed_out:
                return Verdict(DIED, [])
        all_ran = len(items) == len(self._first) + len(self._rest)
        return judge.judge(recorder.outcomes, recorder.signatures, all_ran=all_ran)
