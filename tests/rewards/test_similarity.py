"""`patch_similarity`: worked examples of nano-agent's formula, and what bounds its price."""

from difflib import SequenceMatcher

import pytest

from coding_gym.rewards import patch_similarity
from coding_gym.rewards.similarity import MAX_CHARS, MAX_LINE_CHARS

BODY = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-return a + b\n+return a * b\n"


def part(name: str, body: str = BODY) -> str:
    return f"diff --git a/{name} b/{name}\n{body}"


def test_worked_examples() -> None:
    cases = [
        ("", "", 1.0),
        ("", " \n", 1.0),
        (part("x"), "", 0.0),
        (part("x"), "\n\t\n", 0.0),
        ("", part("x"), 0.0),
        (part("x"), part("x"), 1.0),
        (part("x"), "\n" + part("x") + "\n\n", 1.0),
        (part("x"), part("y"), 0.0),
        (part("x") + part("y"), part("x"), 0.5),
        (part("x"), part("x") + part("stray"), 1.0),
        ("abcd", "abce", 0.75),
        ("abcd", part("x"), 0.0),
        ("preface\n" + part("x"), part("x"), 0.5),
        ("preface\n" + part("x"), "preface\n" + part("x"), 1.0),
        (part('x"', ""), part('x"', ""), 1.0),
    ]
    for gold, patch, score in cases:
        assert patch_similarity(gold, patch) == score, gold


def test_files_are_named_by_their_place_before_the_change() -> None:
    renamed = "diff --git a/old.py b/new.py\nsimilarity index 100%\n"
    assert patch_similarity(part("old.py"), renamed) > 0.3
    assert patch_similarity(part("new.py"), renamed) == 0


def test_of_two_parts_about_one_file_the_last_counts() -> None:
    assert patch_similarity(part("x"), part("x", "other\n") + part("x")) == 1
    assert patch_similarity(part("x"), part("x") + part("x", "other")) < 0.7


def test_names_that_git_quotes_are_one_name() -> None:
    gold = 'diff --git "a/\\303\\251" "b/\\303\\251"\n' + BODY
    assert patch_similarity(gold, gold.replace("251", "250")) > 0.9
    assert patch_similarity(gold, part("x")) == 0


def test_frequent_characters_start_no_match_in_long_texts() -> None:
    head = "diff --git a/x b/x\n"
    gold, patch = head + "ab" * 300, head + "b" + "ab" * 300
    exact = SequenceMatcher(None, gold, patch).ratio()
    assert patch_similarity(gold, patch) == exact < 0.1
    assert SequenceMatcher(None, gold, patch, autojunk=False).ratio() > 0.99


def test_bytes_that_are_not_utf8_are_characters_like_others() -> None:
    odd = part("x", b"+\xff\n".decode("utf-8", "surrogateescape"))
    assert patch_similarity(odd, odd) == 1
    assert 0.9 < patch_similarity(odd, odd.replace("\udcff", "\udcfe")) < 1


def test_above_the_bound_whole_lines_count_by_their_characters() -> None:
    lines = [f"+line {number} of the repair\n" for number in range(3_000)]
    gold = part("x", "".join(lines))
    patch = part("x", "".join(lines[:1_500]))
    assert len(gold) > MAX_CHARS
    expected = 2 * len(patch) / (len(gold.strip()) + len(patch.strip()))
    assert patch_similarity(gold, patch) == pytest.approx(expected, abs=1e-3)
    assert patch_similarity(gold, gold) == 1


def test_padding_a_patch_beyond_the_bound_does_not_pay() -> None:
    gold = part("x", "".join(f"+line {number} of the repair\n" for number in range(50)))
    for padding in ("+" + "#" * MAX_CHARS, "+#\n" * MAX_CHARS, "#" * MAX_LINE_CHARS):
        assert patch_similarity(gold, gold + padding) < 0.05


def test_nothing_is_compared_in_part_beyond_the_last_bound() -> None:
    huge = part("x", "+x\n" * (MAX_LINE_CHARS // 3))
    assert patch_similarity(huge, huge) == 1
    assert patch_similarity(huge, huge + "+y\n") == 0
