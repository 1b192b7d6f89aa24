"""CodeRepairRL's score by which trajectories are chosen for fine-tuning."""

from coding_gym.rewards.matches import file_match
from coding_gym.rewards.matching import Similarity
from coding_gym.rewards.similarity import patch_similarity_max_files, similarity_to_tests


def curation_score(gold: str, test_patch: str, patch: str) -> Similarity:
    r"""Returns 0.2 file match + 0.4 code similarity + 0.4 test similarity, from 0 to 1.

    All three are of the whole patch, the policy's tests included. So the gold patch scores 0.6, and
    with the hidden tests beside it, if both are of one file, less: either is a stray file for the
    other.

    Source: ``process_one_with_reward`` in ``src/curate_sft_data.py`` of CodeRepairRL.

    Args:
        gold: The reference patch.
        test_patch: The hidden tests.
        patch: The policy's patch, with its tests.

    >>> gold = "diff --git a/x.py b/x.py\n@@ -1 +1 @@\n-1\n+2\n"
    >>> tests = "diff --git a/test_x.py b/test_x.py\n@@ -1 +1 @@\n-assert x\n+assert not x\n"
    >>> round(curation_score(gold, tests, gold), 3), curation_score(gold, tests, gold + tests)
    (0.6, 0.5)
    """
    code = patch_similarity_max_files(gold, patch)
    tests = similarity_to_tests(test_patch, patch)
    score = 0.2 * file_match(gold, patch) + 0.4 * code + 0.4 * tests
    return Similarity(score, by_line=code.by_line or tests.by_line)
