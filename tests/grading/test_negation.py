"""Checks record their outcome and let the test continue; negation keeps the line numbers."""

import contextlib
import re
import unittest
import warnings
from collections import Counter
from collections.abc import Sequence
from math import log10
from random import Random
from typing import Any
from unittest import mock

import pytest

from coding_gym.grading.challenge import Unit
from coding_gym.grading.negation import RECORDER, TestFile
from coding_gym.grading.wrong_values import near_misses
from coding_gym.source_text import Edit, SourceText, apply_edits
from coding_gym.syntax import parse_expression

# The body of a test, and the level of the first negation that a correct program fails.
CHECKS = {
    "assert f(3) == 4": "value",
    "assert f(3) is not None and f(3) == 4": "value",
    "assert (f(3) == 4) is True": "value",
    "assert f(3) == f(int('3'))": "value",
    "assert f(3) == (4\n        + 0), 'reason'": "value",
    "with open('/dev/null'):\n        assert f(3) == 4\n        f(3)": "value",
    "try:\n        assert f(3) == 4\n    finally:\n        log.append(1)": "value",
    "self.assertEqual(f(3), 4, 'reason')": "value",
    "same(f(3), 4)": "value",
    "assert f(3) == pytest.approx(4)": "value",
    "assert f(3) == pytest.approx(4.4, abs=0.5)": "known",
    "self.assertAlmostEqual(f(3), 4.00001, places=3)": "known",
    "self.assertAlmostEqual(f(3), 4.0)": "value",
    "check(f(3), 5)": "known",
    "assert_in_range(f(3), 3, high=5)": "known",
    "assert_raises(TypeError, f, None)": "known",
    "send(3)\n    send.assert_any_call(3)": "known",
    "send('a', urgent=True)\n    send.assert_called_once_with('a', urgent=True)": "value",
    "with pytest.raises(TypeError):\n        f(None)": "known",
    "self.assertRaises(TypeError, f, None)": "known",
    "with open('/dev/null'), pytest.raises((TypeError, OSError)):\n        f(None)": "known",
    "assert f(3) == found": "value",
    "assert f(3) < 5": "known",
    "assert f(3) is None or f(3)": "known",
    "assert not (f(-1) or\n        f(-1))": "known",
    "self.assertTrue(f(3))": "known",
    "self.assertAlmostEqual(f(3), 4.1, delta=1)": "known",
    "print(found)": "known",
    "send.verify('a')": "known",
    "checkout('a')": "known",
}
HEAD = "def same(one, two):\n    assert one == two\n\n\ndef checkout(page):\n    print(page)\n\n\n"
TAIL = "\n    log.append('end')\n\n\ndef test_b():\n    assert f(1) == 2\n"


def f(x: int) -> int:
    return max(x + 1, 0)


def _at_most(value: int, limit: int) -> None:
    assert value <= limit


def _in_range(value: int, low: int, high: int) -> None:
    assert low <= value <= high


class Recorder(contextlib.AbstractContextManager[None]):
    """Counts the outcomes of one check, as the reporter does."""

    def __init__(self) -> None:
        self.counts = [0, 0]

    def __exit__(self, kind: Any, *_: object) -> bool:
        self.counts[kind is not None] += 1
        return kind is not None


def edited(file: TestFile, edits: Sequence[Edit]) -> str:
    return apply_edits(file.source.text, edits, keeps_lines=True)


def run(file: TestFile, edits: Sequence[Edit]) -> tuple[list[int], list[object]]:
    """Runs ``test_a`` of a file; returns the counts of its only check, and its log."""
    log: list[object] = []
    recorder = Recorder()
    names = {"f": f, "send": mock.Mock(), "self": unittest.TestCase(), "pytest": pytest}
    names |= {"log": log, "warnings": warnings, RECORDER: [recorder]}
    names |= {"check": _at_most, "assert_in_range": _in_range}  # as if imported
    names["assert_raises"] = unittest.TestCase().assertRaises
    exec(compile(edited(file, edits), "test_x.py", "exec"), names)  # noqa: S102 — of this file
    names["test_a"]()  # type: ignore[operator]
    return recorder.counts, log


def read(body: str) -> tuple[TestFile, list[Unit], Edit]:
    """Returns the file of a test, the negations of its only check, and the edit that records it."""
    ending = "" if body.endswith("print(found)") else TAIL
    source = f"{HEAD}def test_a():\n    found = 4\n    {body}{ending or chr(10)}"
    file = TestFile.read("test_x.py", source.encode())
    assert file is not None
    node = file.node("test_a")
    assert node is not None
    check = file.checks(node)[0]
    return file, list(file.negations(node, check, (), Random(1))), check.recorded(0)


@pytest.mark.filterwarnings("ignore:x")
@pytest.mark.parametrize(("body", "level"), CHECKS.items(), ids=CHECKS.keys())
def test_check_passes_as_written_and_fails_negated(body: str, level: str) -> None:
    file, negations, recorded = read(body)
    (num_passed, num_failed), log = run(file, [recorded])
    assert num_passed
    assert not num_failed
    levels = []
    for negation in negations:
        edits = [recorded, *negation.edits]
        assert edited(file, edits).count("\n") == file.source.text.count("\n")
        counts, negated_log = run(file, edits)
        if counts[1]:
            levels.append(negation.level)
            assert negated_log == log  # the rest of the test still runs
    assert levels[0] == level


