"""How much two texts share, as difflib counts it, at a price that is bounded by counting work.

difflib takes minutes for some pairs of texts of 50,000 characters, and a policy may write either.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

MAX_CHARS = 50_000
"""Characters of one text that are compared one by one."""

MAX_LINE_CHARS = 2_000_000
"""Characters of one text that are compared line by line."""

MAX_COMPARISONS = 6_500_000
"""Comparisons of characters for one pair of patches, a second of work."""

MAX_LINE_COMPARISONS = 2_000_000
"""Comparisons of lines for one pair of patches."""

# As in difflib: in a sequence this long, what makes up more than a hundredth of it is frequent.
_MIN_LONG, _FREQUENT_SHARE = 200, 100
_ELEMENT_COST = 4  # what a search pays for each element it starts from, in comparisons
_ALONE_SHARE = 3  # places looked up in the time of one comparison, where no match goes on
# What `str.find` gets through meanwhile, and the longest texts for which it is faster for sure.
_FOUND_CHARS, _SOUGHT_CHARS, _MAX_SOUGHT = 32, 8, 2_000

Block = tuple[int, int, int]
"""Where a match begins in the one and in the other sequence, and how long it is."""


class Similarity(float):
    """A score from 0 to 1 that also says how it came about.

    Attributes:
        by_line: Whether a text was too large, or too hard, to be compared by characters, so that
            the score is not difflib's own.
    """

    by_line: bool

    def __new__(cls, score: float, *, by_line: bool = False) -> Self:
        """Makes a float that is marked."""
        made = super().__new__(cls, score)
        made.by_line = by_line
        return made


@dataclass(slots=True)
class Effort:
    """Comparisons that may still be made; below 0 there were too many."""

    left: int


@dataclass(slots=True)
class Comparer:
    """Compares pairs of texts that together may take so much work and no more.

    The bounds count work, not time: the same pairs always score the same.

    Attributes:
        autojunk: Whether no match starts at an element that is frequent in a text of 200 or more,
            as `difflib.SequenceMatcher` has it by default.
        by_line: Whether some pair so far was compared by lines.
    """

    autojunk: bool = True
    by_line: bool = False
    _characters: Effort = field(default_factory=lambda: Effort(MAX_COMPARISONS))
    _lines: Effort = field(default_factory=lambda: Effort(MAX_LINE_COMPARISONS))

    def ratio(self, gold: str, found: str) -> float:
        """Returns ``difflib.SequenceMatcher(None, gold, found).ratio()``, or what stands in for it.

        Texts above `MAX_CHARS`, and pairs that take too much work, are compared by whole lines,
        each weighing its characters; beyond `MAX_LINE_CHARS`, or too much work once more, they
        score 1 where they are equal and else 0.
        """
        if gold == found:
            return 1.0
        longest = max(len(gold), len(found))
        if longest <= MAX_CHARS:
            blocks = matching_blocks(gold, found, self._characters, autojunk=self.autojunk)
            if blocks is not None:
                return 2.0 * sum(size for _, _, size in blocks) / (len(gold) + len(found))
        self.by_line = True
        if longest > MAX_LINE_CHARS:
            return 0.0
        lines = gold.splitlines(keepends=True)
        blocks = matching_blocks(lines, found.splitlines(keepends=True), self._lines)
        matched = (sum(map(len, lines[i : i + size])) for i, _, size in blocks or ())
        return 2.0 * sum(matched) / (len(gold) + len(found))

    def similarity(self, score: float) -> Similarity:
        """Returns a score made of ratios, marked with how they came about."""
        return Similarity(score, by_line=self.by_line)


def matching_blocks(
    a: Sequence[str], b: Sequence[str], effort: Effort, *, autojunk: bool = True
) -> list[Block] | None:
    """Returns the blocks that `difflib.SequenceMatcher` matches, unordered, before it joins them.

    The longest match, of several the first, then the same on either side of it, and so on. What
    difflib does in between is left out: it looks at every element of ``a`` in every search, also at
    those that no match can start from, which are nearly all characters of a long text. cydifflib,
    a drop-in for difflib, is not used: no count of work foresees what its searches cost (38 s on
    one pair of 49,000 characters that takes a second here).

    Args:
        a: A text, or lines or words.
        b: The same.
        effort: What the searches may cost; they take from it.
        autojunk: Whether no match starts at what is frequent in ``b``, if it is long.

    Returns:
        The blocks; None where they would cost too much.
    """
    search = _Search(a, b, effort, autojunk=autojunk)
    found: list[Block] = []
    parts = [(0, len(a), 0, len(b))]
    while parts:
        a_low, a_high, b_low, b_high = parts.pop()
        i, j, size = search.longest(a_low, a_high, b_low, b_high)
        if effort.left < 0:
            return None
        if not size:
            continue
        found.append((i, j, size))
        if a_low < i and b_low < j:
            parts.append((a_low, i, b_low, j))
        if i + size < a_high and j + size < b_high:
            parts.append((i + size, a_high, j + size, b_high))
    return found


class _Search:
    """Finds longest matches in parts of two sequences."""

    def __init__(
        self, a: Sequence[str], b: Sequence[str], effort: Effort, *, autojunk: bool
    ) -> None:
        self._a, self._b, self._effort = a, b, effort
        effort.left -= len(a) + len(b)
        self._text = None
        is_short = len(a) <= _MAX_SOUGHT and len(b) <= _MAX_SOUGHT
        if is_short and isinstance(b, str) and not (autojunk and len(b) >= _MIN_LONG):
            self._text = b
            return
        self._places = places = _places(b, autojunk=autojunk) if effort.left >= 0 else {}
        self._starts = [i for i, element in enumerate(a) if element in places]

    def longest(self, a_low: int, a_high: int, b_low: int, b_high: int) -> Block:
        """Returns the longest match in ``a[a_low:a_high]`` and ``b[b_low:b_high]``.

        Of equally long ones it is that which starts first in ``a``, then in ``b``; size 0 for none.
        """
        if self._text is not None:
            return self._longest_text(self._text, a_low, a_high, b_low, b_high)
        i, j, size = self._longest_core(a_low, a_high, b_low, b_high)
        a, b = self._a, self._b
        while i > a_low and j > b_low and a[i - 1] == b[j - 1]:  # through what starts no match
            i, j, size = i - 1, j - 1, size + 1
        while i + size < a_high and j + size < b_high and a[i + size] == b[j + size]:
            size += 1
        return i, j, size

    def _longest_text(self, b: str, a_low: int, a_high: int, b_low: int, b_high: int) -> Block:
        """The longest match in texts of which every character starts one: by ``str.find``."""
        a, left = self._a, self._effort.left
        best_i, best_j, best, i = a_low, b_low, 0, a_low
        cost = _ELEMENT_COST + (b_high - b_low) // _FOUND_CHARS
        while i + best < a_high:
            left -= cost + best // _SOUGHT_CHARS
            if left < 0:
                break
            j = b.find(a[i : i + best + 1], b_low, b_high)  # type: ignore[arg-type]  # texts both
            if j < 0:
                i += 1
                continue
            best_i, best_j, best = i, j, best + 1
            while i + best < a_high and j + best < b_high and a[i + best] == b[j + best]:
                best += 1
        self._effort.left = left
        return best_i, best_j, best

    def _longest_core(self, a_low: int, a_high: int, b_low: int, b_high: int) -> Block:
        """The longest match of elements that matches start from."""
        a, places, left = self._a, self._places, self._effort.left
        best_i, best_j, best = a_low, b_low, 0
        ending: dict[int, int] = {}  # sizes of the matches that end at the last start, by their j
        last = -2
        starts = self._starts
        for i in starts[bisect_left(starts, a_low) : bisect_left(starts, a_high)]:
            found = places[a[i]]
            if found[0] < b_low or found[-1] >= b_high:
                found = found[bisect_left(found, b_low) : bisect_left(found, b_high)]
            is_alone = i != last + 1
            left -= _ELEMENT_COST + (len(found) // _ALONE_SHARE if is_alone else len(found))
            if left < 0:
                break
            if is_alone:  # what came before starts no match, so none is longer than 1 here
                ending, last = dict.fromkeys(found, 1), i
                if found and not best:
                    best_i, best_j, best = i, found[0], 1
                continue
            before, ending, last = ending, {}, i
            for j in found:
                size = ending[j] = before.get(j - 1, 0) + 1
                if size > best:
                    best_i, best_j, best = i - size + 1, j - size + 1, size
        self._effort.left = left
        return best_i, best_j, best


def _places(b: Sequence[str], *, autojunk: bool) -> dict[str, list[int]]:
    """Where each element of ``b`` is, without those that no match starts from."""
    counts = Counter(b)
    most = len(b) // _FREQUENT_SHARE + 1 if autojunk and len(b) >= _MIN_LONG else len(b)
    places: dict[str, list[int]] = {e: [] for e, count in counts.items() if count <= most}
    if places:
        for j, element in enumerate(b):
            if element in places:
                places[element].append(j)
    return places
