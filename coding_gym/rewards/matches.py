"""Whether a patch changes the right files, is the right one, and is not too large."""

from coding_gym.errors import PatchError
from coding_gym.patch import Patch
from coding_gym.rewards.file_diffs import diffs_by_file
from coding_gym.rewards.runs import Run, changed_runs


def file_match(gold: str, patch: str) -> float:
    r"""Returns how far a patch changes the gold's files and no others, from 0 to 1.

    It is the number of files that both patches change, over the number of files of whichever
    changes more. A gold patch without files is matched by a patch without files only.

    Source: ``unified_diff_file_match_reward_func`` in ``src/rewards/diff.py`` of CodeRepairRL.

    Args:
        gold: The reference patch.
        patch: The patch to score.

    >>> x, y, z = (f"diff --git a/{name} b/{name}\n" for name in "xyz")
    >>> file_match(x, x), file_match(x + y, x), file_match(x, x + y + z), file_match("", "")
    (1.0, 0.5, 0.3333333333333333, 1.0)
    """
    wanted, found = diffs_by_file(gold).keys(), diffs_by_file(patch).keys()
    if not wanted:
        return float(not found)
    return len(wanted & found) / max(len(wanted), len(found))


def exact_match(gold: str, patch: str) -> float:
    r"""Returns 1 where a patch changes the same lines into the same lines as the gold, else 0.

    The lines must be the same lines of the base; what git writes around them (index lines, section
    names, context) does not count.

    Source: the exact match of CodeRepairRL, there of the whole text.

    Args:
        gold: The reference patch.
        patch: The patch to score.

    Raises:
        PatchError: The gold patch cannot be read.

    >>> gold = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n"
    >>> exact_match(gold, gold.replace("--- a", "index 1..2 100644\n--- a")), exact_match(gold, "")
    (1.0, 0.0)
    """
    wanted = _changes(gold)
    try:
        return float(bool(wanted) and _changes(patch) == wanted)
    except PatchError:
        return 0.0


def diff_size(gold: str, patch: str) -> float:
    r"""Returns what a patch is fined for being larger than the gold, from -1 to 0.

    With G changed lines (removed or added) of the gold and N of the patch it is ``G / N - 1``
    where N is more than G, else 0. Changes without lines (binary files, renames) count those of
    their text.

    Source: this project.

    Args:
        gold: The reference patch.
        patch: The patch to score.

    Raises:
        PatchError: The gold patch cannot be read.

    >>> gold = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n"
    >>> diff_size(gold, gold), diff_size(gold, gold + gold.replace("x", "y")), diff_size(gold, "")
    (0.0, -0.5, 0.0)
    """
    most = _num_lines(gold)
    try:
        size = _num_lines(patch)
    except PatchError:
        return 0.0
    return most / size - 1.0 if size > most else 0.0


def _changes(diff: str) -> dict[str, list[Run] | str]:
    """What changes in each file: its runs of lines, or the whole text where it has none."""
    return {
        change.path: list(changed_runs(change)) or change.text.strip()
        for change in Patch(diff).files
    }


def _num_lines(diff: str) -> int:
    return sum(
        len(change.splitlines())
        if isinstance(change, str)
        else sum(len(old) + len(new) for _, old, new in change)
        for change in _changes(diff).values()
    )