def test_assertion_on_a_branch_or_inside_a_line_is_no_check() -> None:
    branches = [
        f"{head}:\n        assert f(3) == 4"
        for head in ("if f(3)", "while f(3)", "with suppress(OSError)")
    ]
    for body in (*branches, "x = 1; assert f(3) == 4"):
        file = TestFile.read("test_x.py", f"def test_a():\n    {body}\n    print(f)\n".encode())
        assert file is not None
        node = file.node("test_a")
        assert node is not None
        assert file.checks(node) == []


def test_error_bound_to_a_name_is_not_negated() -> None:
    """A later statement can read the error, so the expected error stays."""
    _, negations, _ = read("with pytest.raises(TypeError) as error:\n        f(None)")
    assert negations == []


def bits_of(expected: str, outputs: Sequence[str], rest: str = "") -> dict[str, set[bool]]:
    """Returns whether an expected value's near misses are bits, by near miss, for 60 seeds."""
    node, source = parse_expression(expected), SourceText(f"{expected} {rest}")
    bits: dict[str, set[bool]] = {}
    for seed in range(60):
        for unit in near_misses("", source, (1, 1), node, outputs, Random(seed)):
            text = apply_edits(source.text, unit.edits).removesuffix(f" {rest}")
            bits.setdefault(text, set()).add(unit.is_bit)
    return bits


@pytest.mark.parametrize(
    ("expected", "output", "near_miss", "is_bit"),
    [
        ("13", "12", "11", True),  # at the same distance from the base's output, on the other side
        ("0.5", "0.6", "0.7", True),
        ("12", "Decimal('11')", "13", False),  # no literal: it may be a neighbour of 12
        ("date(2024, 5, 3)", "None", "date(2024, 5, 4)", False),  # a changed day can be invalid
        ("100", "None", "200", True),  # also a multiple of 100
        ("12", "14", "11", True),  # on the same side, at a similar distance
        ("7", "0", "6", True),
        ("7", "1", "3", False),  # at half the distance
        ("60", "64", "58", False),  # less round
        ("-18", "-5", "--8", False),  # another sign
        ("'3 EUR'", "None", "'4 EUR'", False),
        ("'Host'", "'HOST'", "'host'", False),  # differs only in case, like the base's output
        ("'a b'", "'ab'", "'a  b'", False),
        ("['a', 'b', 'c']", "['b', 'c', 'a']", "['b', 'a', 'c']", False),
        ("[('ann', 13)]", "[('ann', 12)]", "[('ann', 11)]", True),
        ("True", "None", "False", False),
    ],
)
def test_near_miss_changes_the_part_where_the_base_is_wrong(
    expected: str, output: str, near_miss: str, is_bit: bool
) -> None:
    bits = bits_of(expected, [output])
    assert (True in bits[near_miss]) is is_bit
    assert not {expected, output} & bits.keys()


@pytest.mark.parametrize("expected", ["9" * 400, "9" * 400 + ".0", "1234567891"])
def test_huge_numbers_have_no_bits(expected: str) -> None:
    assert True not in set().union(*bits_of(expected, ["1.0"], rest="0").values())


def test_near_miss_of_a_value_right_at_base_is_no_bit() -> None:
    assert {True} not in bits_of("[1, 2]", ["[1, 2]"]).values()
    texts = {text for text, bits in bits_of("(20, 15)", ["(20, 17)"]).items() if True in bits}
    assert texts == {"(20, 19)", "(20, 14)"}


@pytest.mark.parametrize("rest", ["13", "20 7", "130 117"])
def test_number_that_the_test_reveals_is_no_bit(rest: str) -> None:
    """The test contains 13, or 13 is a sum or difference of its numbers."""
    bits = bits_of("12", ["None"], rest)
    assert True not in bits.get("13", set())
    assert any(True in results for results in bits.values())


@pytest.mark.parametrize(("outputs", "num_bits"), [((), 2_500), (("0",), 500), (("5",), 1_000)])
def test_pairs_of_numbers_are_equally_likely_in_both_orders(
    outputs: Sequence[str], num_bits: int
) -> None:
    pairs: Counter[tuple[str, str]] = Counter()
    rng = Random(1)
    law = [log10(1 + 1 / digit) for digit in range(1, 10)]
    for number in rng.choices("123456789", law, k=5_000):
        unit, *_ = near_misses(
            "", SourceText(number), (1, 1), parse_expression(number), outputs, rng
        )
        if unit.is_bit:
            pairs[number, unit.edits[0].replacement] += 1
    for (a, b), count in pairs.items():
        assert abs(count - pairs[b, a]) < 5 * (count + pairs[b, a]) ** 0.5
    assert sum(pairs.values()) >= num_bits


@pytest.mark.parametrize(
    ("expected", "output"),
    [
        ('\'{"count": 7, "size": 42}\'', '\'{"count": 8, "size": 41}\''),
        ("'{12} items'", "'{13} items'"),
        ('f"{value:{width}}"', "'3'"),
        ('f"{value} 42"', "'3 17'"),
    ],
)
def test_near_miss_changes_no_field_of_a_format(expected: str, output: str) -> None:
    for text in bits_of(expected, [output]):
        assert re.findall("[a-z]+", text) == re.findall("[a-z]+", expected)
