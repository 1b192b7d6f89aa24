"""How much of the gold's change a patch makes, and how little else."""

from collections import Counter

from coding_gym.errors import PatchError
from coding_gym.patch import Patch
from coding_gym.rewards.edits import MAX_EDIT_CHARS, FileEdit, edits

_NEAR_LINES = 10
_RECALL_WEIGHT = 4  # beta squared of F2: to miss a token costs as much as four that are not wanted


def calibrated_similarity(gold: str, patch: str) -> float:
    r"""Returns how much of the gold's change a patch makes, from 0 to 1.

    Both patches are taken as the tokens that they remove and add (`edits`): a removed token is the
    same in both if it stands in the same line of the base, an added one if the token before it is
    the same too and it comes within 10 lines of a change of the gold. With R for the share of the
    gold's tokens that the patch has, and P for the share of the patch's that the gold has, the
    score is F2 = 5 P R / (4 P + R). So headers and context earn nothing, nor does what stays in a
    changed line; no change and white space score 0, a stray file costs little, and only the gold's
    own change scores 1. ``docs/rewards.md`` has a table of scores over the bundled tasks.

    A gold patch that changes no token (white space, a rename) is matched by an equal one only. A
    patch that cannot be read, or is larger than `MAX_EDIT_CHARS`, scores 0.

    Source: this project; F-measure: van Rijsbergen, Information Retrieval (1979), chapter 7.

    Args:
        gold: The reference patch.
        patch: The patch to score.

    Raises:
        PatchError: The gold patch cannot be read.

    >>> gold = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a + b\n+a * b\n"
    >>> calibrated_similarity(gold, gold)
    1.0
    >>> calibrated_similarity(gold, gold.replace("a * b", "a  +  b "))
    0.0
    >>> calibrated_similarity(gold, gold.replace("*", "-"))
    0.5
    >>> stray = gold.replace("x.py", "z.py")
    >>> round(calibrated_similarity(gold, gold + stray), 3)
    0.833
    """
    if not patch.strip() or not gold.strip():
        return 0.0
    if patch.strip() == gold.strip():
        return 1.0
    if max(len(gold), len(patch)) > MAX_EDIT_CHARS:
        return 0.0
    wanted = edits(Patch(gold))
    try:
        found = edits(Patch(patch))
    except PatchError:
        return 0.0
    num_wanted, num_found = (sum(e.size for e in each.values()) for each in (wanted, found))
    if not num_wanted or not num_found:
        return 0.0
    shared = sum(_shared(wanted[path], found[path]) for path in wanted.keys() & found.keys())
    recall, precision = shared / num_wanted, shared / num_found
    weighted = _RECALL_WEIGHT * precision + recall
    return (1 + _RECALL_WEIGHT) * precision * recall / weighted if shared else 0.0


def _shared(gold: FileEdit, found: FileEdit) -> int:
    """Number of tokens that both edits of a file remove or add."""
    near: Counter[tuple[str, str]] = Counter()
    lines = {line + n for line in gold.places for n in range(-_NEAR_LINES, _NEAR_LINES + 1)}
    for line, added in found.places.items():
        if line in lines:
            near.update(added)
    return (gold.removed & found.removed).total() + (gold.added & near).total()
