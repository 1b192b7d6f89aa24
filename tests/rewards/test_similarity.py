"""Similarity of patches: difflib's ratio within a work budget, else whole lines; functions."""

import random
from collections.abc import Callable
from difflib import SequenceMatcher

import pytest

from coding_gym.patch import Patch
from coding_gym.rewards import (
    file_match,
    function_match,
    line_similarity,
    patch_similarity,
    patch_similarity_max_files,
    similarity,
)
from coding_gym.rewards.similarity import (
    MAX_CHARS,
    MAX_LINE_CHARS,
    Comparer,
    WorkBudget,
    matching_blocks,
)

BODY = "@@ -1 +1 @@\n-return a + b\n+return a * b\n"


def part(name: str, body: str = BODY) -> str:
    """Returns the part of a diff that changes a file."""
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
        (part("x"), part("x", "other\n") + part("x"), 1.0),  # the last part of a file counts
        (part("x"), part("x") + part("stray"), 1.0),
        ("preface\n" + part("x"), part("x"), 1.0),
        (part("x"), "no diff", 0.0),
    ]
    for gold, patch, score in cases:
        assert patch_similarity(gold, patch) == score, gold


def test_files_are_compared_by_the_names_that_git_reads() -> None:
    first, second, renamed = (
        f'diff --git "a/{old}" "b/{new}"\nold mode 100644\nnew mode 100755\n'
        for old, new in ((r"\374", r"\374"), (r"\366", r"\366"), (r"a \" b/c", "c"))
    )
    assert patch_similarity(first + second, first) == file_match(first + second, first) == 0.5
    assert patch_similarity(renamed, renamed) == 1
    assert patch_similarity(renamed, part(r"c", "")) == 0
    plain = f"--- a/x\n+++ b/x\n{BODY}"  # as `diff -u` writes it
    assert file_match(plain, part("x")) == 1
    assert patch_similarity(plain, part("x")) > 0.8


def test_large_texts_are_compared_by_whole_lines() -> None:
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


def test_texts_above_the_line_limit_score_1_or_0() -> None:
    text = part("x", "+x\n" * (MAX_LINE_CHARS // 3))
    assert patch_similarity(text, text) == 1
    assert patch_similarity(text, text + "+y\n") == 0


def letters(rng: random.Random, num_kinds: int, size: int) -> str:
    return "".join(chr(0x4E00 + rng.randrange(num_kinds)) for _ in range(size))


def test_patches_are_compared_as_difflib_does() -> None:
    for seed in range(60):
        rng = random.Random(seed)
        kinds = rng.choice([1, 2, 5, 40, 150])
        a, b = (letters(rng, kinds, rng.choice([0, 1, 30, 199, 200, 201, 600])) for _ in "ab")
        b = rng.choice([b, a[: len(a) // 2] + b, a, a[::-1]])
        gold, patch = part("x", a).strip(), part("x", b).strip()
        ratio = SequenceMatcher(None, gold, patch).ratio()
        scores = patch_similarity(gold, patch), patch_similarity_max_files(gold, patch)
        assert scores == (ratio, ratio), seed
        lines = list(a), list(b)
        blocks = matching_blocks(*lines, WorkBudget(10**9), autojunk=False)
        expected = SequenceMatcher(None, *lines, autojunk=False).get_matching_blocks()
        assert blocks == expected, seed


def rare_letters(rng: random.Random) -> tuple[str, str]:
    return letters(rng, 101, 40_000), letters(rng, 101, 40_000)


def lines_of_few_kinds(rng: random.Random) -> tuple[str, str]:
    lines = [f"{rng.randrange(120)}\n" for _ in range(100_000)]
    return "".join(lines), "".join(reversed(lines))


@pytest.mark.parametrize("pair", [rare_letters, lines_of_few_kinds])
def test_comparison_stops_at_its_work_budget(
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
    assert budget.remaining < 0


SOURCE = """import os


class Shelf:
    size = 3

    @property
    def free(self):
        def left(n):
            return n - 1

        return left(self.size)

    def add(self, thing):
        self.things.append(thing)


def free():
    return os.sep
"""


def changed(*pairs: tuple[str, str], path: str = "a.py") -> str:
    text = SOURCE
    for old, new in pairs:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return Patch.between({path: SOURCE}, {path: text}).text


INNER = changed(("n - 1", "n - 2"))


def test_functions_are_named_by_the_header_of_the_hunk() -> None:
    hunk = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -{1} +{1} @@{2}\n-a\n+b\n"
    gold = hunk.format("x.go", 9, " func add() {")
    assert function_match(gold, hunk.format("x.go", 12, " func add() {")) == 1
    assert function_match(gold, hunk.format("x.go", 12, " func sub() {")) == 0
    assert function_match(gold, hunk.format("x.go", 12, "")) == 1  # the file as a whole
    assert function_match(gold, hunk.format("y.go", 9, " func add() {")) == 0
    assert function_match(gold, gold + hunk.format("y.go", 1, "")) == 0.5
    assert function_match(gold, "diff --git a/x.go b/x.go\nold mode 1\nnew mode 2\n") == 1
    for patch in ("", "no patch", gold.replace("@@ -9", "@@ -9,2"), gold * 20_000):
        assert function_match(gold, patch) == 0


def test_lines_match_at_their_place_in_the_base() -> None:
    gold = changed(("n - 1", "n - 2"), ("os.sep", "os.linesep"))
    assert line_similarity(gold, gold.replace("@@\n", "@@ class Shelf:\n")) == 1
    assert line_similarity(gold, INNER) == pytest.approx(2 / 3)
    assert line_similarity(gold, changed(("n - 1", "n"))) == pytest.approx(1 / 3)
    added = changed(("import os\n", "import os\nimport re\n"))
    elsewhere = changed(("size = 3\n", "size = 3\nimport re\n"))
    assert line_similarity(added, elsewhere) == 0.5
    for line in ("\n", "import json\n"):  # at the right place, but another line
        assert line_similarity(added, changed(("import os\n", "import os\n" + line))) == 0
    assert line_similarity(gold, added) == line_similarity(gold, "no patch") == 0
    assert line_similarity(gold, gold + "+x\n" * 300_000) == 0
