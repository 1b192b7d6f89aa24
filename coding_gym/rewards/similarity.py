"""How alike two patches are as texts, by the formulas of nano-agent and CodeRepairRL.

Such scores say little about right and wrong (a change of white space in the right line scores near
1), so a reward gives them a small weight only.
"""

from coding_gym.rewards.file_diffs import diffs_by_file
from coding_gym.rewards.matching import Comparer, Similarity


def patch_similarity(gold: str, patch: str) -> Similarity:
    r"""Returns how alike two unified git diffs are by nano-agent's score, from 0 to 1.

    Each file's part of the gold patch is compared with the part of the patch that names the same
    file, as texts: twice the characters that match, over the characters of both
    (``difflib.SequenceMatcher.ratio``, for which no match starts at a character that is frequent in
    a text of 200 or more). A file that the patch leaves out scores 0, files that only the patch has
    do not count, and the mean over the gold's files is the score. Two empty patches score 1.

    Source: ``unified_diff_similarity`` in ``tests/utils.py`` of nano-agent 5.0.0, equal to it up to
    `matching.MAX_CHARS` a file and `matching.MAX_COMPARISONS` a pair. What is larger is compared by
    whole lines (`matching.Comparer`), and the score says so: `Similarity.by_line`.

    Args:
        gold: The reference patch.
        patch: The patch to score.

    >>> gold = "diff --git a/x.py b/x.py\n@@ -1 +1 @@\n-a + b\n+a * b\n"
    >>> patch_similarity(gold, gold)
    1.0
    >>> round(patch_similarity(gold, gold.replace("*", "-")), 3)
    0.98
    >>> patch_similarity(gold, gold.replace("x.py", "y.py"))
    0.0
    >>> stray = "diff --git a/z.py b/z.py\n@@ -1 +1 @@\n-1\n+2\n"
    >>> patch_similarity(gold, gold + stray)
    1.0
    """
    if not gold.strip() or not patch.strip():
        return Similarity(float(not gold.strip() and not patch.strip()))
    total, wanted, _, comparer = _compared(gold, patch)
    return comparer.similarity(total / wanted)


def patch_similarity_max_files(gold: str, patch: str) -> Similarity:
    r"""Returns how alike two unified git diffs are by CodeRepairRL's score, from 0 to 1.

    As `patch_similarity`, but the sum over the gold's files is divided by the number of files of
    whichever patch has more, so that stray files cost; and two empty patches score 0.

    Source: ``unified_diff_similarity_reward_func`` in ``src/rewards/diff.py`` of CodeRepairRL.

    Args:
        gold: The reference patch.
        patch: The patch to score.

    >>> gold = "diff --git a/x.py b/x.py\n@@ -1 +1 @@\n-a + b\n+a * b\n"
    >>> stray = "diff --git a/z.py b/z.py\n@@ -1 +1 @@\n-1\n+2\n"
    >>> patch_similarity_max_files(gold, gold), patch_similarity_max_files(gold, gold + stray)
    (1.0, 0.5)
    >>> patch_similarity_max_files("", ""), patch_similarity_max_files(gold, "")
    (0.0, 0.0)
    """
    total, wanted, found, comparer = _compared(gold, patch)
    return comparer.similarity(total / (max(wanted, found) or 1))


def similarity_to_tests(test_patch: str, patch: str) -> Similarity:
    r"""Returns how alike a patch is to the hidden tests by CodeRepairRL's score, from 0 to 1.

    It is `patch_similarity_max_files` with the test patch in the gold's place: what a policy earns
    that writes the tests itself, which grading leaves out.

    Source: ``unified_diff_similarity_reward_func_test`` in ``src/rewards/diff.py`` of CodeRepairRL.

    Args:
        test_patch: The hidden tests.
        patch: The whole patch, tests included.

    >>> tests = "diff --git a/test_x.py b/test_x.py\n@@ -1 +1 @@\n-assert x\n+assert not x\n"
    >>> code = "diff --git a/x.py b/x.py\n@@ -1 +1 @@\n-1\n+2\n"
    >>> similarity_to_tests(tests, code), similarity_to_tests(tests, code + tests)
    (0.0, 0.5)
    """
    return patch_similarity_max_files(test_patch, patch)


def _compared(gold: str, patch: str) -> tuple[float, int, int, Comparer]:
    """Sum of the ratios of the gold's files, how many files either has, and who compared them."""
    wanted, found = diffs_by_file(gold), diffs_by_file(patch)
    comparer = Comparer()
    total = sum(
        comparer.ratio(text, found[name]) if name in found else 0.0 for name, text in wanted.items()
    )
    return total, len(wanted), len(found), comparer
