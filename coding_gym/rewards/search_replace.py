"""Replies that hold search/replace blocks: how well written, and how alike the gold patch."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from coding_gym import diff_text
from coding_gym.patch import Patch
from coding_gym.rewards.answers import answer_in
from coding_gym.rewards.matching import Effort, matching_blocks

Blocks = tuple[tuple[str, str], ...]

_MAX_COMPARISONS = 3_000_000
_FENCE = "```"
_MARKERS = {
    "search": re.compile(r"<{2,}[ \t]*SEARCH\b(?P<rest>.*)"),
    "divider": re.compile(r"={4,}(?P<rest>[ \t]*)"),
    "replace": re.compile(r">{2,}[ \t]*REPLACE\b(?P<rest>.*)"),
}
_EXACT = {"search": "<<<<<<< SEARCH", "divider": "=======", "replace": ">>>>>>> REPLACE"}
_MISSING = {"search": 0.4, "replace": 0.4, "divider": 0.2}
_MIN_COMPLETE = 0.5


def search_replace_format(reply: str) -> float:
    r"""Returns how well the search/replace blocks of a reply are written, from 0 to 1.

    It is 1 less what a reader must put up with: 0.4 where no SEARCH marker is there, 0.4 for no
    REPLACE, 0.2 for no divider (below 0.5 nothing else is looked at); 0.1 where none of the SEARCH
    markers, or of the REPLACE markers, has its seven signs; 0.05 each for text behind a SEARCH or a
    REPLACE marker, and for white space behind a divider; 0.15 each where there are not as many
    SEARCH, or REPLACE, markers as dividers; 0.3 where REPLACE only comes before SEARCH; and 0.2
    where no block can be read. What is judged is the first fenced block, if there is one, of what
    stands in ``<answer>``, or else of the whole reply.

    Source: ``SearchReplaceDiff.validate_quality`` in ``src/utils/diff.py`` of CodeRepairRL. Mended:
    two perfect blocks score 1 rather than 0.9, since a marker's own line end is no text behind it.

    Args:
        reply: What the policy said.

    >>> block = "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n"
    >>> search_replace_format(block), search_replace_format(block + block)
    (1.0, 1.0)
    >>> round(search_replace_format(block.replace("<<<<<<<", "<<<")), 3)
    0.9
    >>> round(search_replace_format("<<<<<<< SEARCH\nold\n"), 3), search_replace_format("Done.")
    (0.4, 0.0)
    """
    found = _read(_judged(reply))
    score = 1.0 - sum(cost for name, cost in _MISSING.items() if not found.rests[name])
    if score < _MIN_COMPLETE:
        return max(0.0, score)
    for name in ("search", "replace"):
        score -= 0.1 * (not found.exact[name])
        score -= 0.05 * any(rest.strip() for rest in found.rests[name])
        score -= 0.15 * (len(found.rests[name]) != len(found.rests["divider"]))
    score -= 0.05 * any(found.rests["divider"])
    score -= 0.3 * found.is_reversed
    score -= 0.2 * (not found.blocks)
    return max(0.0, score)


def search_replace_similarity(gold: str, reply: str) -> float:
    r"""Returns how alike the search/replace blocks of a reply are to the gold's hunks, from 0 to 1.

    Each hunk of the gold is a block of the lines it expects and those it leaves. Blocks are paired
    in their order, and a pair scores the mean of ``difflib.SequenceMatcher.ratio`` over the lines
    of its search and of its replace part; one without a partner scores 0, and the mean is the
    score. It is 1 where neither has blocks, 0 where one has none.

    Source: ``SearchReplaceDiff.similarity`` and ``from_unified_diff`` in ``src/utils/diff.py`` of
    CodeRepairRL. Mended: there a block without a partner is compared with an empty one, so that a
    thousand empty blocks score 0.999. Blocks that take too much work are compared as a whole.

    Args:
        gold: The reference patch, a unified diff.
        reply: What the policy said.

    Raises:
        PatchError: The gold patch cannot be read.

    >>> gold = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n"
    >>> block = "<<<<<<< SEARCH\nsame\nold\n=======\nsame\nnew\n>>>>>>> REPLACE\n"
    >>> search_replace_similarity(gold, block), search_replace_similarity(gold, block * 2)
    (1.0, 0.5)
    >>> search_replace_similarity(gold, block.replace("new", "newer"))
    0.75
    >>> search_replace_similarity(gold, "")
    0.0
    >>> search_replace_similarity(gold, "<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n" * 1000)
    0.0
    """
    wanted, found = _gold_blocks(gold), _read(_judged(reply)).blocks
    if not wanted or not found:
        return float(not wanted and not found)
    effort = Effort(_MAX_COMPARISONS)
    scores = [
        _ratio(a, b, effort) / 2
        for ours, golds in zip(found, wanted, strict=False)
        for a, b in zip(ours, golds, strict=True)
    ]
    return sum(scores) / max(len(wanted), len(found))


@dataclass(slots=True)
class _Reading:
    """What was found in a text: the blocks, and what stands behind each marker, by its kind."""

    blocks: Blocks = ()
    rests: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in _MARKERS})
    exact: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(_MARKERS, False))
    is_reversed: bool = False


def _read(text: str) -> _Reading:
    """Reads blocks line by line; one whose parts are not in order is none."""
    found, blocks = _Reading(), []
    search: list[str] = []
    replace: list[str] = []
    part: list[str] | None = None
    for line in text.splitlines():
        kind = next((name for name, marker in _MARKERS.items() if marker.fullmatch(line)), "")
        if kind:
            match = _MARKERS[kind].fullmatch(line)
            found.rests[kind].append(match["rest"] if match else "")
            found.exact[kind] |= line.startswith(_EXACT[kind])
        if kind == "search":
            search, replace = [], []
            part = search
        elif kind == "divider" and part is search:
            part = replace
        elif kind == "replace":
            found.is_reversed |= not found.rests["search"]
            if part is replace:
                blocks.append(("\n".join(search), "\n".join(replace)))
            part = None
        elif part is not None:
            part.append(line)
    found.is_reversed &= not blocks
    found.blocks = tuple(blocks)
    return found


def _judged(reply: str) -> str:
    """The first fenced block of the answer, if it has one, else all of it."""
    answer = answer_in(reply)
    text = reply if answer is None else answer
    _, fence, rest = text.partition(_FENCE)
    _, line_end, body = rest.partition("\n")
    inside, fence_end, _ = body.partition(_FENCE)
    return inside if fence and line_end and fence_end else text


def _gold_blocks(gold: str) -> Blocks:
    sides = (
        diff_text.sides(body, reverse=False)
        for change in Patch(gold).files
        for _, _, body in diff_text.hunks(change.text, change.path)
    )
    return tuple(("".join(old), "".join(new)) for old, new in sides)


def _ratio(a: str, b: str, effort: Effort) -> float:
    if a == b:
        return 1.0
    ours, golds = _lines(a), _lines(b)
    blocks = matching_blocks(ours, golds, effort)
    matched = sum(size for _, _, size in blocks or ())
    return 2.0 * matched / ((len(ours) + len(golds)) or 1)


def _lines(text: str) -> Sequence[str]:
    return text.splitlines()
