"""A repair episode as a menu: locate, view, run the tests, submit, or put candidate k in place."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from coding_gym.calls import ToolCall
from coding_gym.repair.candidate_trials import Trial
from coding_gym.repair.candidates import Candidate
from coding_gym.repair.menu_features import (
    CANDIDATE_FEATURES,
    Standing,
    add_standings,
    saturated,
)
from coding_gym.repair.patching import Replacement, replacements, undone
from coding_gym.repair.shortlist import Shortlist

LOCATE, VIEW, RUN_TESTS, SUBMIT, FIRST_CANDIDATE = range(5)

_APPLIED = "patch applied successfully"
_RESTORE = "git checkout -q -- ."


class Program(Protocol):
    """What a menu is made of. Both methods take a while when first called."""

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
    """

    def __init__(self, program: Program, num_slots: int) -> None:
        self._program = program
        self._num_slots = num_slots
        self._shortlist: Shortlist | None = None
        self._standings: list[Standing] = []
        self._views: list[str] = []
        self._num_views = 0
        self._in_place: int | None = None
        self._restores = False  # whether the files may not be what `_in_place` says
        self._report: RunReport | None = None  # on the tree as it is now
        self._next = RunReport()  # of the run that is being played
        self._best = 0.0
        self._played: int | None = None

    def mask(self) -> NDArray[np.bool_]:
        """Returns which actions make sense now, shape (4 + K,); submitting always does."""
        mask = np.zeros(FIRST_CANDIDATE + self._num_slots, np.bool_)
        mask[LOCATE] = self._shortlist is None
        mask[VIEW] = bool(self._views)
        mask[RUN_TESTS] = self._report is None
        mask[SUBMIT] = True
        for number, standing in enumerate(self._standings):
            failed = standing.tested and not standing.passed
            mask[FIRST_CANDIDATE + number] = number != self._in_place and not failed
        return mask

    def calls(self, action: int) -> list[ToolCall]:
        """Returns the tool calls of an action; one that makes no sense now only says so."""
        self._played = action if self.mask()[action] else None
        if self._played is None:
            return [_shell(f"echo {shlex.quote(f'{meaning(action)}: not available now')}")]
        if action == LOCATE:
            return [_shell(self._locate())]
        if action == VIEW:
            return [_shell(self._views.pop(0))]
        if action == RUN_TESTS:
            return self._test()
        if action == SUBMIT:
            return [ToolCall("submit")]
        return self._put(action - FIRST_CANDIDATE)

    def note(self, replies: Sequence[str]) -> None:
        """Takes the replies to the calls of the last action, in their order."""
        if self._played == RUN_TESTS:
            self._note_tests()
        elif self._played is not None and self._played >= FIRST_CANDIDATE:
            self._note_put(self._played - FIRST_CANDIDATE, replies)

    def state(self) -> dict[str, Any]:
        """Returns all that an episode has made of this menu, for `restore`."""
        return _copied({name: value for name, value in vars(self).items() if name != "_program"})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes over the `state` of a menu that was made with the same arguments."""
        vars(self).update(_copied(state))

    def candidate_features(self) -> NDArray[np.float32]:
        """Returns one row per slot, shape (K, F), from 0 to 1; see `menu_features`."""
        if self._shortlist is None:
            return np.zeros((self._num_slots, len(CANDIDATE_FEATURES)), np.float32)
        rows = self._shortlist.features.copy()
        add_standings(rows, self._candidates, self._standings, self._in_place)
        return rows

    def features(self, turns_left: float) -> NDArray[np.float32]:
        """Returns the state that belongs to no candidate, shape (M,), from 0 to 1.

        Args:
            turns_left: The share of the episode's turns that is left.
        """
        baseline = None if self._shortlist is None else self._shortlist.baseline
        report = self._report or RunReport()
        num = max(1, len(self._standings))
        values = (
            self._shortlist is not None,
            len(self._standings) / self._num_slots,
            0.0 if baseline is None else saturated(len(baseline.failing)),
            sum(standing.tried for standing in self._standings) / num,
            len(self._views) / max(1, self._num_views),
            self._in_place is not None or self._restores,
            self._report is not None,
            report.fraction,
            report.broken,
            report.passed,
            self._best,
            turns_left,
        )
        return np.asarray(values, np.float32)

    @property
    def _candidates(self) -> Sequence[Candidate]:
        return () if self._shortlist is None else self._shortlist.candidates

    def _locate(self) -> str:
        shortlist = self._shortlist = self._program.shortlist()
        self._standings = [Standing() for _ in shortlist.candidates]
        self._views = list(shortlist.views)
        self._num_views = len(self._views)
        return shortlist.listing

    def _put(self, number: int) -> list[ToolCall]:
        assert self._shortlist is not None  # noqa: S101 - the mask allows no candidate before
        texts = dict(self._shortlist.texts)
        calls: list[ToolCall] = []
        if self._restores:
            calls.append(_shell(_RESTORE))
        elif self._in_place is not None:
            before = self._candidates[self._in_place].edits
            for _ in replacements(texts, before):
                pass  # only the texts are wanted
            calls += map(_apply_patch, replacements(texts, undone(before, self._shortlist.texts)))
        calls += map(_apply_patch, replacements(texts, self._candidates[number].edits))
        return calls

    def _note_put(self, number: int, replies: Sequence[str]) -> None:
        patches = replies[1:] if self._restores else replies
        self._report = None
        self._restores = not patches or not all(_APPLIED in reply for reply in patches)
        self._in_place = None if self._restores else number
        self._standings[number].tried = True

    def _test(self) -> list[ToolCall]:
        """Returns the calls that make the tree what it should be, and show how its tests go."""
        restoring = [_shell(_RESTORE)] if self._restores else []
        shortlist = self._shortlist or self._program.shortlist()
        report = self._next = self._run(shortlist)
        return [*restoring, _shell(f"echo {shlex.quote(_said(report, shortlist))}")]

    def _run(self, shortlist: Shortlist) -> RunReport:
        if shortlist.baseline is None:
            return RunReport(broken=True)
        num_failing = len(shortlist.baseline.failing)
        if not num_failing:
            return RunReport(1.0, passed=True)
        if self._in_place is None:
            return RunReport()
        trial = self._program.trial(shortlist, self._in_place)
        return RunReport(trial.num_fixed / num_failing, trial.breaks_others, trial.is_plausible)

    def _note_tests(self) -> None:
        report = self._report = self._next
        self._restores = False
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
    standings, views = state["_standings"], state["_views"]
    return {**state, "_standings": [replace(s) for s in standings], "_views": list(views)}


def _said(report: RunReport, shortlist: Shortlist) -> str:
    if shortlist.baseline is None:
        return "the visible tests could not be run"
    num_failing = len(shortlist.baseline.failing)
    num_fixed = round(report.fraction * num_failing)
    text = f"{num_fixed} of {num_failing} tests that failed pass now"
    if report.broken:
        return f"{text}, but others broke"
    return f"{text}, and all others" if report.passed else text


def meaning(action: int) -> str:
    """Returns what an action does, in words."""
    named = {LOCATE: "locate", VIEW: "view", RUN_TESTS: "run_tests", SUBMIT: "submit"}
    return named.get(action, f"try candidate {action - FIRST_CANDIDATE}")


def _shell(command: str) -> ToolCall:
    return ToolCall("shell", {"cmd": command})


def _apply_patch(change: Replacement) -> ToolCall:
    arguments = {"search": change.search, "replace": change.replace, "file": change.path}
    return ToolCall("apply_patch", arguments)
