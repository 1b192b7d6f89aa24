"""Scores by similarity are difflib's within a work budget, and compare lines beyond it."""

import random
import re
from collections.abc import Callable
from difflib import SequenceMatcher

import pytest

from coding_gym.patch import Patch
from coding_gym.rewards import patch_similarity, similarity, swe_rl_similarity
from coding_gym.rewards.coderepairrl import patch_similarity_max_files
from coding_gym.rewards.similarity import (
    MAX_CHARS,
    MAX_LINE_CHARS,
    Comparer,
    WorkBudget,
    matching_blocks,
)

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


def test_bytes_that_are_not_utf8_are_characters_like_others() -> None:
    text = part("x", b"+\xff\n".decode("utf-8", "surrogateescape"))
    assert patch_similarity(text, text) == 1
    assert 0.9 < patch_similarity(text, text.replace("\udcff", "\udcfe")) < 1


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


WORDS = ["self", "return", "value", "for", "in", "items", "not", "(x)", "= 0", "[key]", "if"]
WORDS += ["für", "日本語", "\t", "  ", "{'a': 1}", "# TODO", "None", "raise", "lambda x: x + 1"]
PATHS = ["src/app.py", "src/core/model.py", "docs/a b/c.md", "x", "naïve.py"]


def program(rng: random.Random, num_chars: int) -> str:
    lines: list[str] = []
    while sum(map(len, lines)) < num_chars:
        indent = " " * rng.randrange(0, 12, 4)
        lines.append(f"{indent}{' '.join(rng.choices(WORDS, k=rng.randint(0, 9)))}\n")
    return "".join(lines)


def edited(rng: random.Random, text: str, share: float) -> str:
    lines = text.splitlines(keepends=True)
    for at in range(len(lines)):
        if rng.random() < share:
            lines[at] = rng.choice(["", program(rng, 20), lines[at] * 2, lines[at].upper()])
    return "".join(lines)


def pair(seed: int) -> tuple[str, str]:
    """A gold patch and another of the same tree."""
    rng = random.Random(seed)
    sizes = [0, 40, 200, 400, 1_000, 1_000, 2_000] + [6_000] * (seed % 25 == 0)
    paths = rng.sample(PATHS, rng.randint(1, 3))
    before = {path: program(rng, rng.choice(sizes)) for path in paths}
    share = rng.choice([0.02, 0.1, 0.5])
    gold = {path: edited(rng, text, share) for path, text in before.items()}
    tried = {path: edited(rng, rng.choice([gold, before])[path], share) for path in before}
    if rng.random() < 0.3:
        tried["stray.py"] = program(rng, 200)
    if rng.random() < 0.2:
        tried |= {path: before[path] for path in rng.sample(sorted(before), 1)}
    return Patch.between(before, gold).text, Patch.between(before, tried).text


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


def test_scores_are_difflibs() -> None:
    for seed in range(1, 51):
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


def letters(rng: random.Random, num_kinds: int, size: int) -> str:
    return "".join(chr(0x4E00 + rng.randrange(num_kinds)) for _ in range(size))


@pytest.mark.parametrize("autojunk", [True, False])
def test_blocks_are_difflibs(autojunk: bool) -> None:
    for seed in range(60):
        rng = random.Random(seed)
        kinds = rng.choice([1, 2, 5, 40, 150])
        a, b = (letters(rng, kinds, rng.choice([0, 1, 30, 199, 200, 201, 600])) for _ in "ab")
        b = rng.choice([b, a[: len(a) // 2] + b, a, a[::-1]])
        theirs = SequenceMatcher(None, a, b, autojunk)
        blocks = matching_blocks(a, b, WorkBudget(10**9), autojunk=autojunk)
        assert blocks is not None, seed
        matched, expected = (
            sorted(i + n for i, _, size in found for n in range(size))
            for found in (blocks, theirs.get_matching_blocks())
        )
        assert matched == expected, seed
        assert Comparer(autojunk=autojunk).ratio(a, b) == theirs.ratio(), seed


def rare_letters(rng: random.Random) -> tuple[str, str]:
    return letters(rng, 101, 40_000), letters(rng, 101, 40_000)


def neighbours_swapped(_rng: random.Random) -> tuple[str, str]:
    each = "".join(chr(0x4E00 + number) for number in range(20_000))
    return each, "".join(each[number ^ 1] for number in range(20_000))


def lines_of_few_kinds(rng: random.Random) -> tuple[str, str]:
    lines = [f"{rng.randrange(120)}\n" for _ in range(100_000)]
    return "".join(lines), "".join(reversed(lines))


HARD = [rare_letters, neighbours_swapped, lines_of_few_kinds]


@pytest.mark.parametrize("pair", HARD)
def test_no_pair_costs_more_than_its_share(
    pair: Callable[[random.Random], tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(similarity, "MAX_COMPARISONS", 500_000)
    monkeypatch.setattr(similarity, "MAX_LINE_COMPARISONS", 300_000)
    gold, patch = pair(random.Random(0))
    comparer = Comparer()
    score = comparer.ratio(gold, patch)
    assert 0 <= score <= 1
    budget = WorkBudget(500_000)
    assert matching_blocks(gold, patch, budget) is None
    assert budget.left < 0
