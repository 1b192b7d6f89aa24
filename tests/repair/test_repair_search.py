"""Localisation, candidates and their order, also for programs that forge test results."""

import ast
import math
import time
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from coding_gym.grade import TestStatus
from coding_gym.mutation.source import Source
from coding_gym.repair.candidates import Candidate, candidates
from coding_gym.repair.localisation import Localisation, localise
from coding_gym.repair.search import preference
from coding_gym.repair.spectrum import Spectrum, ochiai, statement_scores
from coding_gym.source_text import Edit, apply_edits
from coding_gym.synthesis.suite import Attempt, Observation, SuiteRun

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
}


class ForgedSuite:
    """A fake suite that returns the outcomes and observations of its arguments."""

    def __init__(
        self,
        texts: dict[str, str] | None = None,
        outcomes: dict[str, TestStatus] = OUTCOMES,
        **observed: Any,
    ) -> None:
        self.task = SimpleNamespace(visible_test_command="")
        self.spent_s = 0.0
        self._texts = {"m.py": TEXT} if texts is None else texts
        changes = {"tests": [(test, "test_m.py", 1) for test in outcomes], **observed}
        observation = Observation.model_validate(OBSERVED | changes)
        self._run = SuiteRun(outcomes, observation, 0.1)

    def run(self, attempt: Attempt) -> SuiteRun | None:
        return None if attempt.tests or attempt.files else self._run

    def open(self) -> Any:
        return nullcontext(self)

    def read_file(self, path: str, max_bytes: int) -> bytes:
        data = self._texts.get(path, "").encode("utf-8", "surrogateescape")
        if len(data) > max_bytes:
            raise OSError("too large")
        return data


def localised(texts: dict[str, str] | None = None, **observed: Any) -> Localisation:
    """Returns the localisation of a forged run."""
    suite: Any = ForgedSuite(texts, **observed)
    localisation = localise(suite)
    assert localisation is not None
    return localisation


def test_paths_outside_the_program_are_ignored() -> None:
    paths = ("/etc/passwd.py", "../m.py", "\0.py", "")
    localisation = localised(lines=OBSERVED["lines"] | {path: {1: "1"} for path in paths})
    assert localisation.sources.keys() == {"m.py"}


def test_number_of_failing_tests_is_limited() -> None:
    many = dict.fromkeys((f"test_m.py::t{i}" for i in range(300)), TestStatus.FAILED)
    assert len(localised(outcomes=many).baseline.failing) == 12


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
    localisation = localised({"m.py": TEXT, "deep.py": text}, lines=lines)
    assert {candidate.path for candidate in localisation.candidates()} == {"m.py"}


def test_slow_file_has_fewer_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10**9))
    monkeypatch.setattr(time, "thread_time", lambda: float(next(clock)))
    lines = "".join(f"    x{i} = x{i} + {i}\n" for i in range(300))
    text = f"def area():\n{lines}"
    num_candidates = len(list(candidates(Source("m.py", text), dict.fromkeys(range(2, 302), 1.0))))
    monkeypatch.undo()
    assert 0 < num_candidates <= 60


def test_very_long_names_are_not_compared() -> None:
    names = [chr(0x4E00 + i) * 1500 for i in range(2)]
    text = f"def area({', '.join(names)}):\n    return {names[0]}\n"
    templates = [c.template for c in candidates(Source("m.py", text), {2: 1.0})]
    assert "variable" not in templates


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
    scores = statement_scores(sources, {"a.py": {2: 1.0}})
    assert scores["conf.py"] == {1: 0.9}


SMALLER = "def f(a, b):\n    if a < b:\n        return a\n    return b - 1\n"


def candidate(start: int, *, score: float = 0.5, risk: int = 0) -> Candidate:
    return Candidate("a.py", 1, "compare", score, (Edit("a.py", start, start + 1, "x"),), risk=risk)


def test_candidates_come_in_falling_order_of_score() -> None:
    results = list(candidates(Source("a.py", SMALLER), {2: 0.9, 4: 0.3}))
    assert [c.score for c in results] == sorted((c.score for c in results), reverse=True)
    assert (results[0].template, results[0].line) == ("compare", 2)


def test_the_least_risk_and_then_the_highest_score_is_preferred() -> None:
    risky, weak, strong = candidate(0, risk=3), candidate(0, score=0.2), candidate(0, score=0.4)
    assert sorted([risky, weak, strong], key=preference) == [strong, weak, risky]
