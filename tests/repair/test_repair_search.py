"""The parts of the search, and programs that forge the results of their tests."""

import ast
import math
from typing import Any
from unittest import mock

import pytest
from episodes import raising

from coding_gym.grade import TestStatus
from coding_gym.mutation.source import Source
from coding_gym.repair.candidates import Candidate, candidates
from coding_gym.repair.localisation import Localisation, localise
from coding_gym.repair.program import Shortlist
from coding_gym.repair.search import find_repair, simplest
from coding_gym.repair.spectrum import Spectrum, ochiai, statement_scores
from coding_gym.source_text import Edit, apply_edits
from coding_gym.synthesis.observation import Observation
from coding_gym.synthesis.suite import ReplyError, SuiteRun

TEXT = "def area(a, b):\n    return a - b\n"
OUTCOMES = {
    "test_m.py::test_a": TestStatus.FAILED,
    "test_m.py::test_b": TestStatus.FAILED,
    **{f"test_m.py::test_{name}": TestStatus.PASSED for name in "cde"},
}
OBSERVED: dict[str, Any] = {
    "tests": [[test, "test_m.py", 1] for test in OUTCOMES],
    "failures": {},
    "random": [],
    "lines": {"m.py": {2: "5"}},
    "imported": {},
    "spawning": [],
    "modules": [],
}


def forged(
    texts: dict[str, str] | None = None,
    outcomes: dict[str, TestStatus] = OUTCOMES,
    **observed: Any,
) -> Any:
    """Returns a fake sandbox with these files, outcomes and observations."""
    files = {"m.py": TEXT} if texts is None else texts
    changes = {"tests": [(test, "test_m.py", 1) for test in outcomes], **observed}
    run = SuiteRun(outcomes, Observation.model_validate(OBSERVED | changes), 0.1)

    def read_file(path: str, max_bytes: int) -> bytes | None:
        data = files.get(path, "").encode("utf-8", "surrogateescape")
        return data if len(data) <= max_bytes else None

    def attempt(attempts: Any, _: Any) -> list[None]:
        return [None for _ in attempts]

    runs = {"runs": lambda requests: [run for _ in requests], "attempt": attempt}
    return mock.Mock(**runs, attempt_each=attempt, read_file=read_file, spent_s=0.0)


def found(texts: dict[str, str] | None = None, **observed: Any) -> Localisation:
    """Returns the localisation of a forged run."""
    localisation = localise(forged(texts, **observed))
    assert localisation is not None
    return localisation


@pytest.mark.parametrize(
    "lines",
    [
        {"m.py": {2: "f" * 10_000}},
        {"m.py": {-1: "1", 0: "1", 10**30: "1"}},
        {"/etc/passwd.py": {1: "1"}, "../m.py": {1: "1"}, "\0.py": {1: "1"}, "": {1: "1"}},
        {"m.py": dict.fromkeys(range(1, 30_000), "1")},
    ],
    ids=["more tests than there are", "no lines", "no files", "too many lines"],
)
def test_impossible_lines_are_ignored(lines: Any) -> None:
    localisation = found(lines=lines)
    features = Shortlist.of(localisation, 4).features
    assert ((features >= 0) & (features <= 1)).all()
    assert len(localisation.spectrum.hits) <= 10_000
    assert set(localisation.sources) <= {"m.py"}


def test_number_and_length_of_failing_tests_are_limited() -> None:
    many = dict.fromkeys((f"test_m.py::t{i}" for i in range(300)), TestStatus.FAILED)
    assert len(found(outcomes=many).baseline.failing) == 12
    long = {"t" * 60_000: TestStatus.FAILED, **OUTCOMES}
    assert found(outcomes=long).baseline.failing == ("test_m.py::test_a", "test_m.py::test_b")


CHAIN = "".join(f"    elif x == {i}:\n        y = {i}\n" for i in range(700))


@pytest.mark.parametrize(
    "text",
    [
        f"def area(x):\n    if x:\n        y = 1\n{CHAIN}",
        f"def area(x):\n    return {'+'.join(['x'] * 900)}\n",
        f"def area(x):\n    return {'-' * 50_000}x\n",
        f"def area(x):\n    return x{'.a' * 20_000}\n",
        "\udcff",
        "a" * 500_000,
        "def (:",
    ],
    ids=["elif", "sum", "minus", "attributes", "no text", "too long", "no Python"],
)
def test_file_without_a_usable_syntax_tree_is_skipped(text: str) -> None:
    lines = OBSERVED["lines"] | {"deep.py": {2: "1"}}
    localisation = found({"m.py": TEXT, "deep.py": text}, lines=lines)
    assert {candidate.path for candidate in localisation.candidates()} == {"m.py"}


def test_unusable_outcomes_find_no_repair() -> None:
    refuse = raising(ReplyError("another shape"))
    tests = forged()
    localisation = localise(tests)
    assert localisation is not None
    assert find_repair(tests, localisation) is None
    tests.runs = refuse
    assert localise(tests) is None


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


def test_constant_is_nearly_as_suspicious_as_its_readers() -> None:
    sources = {
        "a.py": Source("a.py", "def f():\n    return conf.LIMIT\n"),
        "conf.py": Source("conf.py", "LIMIT = 3\nOTHER = 4\n"),
    }
    found = statement_scores(sources, {"a.py": {2: 1.0}})
    assert found["conf.py"] == {1: 0.9}


SMALLER = "def f(a, b):\n    if a < b:\n        return a\n    return b - 1\n"


def candidate(start: int, *, score: float = 0.5, risk: int = 0) -> Candidate:
    return Candidate("a.py", 1, "compare", score, (Edit("a.py", start, start + 1, "x"),), risk=risk)


def test_candidates_come_in_falling_order_of_score() -> None:
    found = list(candidates("a.py", SMALLER, {2: 0.9, 4: 0.3}))
    assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)
    assert (found[0].template, found[0].line) == ("compare", 2)


def test_the_simplest_has_the_least_risk_then_the_highest_score() -> None:
    risky, weak, strong = candidate(0, risk=3), candidate(0, score=0.2), candidate(0, score=0.4)
    assert simplest([risky, weak, strong]) == [strong, weak, risky]
