import subprocess
import sys

from coding_gym.repair.candidates import Candidate, candidates
from coding_gym.repair.pairs import Trial, pairs, simplest
from coding_gym.repair.source import Edit

TEXT = "def f(a, b):\n    if a < b:\n        return a\n    return b - 1\n"


def candidate(start: int, *, score: float = 0.5, risk: int = 0, path: str = "a.py") -> Candidate:
    return Candidate(path, 1, "compare", score, (Edit(path, start, start + 1, "x"),), "", risk=risk)


def test_candidates_come_in_falling_order_of_score() -> None:
    found = list(candidates("a.py", TEXT, {2: 0.9, 4: 0.3}))
    assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)
    assert (found[0].template, found[0].line) == ("compare", 2)


def test_only_suspicious_lines_are_edited() -> None:
    assert {c.line for c in candidates("a.py", TEXT, {4: 1.0, 2: 0.0})} == {4}


def test_the_order_is_the_same_in_another_process() -> None:
    code = (
        "from coding_gym.repair.candidates import candidates\n"
        f"print([c.edits for c in candidates('a.py', {TEXT!r}, {{2: 1.0, 3: 1.0, 4: 1.0}})])"
    )
    first, second = (
        subprocess.check_output([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed})
        for seed in "12"
    )
    assert first == second != b"[]\n"


def test_pairs_that_fix_more_together_come_first() -> None:
    changed = Trial(candidate(0, score=0.9), "~")
    first = Trial(candidate(2, score=0.5), "+", frozenset({0}))
    second = Trial(candidate(4, score=0.1), "+", frozenset({1}))
    found = list(pairs([changed, first, second]))
    assert [tuple(e.start for e in c.edits) for c in found] == [(2, 4), (0, 2), (0, 4)]
    assert found[0].template == "compare+compare"


def test_overlapping_edits_are_not_paired() -> None:
    assert list(pairs([Trial(candidate(0), "~"), Trial(candidate(0), "~")])) == []
    elsewhere = Trial(candidate(0, path="b.py"), "~")
    assert len(list(pairs([Trial(candidate(0), "~"), elsewhere]))) == 1


def test_the_simplest_has_fewest_edits_then_least_risk_then_the_highest_score() -> None:
    pair = next(pairs([Trial(candidate(0), "~"), Trial(candidate(2), "~")]))
    risky, weak, strong = candidate(0, risk=3), candidate(0, score=0.2), candidate(0, score=0.4)
    trials = [Trial(c, "!") for c in (pair, risky, weak, strong)]
    assert simplest(trials) == [strong, weak, risky, pair]
