"""What a search makes of trials whose results are given."""

from collections.abc import Callable, Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from coding_gym.mutation.source import Edit
from coding_gym.repair import search
from coding_gym.repair.candidate_trials import Trial
from coding_gym.repair.candidates import Candidate
from coding_gym.repair.search import Search, pairs

ALL = frozenset("fgh")
Judge = Callable[[Candidate], Trial]


def single(start: int, score: float = 1.0) -> Candidate:
    return Candidate("a.py", 1, "compare", score, (Edit("a.py", start, start + 1, "x"),))


def searched(
    monkeypatch: pytest.MonkeyPatch, singles: Sequence[Candidate], judge: Judge
) -> tuple[Candidate | None, list[Trial]]:
    """Runs a search of which ``judge`` says what comes of each candidate."""

    class Tried:
        def __init__(self, *_: Any) -> None:
            pass

        def run(self, batch: Sequence[Candidate]) -> list[Trial]:
            return [judge(candidate) for candidate in batch]

        run_all = run

    monkeypatch.setattr(search, "CandidateTrials", Tried)
    baseline = SimpleNamespace(failing=tuple(ALL))
    found = SimpleNamespace(baseline=baseline, sources={}, candidates=lambda: iter(singles))
    run = Search(SimpleNamespace(spent_s=0.0), found)  # type: ignore[arg-type]
    return run.run(), run.trials


def test_pairs_that_fix_most_together_come_first_and_none_overlaps() -> None:
    one, other, third = (
        Trial(single(n), frozenset(fixed)) for n, fixed in enumerate(("f", "g", ""))
    )
    twice = Trial(single(0, 9.0), ALL)
    found = [[edit.start for edit in pair.edits] for pair in pairs([one, other, third, twice])]
    assert found == [[1, 0], [2, 0], [0, 1], [0, 2], [1, 2]]


def test_pairs_that_break_tests_do_not_hide_a_partial_repair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def judge(candidate: Candidate) -> Trial:
        if candidate.edits == single(0).edits:
            return Trial(candidate, frozenset("fg"), has_effect=True)
        breaks = candidate.is_pair
        return Trial(candidate, ALL if breaks else frozenset("h"), breaks, has_effect=True)

    chosen, trials = searched(monkeypatch, [single(n) for n in range(5)], judge)
    assert chosen == single(0)
    assert any(trial.candidate.is_pair for trial in trials)


def test_no_more_candidates_are_tried_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count()

    def judge(candidate: Candidate) -> Trial:
        return Trial(candidate, ALL, is_plausible=next(numbers) == 990)

    chosen, trials = searched(monkeypatch, [single(n) for n in range(1100)], judge)
    assert chosen == single(990)
    assert len(trials) == 1000
