"""How alike two patches are by SWE-RL's reward."""

import re

from coding_gym.errors import PatchError
from coding_gym.patch import Patch
from coding_gym.rewards.matching import MAX_LINE_CHARS, Comparer, Similarity

FORMAT_ERROR = -1.0

_HUNK_START = re.compile(r"^(@@ [^@\n]* @@).*$", re.MULTILINE)
_NO_NEWLINE = "\\ No newline at end of file"


def swe_rl_similarity(gold: str, patch: str) -> Similarity:
    r"""Returns how alike two unified git diffs are by SWE-RL's reward, from 0 to 1, or -1.

    The hunks of each file, without file headers, are compared as texts with
    ``difflib.SequenceMatcher(None, patch, gold, autojunk=False).ratio()``. A file that only one of
    the patches changes scores 0, and the mean over the files of both is the score. What cannot be
    read as a diff, and an edit that changes nothing, are format errors and score -1.

    Source: Wei et al., "SWE-RL: Advancing LLM Reasoning via Reinforcement Learning on Open Software
    Evolution", arXiv 2502.18449, section 2, and ``calculate_reward`` in
    ``src/swerl/core/reward.py`` of facebookresearch/swe-rl, which makes both diffs itself, with
    difflib and three lines of context; here they are git's. Equal to it on equal hunks, within
    `matching.MAX_COMPARISONS` a pair, which reaches for files of some 4,000 characters of diff:
    without ``autojunk`` all characters start matches.

    Args:
        gold: The reference patch.
        patch: The patch to score.

    Raises:
        PatchError: The gold patch cannot be read.

    >>> gold = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a + b\n+a * b\n"
    >>> swe_rl_similarity(gold, gold)
    1.0
    >>> round(swe_rl_similarity(gold, gold.replace("*", "-")), 3)
    0.96
    >>> swe_rl_similarity(gold, gold + gold.replace("x.py", "stray.py"))
    0.5
    >>> swe_rl_similarity(gold, "I would multiply."), swe_rl_similarity(gold, "")
    (-1.0, -1.0)
    """
    try:
        found = _hunks_by_path(patch)
    except PatchError:
        found = {}
    if not found:
        return Similarity(FORMAT_ERROR)
    wanted = _hunks_by_path(gold)
    comparer = Comparer(autojunk=False)
    paths = sorted(wanted.keys() | found.keys())
    scores = [_score(wanted.get(path, ""), found.get(path, ""), comparer) for path in paths]
    return comparer.similarity(sum(scores) / len(scores))


def _score(gold: str, found: str, comparer: Comparer) -> float:
    return comparer.ratio(found, gold) if gold and found else 0.0


def _hunks_by_path(diff: str) -> dict[str, str]:
    """The hunks of each file as difflib writes them: without what git says after the numbers."""
    return {change.path: _hunks(change.text) for change in Patch(diff).files}


def _hunks(text: str) -> str:
    if len(text) > MAX_LINE_CHARS:  # which is equal to another or is not, and nothing else
        return text
    first = _HUNK_START.search(text)
    if first is None:
        return ""
    lines = _HUNK_START.sub(r"\1", text[first.start() :]).splitlines()
    return "\n".join(line for line in lines if line != _NO_NEWLINE)
