"""Tries repair candidates, each in a forked process, against the private copy of the tree."""

# ruff: noqa: TID252 - in the sandbox this package has another name

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from .clock import Stopwatch, forked
from .fast_loop import FastLoop
from .place import TREE, enter_tree
from .suite import Recorder, run_pytest
from .verdicts import BREAKS, DIED, PLAUSIBLE, UNTRIED, Judge, Verdict
from .written import Written

_COLLECT_S = 5.0  # besides, to import and collect everything once
_FAST_SHARE = 0.8  # of the time, when some candidates need a fresh import


class Trial:
    """Tries the candidates of one request.

    Args:
        state: What the driver remembers.
        request: ``paths``, ``units`` and ``candidates`` (indices of units, and edits: index of the
            path, start, end, text), ``seconds`` of the processor for the whole search, ``extra``
            candidates to try after the first plausible one, and ``full`` to import everything anew
            and run every test for every candidate.

    Attributes:
        watch: Says what the search has spent, with the requests before this one.
    """

    def __init__(self, state: dict[str, Any], request: dict[str, Any]) -> None:
        self.state = state
        self.judge = Judge(state)
        self.verdicts = [Verdict(UNTRIED, []) for _ in request["candidates"]]
        self._request = request
        self.watch = Stopwatch((0.0, 0.0) if request["full"] else tuple(state["spent"]))

    def run(self) -> list[Verdict]:
        """Returns how each candidate ended."""
        enter_tree(Path(self.state["workspace"]))
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        for name in self.state["preload"]:
            try:
                import_module(name)
            except Exception:  # noqa: BLE001, S112 - it is only a head start for the children
                continue
        waiting = list(range(len(self.verdicts)))
        if not self._request["full"]:
            seconds = self._request["seconds"]
            left_s, spent = self.watch.left_s(seconds), self.watch.spent()
            end_s = seconds - (1 - _FAST_SHARE) * left_s
            answer = forked(lambda: self._run_fast(end_s, spent), left_s + _COLLECT_S)
            if answer is not None:
                self.verdicts = [Verdict(*verdict) for verdict in answer[0]]
                waiting = answer[1]
        for index in waiting:
            if self.is_over(index, self._request["seconds"]):
                break
            self.verdicts[index] = self._attempt_fresh(index)
        return self.verdicts

    def is_over(self, index: int, seconds: float) -> bool:
        """Whether time is up, or enough was tried after the first plausible candidate."""
        if self.watch.is_past(seconds):
            return True
        codes = [verdict.code for verdict in self.verdicts]
        return PLAUSIBLE in codes and index > codes.index(PLAUSIBLE) + self._request["extra"]

    def edits(self, index: int) -> list[Any]:
        """Returns a candidate's edits with absolute file names."""
        paths = self._request["paths"]
        edits = self._request["candidates"][index][1]
        return [[str(TREE / paths[path]), start, end, text] for path, start, end, text in edits]

    def units(self, index: int) -> list[dict[str, Any]]:
        """Returns the functions that hold a candidate's edits; none where it edits other places."""
        units = [self._request["units"][n] for n in self._request["candidates"][index][0]]
        return [{**u, "name": str(TREE / self._request["paths"][u["path"]])} for u in units]

    def _run_fast(self, seconds: float, spent: tuple[float, float]) -> Any:
        self.watch = Stopwatch(spent)  # a new process has spent nothing itself
        recorder = self._recorder()
        loop = FastLoop(self, recorder, seconds)
        run_pytest(self.state["arguments"], [recorder, loop])
        return [self.verdicts, loop.waiting]

    def _recorder(self, *, stops_on_timeout: bool = False) -> Recorder:
        return Recorder(
            limit_s=self.state["test_s"],
            waits_s=self.state["waits_s"],
            stops_on_timeout=stops_on_timeout,
        )

    def _attempt_fresh(self, index: int) -> Verdict:
        whole, part = self.state["arguments"], self.judge.failing
        with Written(self.edits(index), index):
            runs_all = self._request["full"] or self.state["in_order"]
            verdict = self._run_tests(whole if runs_all else part, all_ran=runs_all)
            if verdict.code == BREAKS and not runs_all:
                verdict = self._run_tests(whole, all_ran=True)
        return verdict

    def _run_tests(self, arguments: list[str], *, all_ran: bool) -> Verdict:
        recorder = self._recorder(stops_on_timeout=True)

        def run() -> Verdict:
            run_pytest(arguments, [recorder])
            if recorder.timed_out:
                return Verdict(DIED, [])
            return self.judge.judge(recorder.outcomes, recorder.signatures, all_ran=all_ran)

        answer = forked(run, self.state["suite_s" if all_ran else "fresh_s"])
        return Verdict(DIED, []) if answer is None else Verdict(*answer)
