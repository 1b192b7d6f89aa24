"""The similarity scores against difflib itself, on 200 generated pairs of patches."""

import re
from difflib import SequenceMatcher

import pytest
from diff_pairs import pair

from coding_gym.rewards import patch_similarity, swe_rl_similarity
from coding_gym.rewards.coderepairrl import patch_similarity_max_files

NUM_PAIRS = 200
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


@pytest.mark.parametrize("first", range(0, NUM_PAIRS, PER_TEST))
def test_scores_are_difflibs(first: int) -> None:
    for seed in range(first, first + PER_TEST):
        gold, patch = pair(seed)
        scores, num_files = ratios(gold, patch), len(by_file(patch))
        nano = sum(scores) / len(scores) if scores and num_files else float(not gold and not patch)
        most = max(len(scores), num_files) or 1
        found = patch_similarity(gold, patch), patch_similarity_max_files(gold, patch)
        assert found == pytest.approx((nano, sum(scores) / most), rel=0, abs=1e-12), seed
        assert not found[0].by_line
        assert not found[1].by_line


def hunks(diff: str) -> dict[str, str]:
    """Each file's hunks without headers, as SWE-RL's own difflib call gives them."""
    parts = [part for part in re.split(r"(?=^diff --git)", diff, flags=re.MULTILINE) if part]
    named = {re.match(r"diff --git a/(.*) b/", part)[1]: part for part in parts}  # type: ignore[index]
    return {name: "\n".join(part[part.index("@@ ") :].splitlines()) for name, part in named.items()}


def test_swe_rls_score_is_difflibs_without_junk() -> None:
    for seed in range(1, 20):
        gold, patch = pair(seed)
        wanted, found = hunks(gold), hunks(patch)
        score = swe_rl_similarity(gold, patch)
        if not found:
            assert score == -1, seed
        elif score.by_line:
            assert max(map(len, [*wanted.values(), *found.values()])) > 1_000, seed
        else:
            names = wanted.keys() | found.keys()
            total = sum(
                SequenceMatcher(None, found[name], wanted[name], autojunk=False).ratio()
                for name in wanted.keys() & found.keys()
            )
            assert score == pytest.approx(total / len(names), rel=0, abs=1e-12), seed
