"""`patch_similarity`, and CodeRepairRL's by way of it, against nano-agent 5.0.0's own function."""

import random
import re
import string
from collections.abc import Callable

import pytest
from nano_model import similarity_of_nano

from coding_gym.patch import Patch
from coding_gym.rewards import patch_similarity
from coding_gym.rewards.coderepairrl import patch_similarity_max_files

pytest.importorskip("nano", reason="needs the extra `peers`")

NAMES = ["src/app.py", "src/core/model.py", "docs/a b/c.md", "x", "naïve.py", 'odd"name.txt']
WORDS = [
    "self",
    "return",
    "if",
    "not",
    "value",
    "(key)",
    "= None",
    "für",
    "日本語",
    "\t",
    "  ",
    "0",
]


@pytest.fixture(scope="module")
def nanos_similarity() -> Callable[[str, str], float]:
    return similarity_of_nano()


def program(rng: random.Random) -> str:
    end = rng.choice(["\n", "\n", "\n", "\r\n"])
    lines = [
        " " * rng.randrange(0, 9, 4) + " ".join(rng.choices(WORDS, k=rng.randint(0, 7)))
        for _ in range(rng.choice([1, 5, 40, 200]))
    ]
    return end.join(lines) + rng.choice([end, ""])


def edited(rng: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(lines)) if lines else 0
        change = rng.choice(["drop", "add", "replace"])
        new = [] if change == "drop" else [program(rng)[: rng.choice([60, 60, 5_000])] + "\n"]
        lines[at : at + (change != "add")] = new
    return "".join(lines)


def renamed(rng: random.Random, path: str) -> str:
    new = f"{path}.{rng.choice(string.ascii_lowercase)}"
    header = f"diff --git a/{path} b/{new}\nsimilarity index 100%\n"
    return f"{header}rename from {path}\nrename to {new}\n"


def diff(rng: random.Random, before: dict[str, str], after: dict[str, str]) -> str:
    text = Patch.between(before, after).text
    for path in rng.sample(NAMES[:3], rng.choice([0, 0, 1])):
        text += renamed(rng, path)
    return text


def spoilt(rng: random.Random, text: str) -> str:
    """A diff as careless programs hand it on, or the diff itself."""
    return rng.choice(
        [
            *[text] * 12,
            "",
            " \n\t\n",
            text.strip(),
            f"\n\n{text}\n\n\n",
            f"I changed this:\n{text}",
            text.replace("\n", "\r\n"),
            text.replace("diff --git ", "Index: "),
            text.replace("diff --git a/", "diff --git "),
            text + text[: len(text) // 2],
            text[rng.randrange(len(text) + 1) :],
        ]
    )


def trees(rng: random.Random) -> list[dict[str, str]]:
    """A tree, its repair, and another try: near it, far from it, or equal."""
    before = {path: program(rng) for path in rng.sample(NAMES, rng.randint(1, 4))}
    changed = rng.sample(sorted(before), rng.randint(1, len(before)))
    gold = before | {path: edited(rng, before[path]) for path in changed}
    tried = dict(gold) if rng.random() < 0.9 else dict(before)
    for path in sorted(tried):
        if rng.random() < 0.6:
            tried[path] = edited(rng, tried[path])
    if rng.random() < 0.2:
        del tried[rng.choice(sorted(tried))]
    if rng.random() < 0.3:
        tried["stray.py"] = program(rng)
    return [before, gold, tried]


def pair(seed: int) -> tuple[str, str]:
    """A gold patch and another one of the same tree."""
    rng = random.Random(seed)
    before, gold, tried = trees(rng)
    return spoilt(rng, diff(rng, before, gold)), spoilt(rng, diff(rng, before, tried))


def test_scores_are_nano_agents(nanos_similarity: Callable[[str, str], float]) -> None:
    for seed in range(100):
        gold, patch = pair(seed)
        theirs = pytest.approx(nanos_similarity(gold, patch), rel=0, abs=1e-12)
        assert patch_similarity(gold, patch) == theirs, seed


def test_the_pairs_cover_the_formula(nanos_similarity: Callable[[str, str], float]) -> None:
    scores = [nanos_similarity(*pair(seed)) for seed in range(100)]
    assert sum(score == 0 for score in scores) >= 5
    assert sum(score == 1 for score in scores) >= 5
    assert sum(0 < score < 1 for score in scores) >= 50
    assert sum(len(gold) > 5_000 for gold, _ in map(pair, range(100))) >= 5


def test_shared_by_more_files_the_scores_are_those_of_the_larger_patch(
    nanos_similarity: Callable[[str, str], float],
) -> None:
    for seed in range(60):
        before, *after = trees(random.Random(seed))
        gold, patch = (Patch.between(before, tree).text for tree in after)
        numbers = [len(re.findall("^diff --git", d, re.MULTILINE)) for d in (gold, patch)]
        expected = (
            nanos_similarity(gold, patch) * numbers[0] / max(numbers) if all(numbers) else 0.0
        )
        given = patch_similarity_max_files(gold, patch)
        assert given == pytest.approx(expected, rel=0, abs=1e-12), seed
