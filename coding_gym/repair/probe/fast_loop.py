"""Tries candidates inside one collected test session, by patching functions in forks."""

# ruff: noqa: TID252 - in the sandbox this package has another name

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest

from .forking import forked
from .hotpatch import HotPatcher
from .verdicts import BREAKS, DIED, Verdict
from .written import Written

if TYPE_CHECKING:
    from .suite import Recorder
    from .trial import Trial


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
        self._rest = [item for item in session.items if item not in set(self._first)]
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
                self._trial.verdicts[index] = self._attempt(index, edits, changes)
        return True

    def _attempt(self, index: int, edits: list[Any], changes: list[Any]) -> Verdict:
        with Written(edits, index):  # for tests that start the program as a process
            answer = forked(lambda: self._run(changes), self._trial.state["candidate_s"])
        return Verdict(DIED, []) if answer is None else Verdict(*answer)

    def _run(self, changes: list[Any]) -> Verdict:
        for function, code in changes:
            function.__code__ = code
        recorder, judge = self._recorder, self._trial.judge
        recorder.clear()
        self._run_items(self._first)
        verdict = judge.judge(recorder.outcomes, recorder.signatures, all_ran=not self._rest)
        if verdict.code == BREAKS and self._rest and self._run_items(self._rest):
            return judge.judge(recorder.outcomes, recorder.signatures, all_ran=True)
        return verdict

    def _run_items(self, items: list[pytest.Item]) -> bool:
        """Runs tests; returns False at the first one that broke, once no failing test is left."""
        for item, following in zip(items, [*items[1:], None]):  # noqa: B905 - Python 3.8
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if items is self._rest:
                outcome = self._recorder.outcomes.get(item.nodeid)
                if self._trial.judge.is_broken(item.nodeid, outcome):
                    return False
        return True
