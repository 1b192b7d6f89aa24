"""How alike two patches are as texts: nano-agent's score, at a bounded price.

The score says little about right and wrong (a change of white space in the right line scores near
1), so a reward gives it a small weight only.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate

MAX_CHARS = 50_000
"""Characters of one file's diff that are compared one by one."""

MAX_LINE_CHARS = 2_000_000
"""Characters of one file's diff that are compared line by line."""

MAX_COMPARISONS = 20_000_000
"""Comparisons of characters for one pair of patches, a second or two; as many again of lines."""

_ELEMENT_COST = 4  # what a search pays for each element it starts from, in comparisons
_FILE_START = re.compile(r"^diff --git", re.MULTILINE)
_BEFORE_NAME, _AFTER_NAME = "diff --git a/", " b/"


def patch_similarity(gold: str, patch: str) -> float:
    r"""Returns how alike two unified git diffs are, from 0 to 1.

    Each file's part of the gold patch is compared with the part of the patch that names the same
    file, as texts: twice the characters that match, over the characters of both
    (``difflib.SequenceMatcher.ratio``, for which no match starts at a character that is frequent in
    a text of 200 or more). A file that the patch leaves out scores 0, files that only the patch has
    do not count, and the mean over the gold's files is the score. Two empty patches score 1.

    Source: ``unified_diff_similarity`` in ``tests/utils.py`` of nano-agent 5.0.0, equal to it up to
    `MAX_CHARS` a file and `MAX_COMPARISONS` a pair. What is larger is compared by whole lines, each
    weighing its characters; beyond `MAX_LINE_CHARS`, or `MAX_COMPARISONS` of lines, a file scores
    1 if it is equal and else 0. The bounds count work, not time: a pair always scores the same.

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
    """
    if not gold.strip() or not patch.strip():
        return float(not gold.strip() and not patch.strip())
    wanted, found = _by_file(gold), _by_file(patch)
    by_character, by_line = _Effort(MAX_COMPARISONS), _Effort(MAX_COMPARISONS)
    scores = [
        _ratio(text, found[name], by_character, by_line) if name in found else 0.0
        for name, text in wanted.items()
    ]
    return sum(scores) / len(scores)


@dataclass(slots=True)
class _Effort:
    """Comparisons that may still be made."""

    left: int

    def spend(self, comparisons: int) -> bool:
        """Takes so many, if they are left."""
        if comparisons > self.left:
            return False
        self.left -= comparisons
        return True


def _by_file(diff: str) -> dict[str, str]:
    """Text of each file's part, by the file's name before the change; of two the last counts."""
    starts = [match.start() for match in _FILE_START.finditer(diff)]
    ends = zip([0, *starts], [*starts, None], strict=True)
    parts = [diff[start:end].strip() for start, end in ends]
    return {_name(part): part for part in parts if part}


def _name(part: str) -> str:
    """The name in a ``diff --git`` line; "" where git had to quote it, and without such a line."""
    line = part.splitlines()[0]
    start, end = line.find(_BEFORE_NAME), line.rfind(_AFTER_NAME)
    first = start + len(_BEFORE_NAME)
    return line[first:end] if start >= 0 and first <= end else ""


def _ratio(gold: str, found: str, by_character: _Effort, by_line: _Effort) -> float:
    longest = max(len(gold), len(found))
    matched = _matched(gold, found, by_character) if longest <= MAX_CHARS else None
    if matched is None and gold == found:
        return 1.0
    if matched is None and longest <= MAX_LINE_CHARS:
        matched = _matched(gold.splitlines(keepends=True), found.splitlines(keepends=True), by_line)
    return 2.0 * (matched or 0) / (len(gold) + len(found))


def _matched(a: Sequence[str], b: Sequence[str], effort: _Effort) -> int | None:
    """Characters in the blocks that ``SequenceMatcher`` matches, or None if that is too much work.

    Its own loop over blocks cannot be stopped, so this one takes its place: the longest match, then
    the same on either side of it, and so on. cydifflib, a drop-in that is up to twice as fast on
    patches, is not used: a search costs it time for all of ``b``, which no count of work foresees
    (38 s on one pair of 49,000 characters that takes 2 s here).
    """
    if not effort.spend(len(a) + len(b)):
        return None
    matcher = SequenceMatcher(None, a, b)
    places = matcher.b2j  # type: ignore[attr-defined]  # documented; typeshed lacks it
    costs = [0, *accumulate(_ELEMENT_COST + len(places.get(element, ())) for element in a)]
    matched, parts = 0, [(0, len(a), 0, len(b))]
    while parts:
        a_low, a_high, b_low, b_high = parts.pop()
        if not effort.spend(costs[a_high] - costs[a_low]):
            return None
        i, j, size = matcher.find_longest_match(a_low, a_high, b_low, b_high)
        if not size:
            continue
        matched += sum(map(len, a[i : i + size]))
        if a_low < i and b_low < j:
            parts.append((a_low, i, b_low, j))
        if i + size < a_high and j + size < b_high:
            parts.append((i + size, a_high, j + size, b_high))
    return matched
