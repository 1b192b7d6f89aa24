"""CodeRepairRL's similarity by way of nano-agent's: the same ratios, shared by more files."""

import importlib.metadata
import importlib.util
import random
import re

import pytest

from coding_gym.patch import Patch
from coding_gym.rewards import patch_similarity_max_files

pytest.importorskip("nano", reason="needs the extra `peers`")

WORDS = ["self", "return", "value", "(key)", "= None", "für", "  ", "0", "not"]


def tree(rng: random.Random) -> dict[str, str]:
    lines = [" ".join(rng.choices(WORDS, k=rng.randint(0, 6))) + "\n" for _ in range(40)]
    names = rng.sample(["a.py", "b/c.py", "d e.md", "f"], rng.randint(1, 4))
    return {name: "".join(rng.choices(lines, k=rng.choice([3, 60]))) for name in names}


def test_scores_are_nanos_with_the_files_of_the_larger_patch() -> None:
    files = importlib.metadata.files("nano-agent") or []
    (path,) = (f.locate() for f in files if str(f) == "tests/utils.py")
    spec = importlib.util.spec_from_file_location("nanos_tests_utils_too", str(path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for seed in range(60):
        rng = random.Random(seed)
        before = tree(rng)
        gold, patch = (Patch.between(before, tree(rng)).text for _ in range(2))
        num_gold, num_found = (
            len(re.findall("^diff --git", d, re.MULTILINE)) for d in (gold, patch)
        )
        nano = module.unified_diff_similarity(gold, patch)
        expected = nano * num_gold / max(num_gold, num_found) if gold and patch else 0.0
        assert patch_similarity_max_files(gold, patch) == pytest.approx(expected, rel=0, abs=1e-12)
