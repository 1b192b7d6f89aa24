"""Rewards that compare the lines and functions of the base tree that two patches change.

``gold`` is the reference patch, ``patch`` the patch to score.
"""

import re
from collections.abc import Iterator
from difflib import Match

from coding_gym.patch import FileChange, Patch
from coding_gym.rewards.similarity import (
    MAX_LINE_COMPARISONS,
    WorkBudget,
    matching_blocks,
    readable_patch,
)

MAX_EDIT_CHARS = 500_000
"""Maximum characters of a patch to compare line by line."""

Run = tuple[int, list[str], list[str]]
"""A block of changed lines: its first line number in the base, the removed and the added lines."""

_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?(.*)$", re.MULTILINE)


def changed_runs(change: FileChange) -> Iterator[Run]:
    r"""Yields every block of changed lines of a file, without context lines.

    Raises:
        PatchError: A hunk does not have the numbers of lines that its header states.

    >>> text = "diff --git a/x b/x\n@@ -3,3 +3,3 @@\n same\n-old\n+new\n same\n"
    >>> list(changed_runs(FileChange("x", "x", text)))
    [(4, ['old'], ['new'])]
    """
    for start, _, body in change.hunks():
        # The header of a hunk that removes nothing has the number of the line before the hunk.
        line = start if any(text[0] in " -" for text in body) else start + 1
        old: list[str] = []
        new: list[str] = []
        for text in [*body, " "]:
            if text[0] == "-":
                old.append(text[1:])
            elif text[0] == "+":
                new.append(text[1:])
            elif text[0] == " ":
                if old or new:
                    yield line, old, new
                line += len(old) + 1
                old, new = [], []


def exact_match(gold: str, patch: str) -> float:
    r"""Returns 1 if a patch replaces the same lines by the same lines as the gold patch, else 0.

    Other text of the diff (index lines, section names, context) is ignored.

    Source: the exact match of CodeRepairRL. Changed: CodeRepairRL compares the whole text.

    Raises:
        PatchError: The gold patch cannot be read.

    >>> gold = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n"
    >>> exact_match(gold, gold.replace("--- a", "index 1..2 100644\n--- a")), exact_match(gold, "")
    (1.0, 0.0)
    """
    gold_changes = _changes(Patch(gold))
    return float(bool(gold_changes) and _changes(readable_patch(patch)) == gold_changes)


def line_similarity(gold: str, patch: str) -> float:
    r"""Returns the share of changed lines that two patches have in common, from 0 to 1.

    The score is 2 M / T: T is the number of lines that the two patches remove and add, M is the
    number of matching lines, in their order (``difflib.SequenceMatcher.ratio`` over lines). Removed
    lines match if they are the same line of the base, added lines if their texts are equal. A block
    that only adds lines counts one more line, for its position in the base; the position matches
    only if a line of the block matches. Context is ignored: two patches without a common changed
    line score 0, and only equal changes score 1. A file whose comparison takes too much work counts
    as a file without a common line, and a patch larger than `MAX_EDIT_CHARS` scores 0.

    Source: the reward of CodeRepairRL's thesis, equation 3.1: 1 for an identical patch, line-level
    similarity for a partly right patch, else 0. This project defines the matching of lines.

    Raises:
        PatchError: The gold patch cannot be read.

    >>> gold = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-1\n-2\n+3\n+4\n"
    >>> line_similarity(gold, gold), line_similarity(gold, gold.replace("+4", "+5"))
    (1.0, 0.75)
    >>> line_similarity(gold, gold.replace("/x", "/y")), line_similarity(gold, "")
    (0.0, 0.0)
    """
    gold_lines = _line_changes(Patch(gold))
    if len(patch) > MAX_EDIT_CHARS:
        return 0.0
    patch_lines = _line_changes(readable_patch(patch))
    if gold_lines == patch_lines:
        return float(bool(gold_lines))
    total = sum(len(lines) for changes in (gold_lines, patch_lines) for lines in changes.values())
    budget = WorkBudget(MAX_LINE_COMPARISONS)
    num_common = sum(
        _num_common(lines, matching_blocks(lines, patch_lines[path], budget, autojunk=False))
        for path, lines in gold_lines.items()
        if path in patch_lines
    )
    return 2.0 * num_common / total if total else 0.0


def _num_common(lines: list[str], blocks: list[Match] | None) -> int:
    """Returns the number of matched lines; a position counts only with a match in its block."""
    matched_indices = {block.a + n for block in blocks or () for n in range(block.size)}
    num_common, has_match = 0, False
    for n in reversed(range(len(lines))):
        kind = lines[n][:1]
        num_common += n in matched_indices and (kind != "@" or has_match)
        has_match = kind == "+" and (has_match or n in matched_indices)
    return num_common


def _line_changes(patch: Patch) -> dict[str, list[str]]:
    """Returns the changed lines of each file: removed lines by number, added lines by text."""
    changes: dict[str, list[str]] = {}
    for path, runs in _changes(patch).items():
        if isinstance(runs, str):  # a binary file, a rename
            changes[path] = runs.splitlines()
            continue
        lines = changes[path] = []
        for start, old, new in runs:
            lines += [f"-{start + n}" for n in range(len(old))] or [f"@{start}"]
            lines += [f"+{text}" for text in new]
    return changes


def function_match(gold: str, patch: str) -> float:
    r"""Returns the share of functions that both patches change, from 0 to 1.

    The score is the number of functions that both patches change, divided by the number of
    functions of the patch that changes more functions. A function is identified by the text after
    the numbers in a hunk's header: git writes there the last function (in Python: the last
    top-level function or class) that starts before the hunk. If a hunk of a file has no such text,
    in either patch, the whole file counts as one function.

    Source: this project; CodeRepairRL's thesis names partial credit by function as future work.

    Raises:
        PatchError: The gold patch cannot be read.

    >>> f = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -9 +9 @@ def f():\n-1\n+2\n"
    >>> function_match(f, f.replace("+2", "+3")), function_match(f, f.replace("f()", "g()"))
    (1.0, 0.0)
    >>> function_match(f, f.replace(" def f():", ""))
    1.0
    """
    if len(patch) > MAX_EDIT_CHARS:
        return 0.0
    headings = [_hunk_headings(Patch(gold)), _hunk_headings(readable_patch(patch))]
    whole_files = {path for path, heading in headings[0] | headings[1] if not heading}
    gold_functions, functions = (
        {(path, "" if path in whole_files else heading) for path, heading in pairs}
        for pairs in headings
    )
    total = max(len(gold_functions), len(functions))
    return len(gold_functions & functions) / total if total else 0.0


def _hunk_headings(patch: Patch) -> set[tuple[str, str]]:
    """Returns path and heading of each hunk; of a file without hunks, the path and ""."""
    return {
        (change.path, heading)
        for change in patch.files
        for heading in _HUNK.findall(change.text) or [""]
    }


def _changes(patch: Patch) -> dict[str, list[Run] | str]:
    """Returns the changes of each file: blocks of lines, or the text of a change without blocks."""
    return {
        change.path: list(changed_runs(change)) or change.text.strip() for change in patch.files
    }
