import math

from coding_gym.repair.source import Source
from coding_gym.repair.spectrum import RunOfTest, Spectrum, SuspiciousLine, ochiai, statement_scores

FAILED, PASSED = False, True


def run(passed: bool, *lines: int, path: str = "a.py") -> RunOfTest:
    return RunOfTest(passed, frozenset((path, line) for line in lines))


def test_a_line_that_only_the_failing_test_runs_comes_first() -> None:
    spectrum = Spectrum.from_runs([run(FAILED, 1, 2, 5), run(PASSED, 1, 2), run(PASSED, 1)])
    assert [(s.line, s.score) for s in ochiai(spectrum)] == [
        (5, 1.0),
        (2, 1 / math.sqrt(2)),
        (1, 1 / math.sqrt(3)),
    ]


def test_lines_that_no_failing_test_runs_are_left_out() -> None:
    assert ochiai(Spectrum.from_runs([run(FAILED, 1), run(PASSED, 2)])) == [
        SuspiciousLine("a.py", 1, 1.0)
    ]


def test_equal_scores_are_ordered_by_path_and_line() -> None:
    runs = [RunOfTest(FAILED, frozenset({("b.py", 1), ("a.py", 9), ("a.py", 2)}))]
    ranked = ochiai(Spectrum.from_runs(runs))
    assert [(s.path, s.line) for s in ranked] == [("a.py", 2), ("a.py", 9), ("b.py", 1)]


def test_without_a_failing_test_nothing_is_suspicious() -> None:
    assert ochiai(Spectrum.from_runs([run(PASSED, 1)])) == []


def scores(text: str, lines: dict[int, float]) -> dict[int, float]:
    ranked = [SuspiciousLine("a.py", line, score) for line, score in lines.items()]
    return statement_scores({"a.py": Source("a.py", text)}, ranked)["a.py"]


def test_a_statement_over_several_lines_has_its_highest_score() -> None:
    assert scores("x = [\n    f(),\n    g(),\n]\n", {2: 0.4, 3: 0.6}) == {1: 0.6}


def test_a_condition_does_not_take_the_score_of_its_block() -> None:
    assert scores("if a:\n    f()\n", {1: 0.3, 2: 0.8}) == {1: 0.3, 2: 0.8}


def test_a_signature_is_as_suspicious_as_its_body_and_not_as_its_import() -> None:
    text = "def f(x=[]):\n    return x\n\n\ndef g(x=[]):\n    return x\n"
    assert scores(text, {1: 1.0, 2: 0.7, 5: 1.0}) == {1: 0.7, 2: 0.7}


def test_a_constant_is_nearly_as_suspicious_as_what_reads_it() -> None:
    sources = {
        "a.py": Source("a.py", "def f():\n    return conf.LIMIT\n"),
        "conf.py": Source("conf.py", "LIMIT = 3\nOTHER = 4\n"),
    }
    found = statement_scores(sources, [SuspiciousLine("a.py", 2, 1.0)])
    assert found["conf.py"] == {1: 0.9}
