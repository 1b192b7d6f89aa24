"""`patch_similarity`: worked examples of nano-agent's formula, and what bounds its price."""

import re
from difflib import SequenceMatcher

import pytest
from diff_pairs import pair

from coding_gym.rewards import patch_similarity, swe_rl_similarity
from coding_gym.rewards.coderepairrl import patch_similarity_max_files
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


NUM_PAIRS = 100
PER_TEST = 50


def by_file(diff: str) -> dict[str, str]:
    parts = [part.strip() for part in re.split(r"(?=^diff --git)", diff, flags=re.MULTILINE)]
    names = [re.match(r"diff --git a/(.*) b/", part) for part in parts]
    return {name[1] if name else "": part for name, part in zip(names, parts, strict=True) if part}


def ratios(gold: str, patch: str) -> list[float]:
    """difflib's ratio of each file of the gold patch."""
    wanted, found = by_file(gold), by_file(patch)
    return [
        SequenceMatcher(None, text, found[name]).ratio() if name in found else 0.0
        for name, text in wanted.items()
    ]


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=() if first == PER_TEST else pytest.mark.slow)
        for first in range(0, NUM_PAIRS, PER_TEST)
    ],
)
def test_scores_are_difflibs(first: int) -> None:
    for seed in range(first, first + PER_TEST):
        gold, patch = pair(seed)
        scores, num_files = ratios(gold, patch), len(by_file(patch))
        nano = sum(scores) / len(scores) if scores and num_files else float(not gold and not patch)
        most = max(len(scores), num_files) or 1
        found = patch_similarity(gold, patch), patch_similarity_max_files(gold, patch)
        assert found == pytest.approx((nano, sum(scores) / most), rel=0, abs=1e-12), seed


def hunks(diff: str) -> dict[str, str]:
    """Each file's hunks without headers, as SWE-RL's own difflib call gives them."""
    parts = [part for part in re.split(r"(?=^diff --git)", diff, flags=re.MULTILINE) if part]
    named = {re.match(r"diff --git a/(.*) b/", part)[1]: part for part in parts}  # type: ignore[index]
    return {name: "\n".join(part[part.index("@@ ") :].splitlines()) for name, part in named.items()}


def test_swe_rls_score_is_difflibs_without_junk() -> None:
    for seed in range(1, 60):
        gold, patch = pair(seed)
        wanted, found = hunks(gold), hunks(patch)
        if max(map(len, [*wanted.values(), *found.values()]), default=0) > 1_000:
            continue  # a harder pair is compared by lines
        score = swe_rl_similarity(gold, patch)
        if not found:
            assert score == -1, seed
        else:
            names = wanted.keys() | found.keys()
            total = sum(
                SequenceMatcher(None, found[name], wanted[name], autojunk=False).ratio()
                for name in wanted.keys() & found.keys()
            )
            assert score == pytest.approx(total / len(names), rel=0, abs=1e-12), seed
