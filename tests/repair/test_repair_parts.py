"""The parts of the search: spans and edits of a source, suspicious lines, candidates in order."""

import ast
import math

import pytest

from coding_gym.mutation.source import Edit, Source, apply_edits
from coding_gym.repair.candidates import Candidate, candidates
from coding_gym.repair.search import simplest
from coding_gym.repair.spectrum import Spectrum, ochiai


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_spans_count_characters_with_every_line_end(newline: str) -> None:
    text = f"a = 1{newline}\x0cb = [2,{newline}  3]{newline}b = 'é€'; c = d{newline}"
    source = Source("a.py", text)
    last = source.tree.body[-1]
    assert isinstance(last, ast.Assign)
    assert source.segment(last.value) == "d"


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        apply_edits("abcdef", [Edit("a", 0, 3, "x"), Edit("a", 2, 4, "y")])


def test_a_line_that_only_the_failing_test_runs_comes_first() -> None:
    hits = {("a.py", 1): (1, 2), ("a.py", 2): (1, 1), ("a.py", 5): (1, 0), ("a.py", 6): (0, 2)}
    expected = {1: 1 / math.sqrt(3), 2: 1 / math.sqrt(2), 5: 1.0}
    assert ochiai(Spectrum(1, 2, hits)) == {"a.py": expected}


TEXT = "def f(a, b):\n    if a < b:\n        return a\n    return b - 1\n"


def candidate(start: int, *, score: float = 0.5, risk: int = 0) -> Candidate:
    return Candidate("a.py", 1, "compare", score, (Edit("a.py", start, start + 1, "x"),), risk=risk)


def test_candidates_come_in_falling_order_of_score() -> None:
    found = list(candidates("a.py", TEXT, {2: 0.9, 4: 0.3}))
    assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)
    assert (found[0].template, found[0].line) == ("compare", 2)


def test_the_simplest_has_the_least_risk_then_the_highest_score() -> None:
    risky, weak, strong = candidate(0, risk=3), candidate(0, score=0.2), candidate(0, score=0.4)
    assert simplest([risky, weak, strong]) == [strong, weak, risky]
