"""difflib's own blocks within a work budget, and comparing by lines beyond it."""

import random
from collections.abc import Callable
from difflib import SequenceMatcher

import pytest

from coding_gym.rewards import similarity
from coding_gym.rewards.similarity import Comparer, WorkBudget, matching_blocks


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
        found = matching_blocks(a, b, WorkBudget(10**9), autojunk=autojunk)
        assert found is not None, seed
        matched, expected = (
            sorted(i + n for i, _, size in blocks for n in range(size))
            for blocks in (found, theirs.get_matching_blocks())
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
