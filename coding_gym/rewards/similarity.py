"""The similarity of two patches as texts, computed by difflib within a work budget.

A wrong patch can have a high score: a change of white space in the right lines scores about 0.8.
Use a small weight in a reward. ``gold`` is the reference patch, ``patch`` the patch to score.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import Match, SequenceMatcher
from itertools import accumulate

from coding_gym.errors import PatchError
from coding_gym.patch import Patch

MAX_CHARS = 50_000
"""Maximum characters of a text to compare character by character."""

MAX_LINE_CHARS = 2_000_000
"""Maximum characters of a text to compare line by line."""

MAX_COMPARISONS = 30_000_000
"""Work budget for the characters of one pair of patches; about four processor seconds."""

MAX_LINE_COMPARISONS = 8_000_000
"""Work budget for the lines of one pair of patches."""

_ELEMENT_WORK = 2  # cost of one element of a search in difflib, in comparisons


@dataclass(slots=True)
class WorkBudget:
    """The remaining number of comparisons; below 0 after the budget was exceeded."""

    remaining: int


class _BudgetExceededError(Exception):
    pass


class _BoundedMatcher(SequenceMatcher[str]):
    """difflib's matcher; it stops before a search for which the work budget is too small.

    Some pairs of texts of 50,000 characters take difflib minutes, and policies can write them.
    """

    def __init__(
        self, a: Sequence[str], b: Sequence[str], budget: WorkBudget, *, autojunk: bool
    ) -> None:
        budget.remaining -= len(a) + len(b)
        super().__init__(None, a, b, autojunk)
        # A search looks at each element of a part of `a` and at all of its positions in `b`.
        positions = self.b2j  # type: ignore[attr-defined]  # documented, not in the stubs
        work = (_ELEMENT_WORK + len(positions.get(element, ())) for element in a)
        self._work_before = [0, *accumulate(work)]
        self._budget = budget

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        """Finds a match as difflib does.

        Raises:
            _BudgetExceededError: The search needs more work than the budget has.
        """
        end = len(self._work_before) - 1 if ahi is None else ahi
        self._budget.remaining -= self._work_before[end] - self._work_before[alo]
        if self._budget.remaining < 0:
            raise _BudgetExceededError
        return super().find_longest_match(alo, ahi, blo, bhi)


def matching_blocks(
    a: Sequence[str], b: Sequence[str], budget: WorkBudget, *, autojunk: bool = True
) -> list[Match] | None:
    """Returns the blocks that `difflib.SequenceMatcher` matches; None if the budget is too small.

    Args:
        a: A text, or its lines or words.
        b: The other text, in the same form.
        budget: The work budget, which the searches reduce.
        autojunk: Whether difflib ignores frequent elements of a long ``b`` as starts of matches.
    """
    if budget.remaining < len(a) + len(b):
        budget.remaining = -1
        return None
    try:
        return _BoundedMatcher(a, b, budget, autojunk=autojunk).get_matching_blocks()
    except _BudgetExceededError:
        return None


class Comparer:
    """Compares pairs of texts within common work budgets, so scores do not depend on timing."""

    def __init__(self) -> None:
        self._characters = WorkBudget(MAX_COMPARISONS)
        self._lines = WorkBudget(MAX_LINE_COMPARISONS)

    def ratio(self, gold: str, patch: str) -> float:
        """Returns ``difflib.SequenceMatcher(None, gold, patch).ratio()``, or an approximation.

        Texts above `MAX_CHARS`, and pairs that need too much work, are compared by whole lines,
        weighted by their characters. Above `MAX_LINE_CHARS`, or if the lines also need too much
        work, equal texts score 1 and different texts score 0.
        """
        if gold == patch:
            return 1.0
        num_chars = max(len(gold), len(patch))
        if num_chars <= MAX_CHARS:
            blocks = matching_blocks(gold, patch, self._characters)
            if blocks is not None:
                return 2.0 * sum(block.size for block in blocks) / (len(gold) + len(patch))
        if num_chars > MAX_LINE_CHARS:
            return 0.0
        lines = gold.splitlines(keepends=True)
        blocks = matching_blocks(lines, patch.splitlines(keepends=True), self._lines)
        matched_chars = (sum(map(len, lines[b.a : b.a + b.size])) for b in blocks or ())
        return 2.0 * sum(matched_chars) / (len(gold) + len(patch))


def readable_patch(text: str) -> Patch:
    """Returns a policy's patch, or an empty patch if a header or a hunk cannot be read."""
    patch = Patch(text)
    try:
        for change in patch.files:
            list(change.hunks())
    except PatchError:
        return Patch()
    return patch


def _diffs_by_path(patch: Patch) -> dict[str, str]:
    """Returns the last diff of each file, by the old path, or by the new path of a new file."""
    return {change.old_path or change.path: change.text.strip() for change in patch.files}


def file_match(gold: str, patch: str) -> float:
    r"""Returns the share of files that both patches change, from 0 to 1.

    The share is the number of files that both patches change, divided by the number of files of the
    patch with more files. If the gold patch has no files, only a patch without files scores 1.

    Source: ``unified_diff_file_match_reward_func`` in ``src/rewards/diff.py`` of CodeRepairRL.

    Raises:
        PatchError: The gold patch cannot be read.

    >>> x, y, z = (f"diff --git a/{name} b/{name}\n" for name in "xyz")
    >>> file_match(x, x), file_match(x + y, x), file_match(x, x + y + z), file_match("", "")
    (1.0, 0.5, 0.3333333333333333, 1.0)
    """
    gold_files = _diffs_by_path(Patch(gold)).keys()
    files = _diffs_by_path(readable_patch(patch)).keys()
    if not gold_files:
        return float(not files)
    return len(gold_files & files) / max(len(gold_files), len(files))


def patch_similarity(gold: str, patch: str) -> float:
    r"""Returns nano-agent's similarity of two unified git diffs, from 0 to 1.

    The diff of each file in the gold patch is compared with the diff of the same file in the patch,
    as texts: twice the matching characters, divided by the characters of both
    (``difflib.SequenceMatcher.ratio``, in which matches cannot start at frequent characters of a
    text of 200 characters or more). The score is the mean over the files of the gold patch. A file
    that the patch lacks scores 0; other files of the patch are ignored. Two empty patches score 1.

    Source: ``unified_diff_similarity`` in ``tests/utils.py`` of nano-agent 5.0.0. The scores are
    equal up to `MAX_CHARS` per file and `MAX_COMPARISONS` per pair; larger pairs are compared by
    whole lines (`Comparer`). Changed: nano-agent also compares texts that are not diffs, and cannot
    read names that git quotes.

    Raises:
        PatchError: The gold patch cannot be read.

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
        return float(not gold.strip() and not patch.strip())
    total, num_gold, _ = compare_files(gold, patch)
    return total / num_gold


def compare_files(gold: str, patch: str) -> tuple[float, int, int]:
    """Compares the diffs of each file that both patches change.

    Returns:
        The sum of the ratios, and the numbers of files of the gold patch and of the other patch.

    Raises:
        PatchError: The gold patch cannot be read.
    """
    gold_diffs, diffs = _diffs_by_path(Patch(gold)), _diffs_by_path(readable_patch(patch))
    comparer = Comparer()
    total = sum(
        comparer.ratio(text, diffs[name]) if name in diffs else 0.0
        for name, text in gold_diffs.items()
    )
    return total, len(gold_diffs), len(diffs)
