"""Reverses diffs, for datasets whose rows contain the patch that introduces the bug."""

import re
from collections.abc import Iterator
from itertools import groupby

from coding_gym.errors import PatchError
from coding_gym.patch import FileChange, Hunk, Patch, quote

_SWAPPED = {"+": "-", "-": "+", " ": " "}
_MODE = re.compile(r"^(old mode|new mode|new file mode|deleted file mode) (\d+)$", re.MULTILINE)
_REVERSED_MODE = {
    "old mode": "new mode",
    "new mode": "old mode",
    "new file mode": "deleted file mode",
    "deleted file mode": "new file mode",
}


def reversed_patch(patch: Patch) -> Patch:
    """Returns the reverse of a patch.

    Raises:
        PatchError: The patch is malformed, or changes binary files.
    """
    return Patch("".join(_reversed_change(change) for change in patch.files))


def _reversed_change(change: FileChange) -> str:
    if change.is_binary:
        raise PatchError(f"{change.path} is binary; only changes of text can be reversed")
    old, new = change.new_path, change.old_path
    before, after = quote(f"a/{old or new}"), quote(f"b/{new or old}")
    modes = _MODE.findall(change.text.split("\n@@ ", 1)[0])
    lines = [f"diff --git {before} {after}"]
    lines += [f"{_REVERSED_MODE[name]} {mode}" for name, mode in reversed(modes)]
    if old and new and old != new:
        lines += [f"rename from {quote(old)}", f"rename to {quote(new)}"]
    hunks = [line for hunk in change.hunks() for line in _reversed_hunk(hunk)]
    if hunks:
        lines += [f"--- {before if old else '/dev/null'}", f"+++ {after if new else '/dev/null'}"]
    return "\n".join(lines + hunks) + "\n"


def _reversed_hunk(hunk: Hunk) -> Iterator[str]:
    """Yields the lines of a hunk, with the removed lines of each block first, as in git."""
    num_old = sum(line[0] in " -" for line in hunk.body)
    num_new = sum(line[0] in " +" for line in hunk.body)
    yield f"@@ -{hunk.new_start},{num_new} +{hunk.old_start},{num_old} @@"
    swapped_lines: list[str] = []
    for line in hunk.body:
        if line[0] in _SWAPPED:
            swapped_lines.append(_SWAPPED[line[0]] + line[1:])
        else:  # "no newline at end of file", which belongs to the previous line
            swapped_lines[-1] += f"\n{line}"
    for _, block in groupby(swapped_lines, lambda line: line[0] == " "):
        yield from sorted(block, key=lambda line: line[0] == "+")
