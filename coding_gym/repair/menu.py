"""A repair episode as a menu of actions: run the tests, submit, or apply a candidate."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coding_gym.calls import ToolCall
from coding_gym.repair.menu_features import CandidateState, add_episode_features, saturated
from coding_gym.repair.program import CandidateProgram
from coding_gym.repair.search import Trial

RUN_TESTS, SUBMIT, FIRST_CANDIDATE = range(3)

_RESTORE = "git checkout -q -- ."


class Menu:
    """The menu of one episode.

    The caller runs the tool calls that `calls` returns for an action; `note` records their results.

    Args:
        program: The program with its candidates; the first use of a program is slow.
        num_slots: K, the maximum number of candidates.
        state: The `state` of a menu with the same arguments, to continue from.
    """

    def __init__(
        self, program: CandidateProgram, num_slots: int, state: Mapping[str, Any] | None = None
    ) -> None:
        self._program = program
        if state is not None:
            vars(self).update(_copy_state(state))
            return
        self._num_slots = num_slots
        self._shortlist = program.shortlist()
        self._states = [CandidateState() for _ in self._shortlist.candidates]
        self._applied_number: int | None = None
        self._is_tree_unknown = False  # whether the tree may differ from `_applied_number`
        self._current_trial: Trial | None = None  # result for the current tree
        self._next_trial = Trial()  # result of the action being played
        self._best_fraction = 0.0
        self._played_action: int | None = None

    def mask(self) -> NDArray[np.bool_]:
        """Returns the mask of available actions, shape (2 + K,); submitting is always available."""
        mask = np.zeros(FIRST_CANDIDATE + self._num_slots, np.bool_)
        mask[RUN_TESTS] = self._current_trial is None
        mask[SUBMIT] = True
        for number, state in enumerate(self._states):
            has_failed = state.trial is not None and not state.trial.is_plausible
            mask[FIRST_CANDIDATE + number] = number != self._applied_number and not has_failed
        return mask

    def calls(self, action: int) -> list[ToolCall]:
        """Returns the tool calls of an action; for an unavailable action, they print a message."""
        self._played_action = action if self.mask()[action] else None
        if self._played_action is None:
            return [_shell(f"echo {shlex.quote(f'{meaning(action)}: not available now')}")]
        if action == RUN_TESTS:
            self._next_trial = self._run()
            restore = f"{_RESTORE}; " if self._is_tree_unknown else ""
            return [_shell(f"{restore}echo {shlex.quote(self._summary(self._next_trial))}")]
        if action == SUBMIT:
            return [ToolCall("submit")]
        return [_shell(self._apply_command(action - FIRST_CANDIDATE))]

    def note(self, replies: Sequence[str]) -> None:
        """Records the outputs of the last action's calls, in the order of the calls."""
        if self._played_action == RUN_TESTS:
            self._note_tests()
        elif self._played_action is not None and self._played_action >= FIRST_CANDIDATE:
            self._note_applied(self._played_action - FIRST_CANDIDATE, replies)

    def state(self) -> dict[str, Any]:
        """Returns the state of the menu, for the argument ``state`` of another menu."""
        return {k: v for k, v in _copy_state(vars(self)).items() if k != "_program"}

    def candidate_features(self) -> NDArray[np.float32]:
        """Returns one row per slot, shape (K, F), float32, from 0 to 1; see `menu_features`."""
        rows = self._shortlist.features.copy()
        add_episode_features(rows, self._shortlist.candidates, self._states, self._applied_number)
        return rows

    def features(self, turns_left: float) -> NDArray[np.float32]:
        """Returns features of the whole menu, shape (M,), float32, from 0 to 1.

        Args:
            turns_left: The remaining share of the episode's turns.
        """
        baseline = self._shortlist.baseline
        trial = self._current_trial or Trial()
        num_candidates = max(1, len(self._states))
        values = (
            len(self._states) / self._num_slots,
            0.0 if baseline is None else saturated(len(baseline.failing)),
            sum(state.tried for state in self._states) / num_candidates,
            self._applied_number is not None or self._is_tree_unknown,
            self._current_trial is not None,
            trial.fraction_fixed,
            trial.breaks_others,
            trial.is_plausible,
            self._best_fraction,
            turns_left,
        )
        return np.asarray(values, np.float32)

    def _apply_command(self, number: int) -> str:
        """Returns the command that restores the tree and applies a candidate."""
        candidate = self._shortlist.candidates[number]
        diff = candidate.patch(self._shortlist.texts[candidate.path]).text
        command = f"printf %s {shlex.quote(diff)} | git apply"
        return f"{_RESTORE} && {command} && echo {_applied_message(number)}"

    def _note_applied(self, number: int, replies: Sequence[str]) -> None:
        self._current_trial = None
        self._is_tree_unknown = not any(_applied_message(number) in reply for reply in replies)
        self._applied_number = None if self._is_tree_unknown else number
        self._states[number].tried = True

    def _run(self) -> Trial:
        if self._shortlist.baseline is None:
            return Trial(breaks_others=True)
        if not self._shortlist.baseline.failing:
            return Trial(1.0)
        if self._applied_number is None:
            return Trial()
        return self._program.trial(self._shortlist, self._applied_number)

    def _summary(self, trial: Trial) -> str:
        if self._shortlist.baseline is None:
            return "the visible tests could not be run"
        num_failing = len(self._shortlist.baseline.failing)
        num_fixed = round(trial.fraction_fixed * num_failing)
        text = f"{num_fixed} of {num_failing} failing tests now pass"
        if trial.breaks_others:
            return f"{text}, but other tests broke"
        return f"{text}, and all other tests pass" if trial.is_plausible else text

    def _note_tests(self) -> None:
        self._current_trial = self._next_trial
        self._is_tree_unknown = False
        self._best_fraction = max(self._best_fraction, self._next_trial.fraction_fixed)
        if self._applied_number is not None:
            self._states[self._applied_number] = CandidateState(tried=True, trial=self._next_trial)


def _copy_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the attributes of a menu with copies of mutable values."""
    return {**state, "_states": [replace(s) for s in state["_states"]]}


def meaning(action: int) -> str:
    """Returns the name of an action for messages."""
    names = {RUN_TESTS: "run_tests", SUBMIT: "submit"}
    return names.get(action, f"try candidate {action - FIRST_CANDIDATE}")


def _shell(command: str) -> ToolCall:
    return ToolCall("shell", {"cmd": command})


def _applied_message(number: int) -> str:
    return f"candidate {number} is in place"
