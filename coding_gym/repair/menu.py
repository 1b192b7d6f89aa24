"""A repair episode as a menu: run the tests, submit, or put candidate k in place."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from coding_gym.calls import ToolCall
from coding_gym.patch import Patch
from coding_gym.repair.candidate_trials import Trial
from coding_gym.repair.menu_features import Standing, add_standings, saturated
from coding_gym.repair.shortlist import Shortlist

RUN_TESTS, SUBMIT, FIRST_CANDIDATE = range(3)

_RESTORE = "git checkout -q -- ."


class Program(Protocol):
    """The candidates and trials of a menu. Both methods are slow on the first call."""

    def shortlist(self) -> Shortlist:
        """Returns the candidates."""
        ...

    def trial(self, shortlist: Shortlist, number: int) -> Trial:
        """Returns how the visible tests go with one of its candidates in place."""
        ...


@dataclass(frozen=True, slots=True)
class RunReport:
    """How a run of the visible tests ended.

    Attributes:
        fraction: Of the tests that failed at base, how many pass, from 0 to 1.
        broken: Whether another test fails, or the tests could not be run.
        passed: Whether all of the former pass and none of the latter fails.
    """

    fraction: float = 0.0
    broken: bool = False
    passed: bool = False


class Menu:
    """One episode's menu. It plays nothing itself: tool calls out, their replies in.

    An action is played in two halves: `calls` gives its tool calls, `note` takes their replies.

    Args:
        program: Finds candidates and tries them.
        num_slots: K, the most candidates that are offered.
        state: The `state` of a menu of the same arguments, to continue from.
    """

    def __init__(
        self, program: Program, num_slots: int, state: Mapping[str, Any] | None = None
    ) -> None:
        self._program = program
        if state is not None:
            vars(self).update(_copied(state))
            return
        self._num_slots = num_slots
        self._shortlist = program.shortlist()
        self._standings = [Standing() for _ in self._shortlist.candidates]
        self._in_place: int | None = None
        self._is_unknown = False  # whether the files may not be what `_in_place` says
        self._report: RunReport | None = None  # on the tree as it is now
        self._next = RunReport()  # of the run that is being played
        self._best = 0.0
        self._played: int | None = None

    def mask(self) -> NDArray[np.bool_]:
        """Returns the mask of available actions, shape (2 + K,); submitting always is."""
        mask = np.zeros(FIRST_CANDIDATE + self._num_slots, np.bool_)
        mask[RUN_TESTS] = self._report is None
        mask[SUBMIT] = True
        for number, standing in enumerate(self._standings):
            failed = standing.tested and not standing.passed
            mask[FIRST_CANDIDATE + number] = number != self._in_place and not failed
        return mask

    def calls(self, action: int) -> list[ToolCall]:
        """Returns the tool calls of an action; an unavailable one only prints a message."""
        self._played = action if self.mask()[action] else None
        if self._played is None:
            return [_shell(f"echo {shlex.quote(f'{meaning(action)}: not available now')}")]
        if action == RUN_TESTS:
            self._next = self._run()
            restore = f"{_RESTORE}; " if self._is_unknown else ""
            return [_shell(f"{restore}echo {shlex.quote(self._said(self._next))}")]
        if action == SUBMIT:
            return [ToolCall("submit")]
        return [_shell(self._putting(action - FIRST_CANDIDATE))]

    def note(self, replies: Sequence[str]) -> None:
        """Takes the replies to the calls of the last action, in their order."""
        if self._played == RUN_TESTS:
            self._note_tests()
        elif self._played is not None and self._played >= FIRST_CANDIDATE:
            self._note_put(self._played - FIRST_CANDIDATE, replies)

    def state(self) -> dict[str, Any]:
        """Returns the state of the episode's menu, from which an equal one can be made."""
        return _copied({name: value for name, value in vars(self).items() if name != "_program"})

    def candidate_features(self) -> NDArray[np.float32]:
        """Returns one row per slot, shape (K, F), from 0 to 1; see `menu_features`."""
        rows = self._shortlist.features.copy()
        add_standings(rows, self._shortlist.candidates, self._standings, self._in_place)
        return rows

    def features(self, turns_left: float) -> NDArray[np.float32]:
        """Returns the state that belongs to no candidate, shape (M,), from 0 to 1.

        Args:
            turns_left: The share of the episode's turns that is left.
        """
        baseline = self._shortlist.baseline
        report = self._report or RunReport()
        num = max(1, len(self._standings))
        values = (
            len(self._standings) / self._num_slots,
            0.0 if baseline is None else saturated(len(baseline.failing)),
            sum(standing.tried for standing in self._standings) / num,
            self._in_place is not None or self._is_unknown,
            self._report is not None,
            report.fraction,
            report.broken,
            report.passed,
            self._best,
            turns_left,
        )
        return np.asarray(values, np.float32)

    def _putting(self, number: int) -> str:
        """Returns the command that restores the tree and puts a candidate in place."""
        texts = self._shortlist.texts
        changed = self._shortlist.candidates[number].changed(texts)
        patch = Patch.between({path: texts[path] for path in changed}, changed).text
        return f"{_RESTORE} && printf %s {shlex.quote(patch)} | git apply && echo {_placed(number)}"

    def _note_put(self, number: int, replies: Sequence[str]) -> None:
        self._report = None
        self._is_unknown = not any(_placed(number) in reply for reply in replies)
        self._in_place = None if self._is_unknown else number
        self._standings[number].tried = True

    def _run(self) -> RunReport:
        if self._shortlist.baseline is None:
            return RunReport(broken=True)
        num_failing = len(self._shortlist.baseline.failing)
        if not num_failing:
            return RunReport(1.0, passed=True)
        if self._in_place is None:
            return RunReport()
        trial = self._program.trial(self._shortlist, self._in_place)
        return RunReport(trial.num_fixed / num_failing, trial.breaks_others, trial.is_plausible)

    def _said(self, report: RunReport) -> str:
        if self._shortlist.baseline is None:
            return "the visible tests could not be run"
        num_failing = len(self._shortlist.baseline.failing)
        num_fixed = round(report.fraction * num_failing)
        text = f"{num_fixed} of {num_failing} tests that failed pass now"
        if report.broken:
            return f"{text}, but others broke"
        return f"{text}, and all others" if report.passed else text

    def _note_tests(self) -> None:
        report = self._report = self._next
        self._is_unknown = False
        self._best = max(self._best, report.fraction)
        if self._in_place is not None:
            self._standings[self._in_place] = Standing(
                tried=True,
                tested=True,
                fraction=report.fraction,
                broken=report.broken,
                passed=report.passed,
            )


def _copied(state: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a menu's attributes, sharing nothing that changes."""
    return {**state, "_standings": [replace(standing) for standing in state["_standings"]]}


def meaning(action: int) -> str:
    """Describes an action."""
    named = {RUN_TESTS: "run_tests", SUBMIT: "submit"}
    return named.get(action, f"try candidate {action - FIRST_CANDIDATE}")


def _shell(command: str) -> ToolCall:
    return ToolCall("shell", {"cmd": command})


def _placed(number: int) -> str:
    return f"candidate {number} is in place"
