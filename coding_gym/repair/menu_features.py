"""Features of a menu and of its candidates, as numbers from 0 to 1."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coding_gym.mutation.catalogue import TEMPLATES
from coding_gym.repair.candidates import Candidate
from coding_gym.repair.search import Trial
from coding_gym.repair.spectrum import Spectrum

_STATIC = (
    "exists",
    "suspiciousness",
    "rank",  # 1 for the first candidate, then decreasing linearly
    "score",  # divided by the score of the first candidate
    "template_prior",
    "template_risk",
    "size",
    "run_by_failing",  # share of the failing tests that execute the changed line
    "run_by_passing",  # share of the passing tests that execute the changed line
    *(f"template_{template.name}" for template in TEMPLATES),
)
_DYNAMIC = (
    "tried",
    "in_place",
    "tested",
    "fraction_fixed",  # of the tests that failed at base, in the last run with the candidate
    "broke_others",
    "passed_all",
    "rank_untested",  # among untested candidates: 1 for the first, then decreasing linearly
    "tested_on_line",  # whether a candidate for the same statement was tested
    "fixed_on_line",  # the highest fraction_fixed of these candidates
)
CANDIDATE_FEATURES: tuple[str, ...] = (*_STATIC, *_DYNAMIC)
"""Names of the columns of the observation ``candidates``."""

MENU_FEATURES: tuple[str, ...] = (
    "num_candidates",  # as a share of the slots
    "num_failing",
    "share_tried",
    "changed",  # whether the tree may differ from the base
    "tests_current",  # whether the tests ran after the last change
    "fraction_fixed",  # in the run after the last change
    "broke_others",
    "passed_all",
    "best_fraction_fixed",  # the highest of all runs
    "turns_left",
)
"""Names of the entries of the observation ``menu``."""

_NUM_STATIC = len(_STATIC)
_HALF_SIZE = 20.0  # an edit of this many characters has size 0.5
_MAX_RISK = max(template.risk for template in TEMPLATES)
_PRIORS = {template.name: template.prior for template in TEMPLATES}
_HALF_FAILING = 4.0


@dataclass(slots=True)
class CandidateState:
    """The state of one candidate in the episode.

    Attributes:
        tried: Whether the candidate was applied in this episode.
        trial: The result of the last test run with the candidate; None before the first run.
    """

    tried: bool = False
    trial: Trial | None = None


def static_features(
    candidates: Sequence[Candidate], spectrum: Spectrum, num_slots: int
) -> NDArray[np.float32]:
    """Returns the features of candidates that do not depend on the episode.

    Returns:
        Shape (num_slots, F), float32, from 0 to 1; zeros for slots without a candidate.
    """
    rows = np.zeros((num_slots, len(CANDIDATE_FEATURES)), np.float32)
    for number, candidate in enumerate(candidates):
        num_failed, num_passed = spectrum.hits.get((candidate.path, candidate.line), (0, 0))
        features = (
            1.0,
            candidate.suspicion,
            1 - number / num_slots,
            candidate.score / candidates[0].score,
            _PRIORS[candidate.template],
            candidate.risk / _MAX_RISK,
            candidate.size / (candidate.size + _HALF_SIZE),
            num_failed / max(1, spectrum.num_failed),
            num_passed / max(1, spectrum.num_passed),
        )
        rows[number, : len(features)] = features
        rows[number, CANDIDATE_FEATURES.index(f"template_{candidate.template}")] = 1.0
    return rows


def add_episode_features(
    rows: NDArray[np.float32],
    candidates: Sequence[Candidate],
    states: Sequence[CandidateState],
    in_place: int | None,
) -> None:
    """Writes the features that depend on the episode into the rows of `static_features`."""
    by_line: dict[tuple[str, int], float] = {}
    for candidate, state in zip(candidates, states, strict=True):
        if state.trial is not None:
            line = candidate.path, candidate.line
            by_line[line] = max(state.trial.fraction_fixed, by_line.get(line, 0.0))
    num_untested = 0
    for number, (candidate, state) in enumerate(zip(candidates, states, strict=True)):
        line = candidate.path, candidate.line
        trial, is_tested = state.trial or Trial(), state.trial is not None
        rows[number, _NUM_STATIC:] = (
            state.tried,
            number == in_place,
            is_tested,
            trial.fraction_fixed,
            trial.breaks_others,
            trial.is_plausible,
            0.0 if is_tested else 1 - num_untested / len(rows),
            line in by_line,
            by_line.get(line, 0.0),
        )
        num_untested += not is_tested


def saturated(count: int) -> float:
    """Maps a count to a number from 0 to below 1; 4 becomes 0.5."""
    return count / (count + _HALF_FAILING)
