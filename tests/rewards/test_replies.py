"""Rewards of what a reply looks like: reasoning tags, search/replace blocks, answers."""

import pytest

from coding_gym.patch import Patch
from coding_gym.rewards.coderepairrl import (
    categorical_correctness,
    partial_reasoning_format,
    reasoning_format,
    search_replace_format,
    search_replace_similarity,
)

GOOD = "<think>\nIt adds.\n</think>\n<answer>\nshapes.py\n</answer>"
BLOCK = "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE"


def test_reasoning() -> None:
    cases = [
        (GOOD, 1, 1.0),
        (f"{GOOD}\n \n", 1, 0.997),
        (f"So:\n{GOOD}", 0, 0.996),
        (f"{GOOD}\nbye", 0, 0.996),
        (GOOD.replace("shapes.py", "two\nlines"), 0, 1.0),
        (GOOD.replace("\n</think>", "</think>"), 0, 0.75),
        (GOOD * 2, 1, 0.0),  # a thought may hold tags, as there
        ("", 0, 0.0),
        ("x" * 10_000 + "<think>\n", 0, 0.0),
    ]
    for reply, strict, partial in cases:
        assert reasoning_format(reply) == strict, reply
        assert partial_reasoning_format(reply) == pytest.approx(partial), reply


def test_the_format_of_blocks() -> None:
    cases = [
        (BLOCK, 1.0),
        (f"{BLOCK}\n\n{BLOCK}\n", 1.0),
        (f"<think>\nx\n</think>\n<answer>\n```\n{BLOCK}\n```\n</answer>", 1.0),
        (f"Here:\n```python\n{BLOCK}\n```\nDone.", 1.0),
        (BLOCK.replace("<<<<<<<", "<<<<"), 0.9),
        (BLOCK.replace("<<<<<<<", "<<<").replace(">>>>>>>", ">>>"), 0.8),
        (BLOCK.replace("SEARCH", "SEARCH x.py"), 0.95),
        (BLOCK.replace("=======", "======= "), 0.95),
        (BLOCK.replace("=======\n", ""), 0.3),  # no divider, no block, counts that differ twice
        ("<<<<<<< SEARCH\nold\n=======\nnew", 0.6 - 0.1 - 0.15 - 0.2),
        ("old -> new", 0.0),
        ("", 0.0),
    ]
    for reply, score in cases:
        assert search_replace_format(reply) == pytest.approx(score), reply


def test_blocks_are_compared_with_the_golds_hunks() -> None:
    before = {"x": "".join(f"{n}\n" for n in range(40))}
    after = {"x": before["x"].replace("3\n", "three\n", 1).replace("33\n", "last\n")}
    gold = Patch.between(before, after).text
    first = (
        "<<<<<<< SEARCH\n0\n1\n2\n3\n4\n5\n6\n=======\n0\n1\n2\nthree\n4\n5\n6\n>>>>>>> REPLACE\n"
    )
    assert search_replace_similarity(gold, first) == 0.5
    assert search_replace_similarity(gold, "none") == 0
    assert search_replace_similarity("", "none") == 1
    assert search_replace_similarity("", first) == 0


def test_hostile_replies_are_read_in_linear_time() -> None:
    many = "<<<<<<< SEARCH\n" * 50_000 + "=======\n" * 50_000
    assert search_replace_format(many) <= 0.6
    assert search_replace_similarity("", many + ">>>>>>> REPLACE\n") == 0
    assert reasoning_format("<think>\n" + "\n</think>\n<answer>\n" * 50_000) == 0


def test_answers_must_be_exact() -> None:
    assert categorical_correctness({"yes"}, "<answer> yes\n</answer><answer>no</answer>") == 1
    assert categorical_correctness({"yes"}, "<answer>Yes</answer>") == 0
    assert categorical_correctness(set(), "yes") == 0
