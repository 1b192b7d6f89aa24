"""Reverses diffs: some datasets contain the patch that makes the bug."""

import re

from coding_gym.errors import PatchError
from coding_gym.patch import FileChange, Patch, quote

_SWAPPED = {"+": "-", "-": "+", " ": " "}


def reversed_patch(patch: Patch) -> Patch:
    """Returns the reverse of a patch.

    Raises:
        PatchError: The patch is malformed, or changes binary files.
    """
    return Patch("".join(_reversed_change(change) for change in patch.files))


def _reversed_change(change: FileChange) -> str:
    if change.is_binary:
        raise PatchError(f"{change.path} is binary, and a binary change cannot be reversed")
    old, new = change.new_path, change.old_path
    before, after = quote(f"a/{old or new}"), quote(f"b/{new or old}")
    body = "".join(_reversed_hunk(*hunk) for hunk in change.hunks())
    lines = [f"diff --git {before} {after}", *_reversed_modes(change.text)]
    if old and new and old != new:
        lines += [f"rename from {quote(old)}", f"rename to {quote(new)}"]
    if body:
        lines += [f"--- {before if old else '/dev/null'}", f"+++ {after if new else '/dev/null'}"]
    return "\n".join(lines) + "\n" + body


def _reversed_modes(text: str) -> list[str]:
    header = text.split("\n@@ ", 1)[0]
    modes = dict(
        re.findall(
            r"^(old mode|new mode|new file mode|deleted file mode) (\d+)$", header, re.MULTILINE
        )
    )
    lines = []
    if "old mode" in modes and "new mode" in modes:
        lines += [f"old mode {modes['new mode']}", f"new mode {modes['old mode']}"]
    if "new file mode" in modes:
        lines.append(f"deleted file mode {modes['new file mode']}")
    if "deleted file mode" in modes:
        lines.append(f"new file mode {modes['deleted file mode']}")
    return lines


def _reversed_hunk(old_start: int, new_start: int, body: list[str]) -> str:
    num_old = sum(line[0] in " -" for line in body)
    num_new = sum(line[0] in " +" for line in body)
    lines: list[str] = []
    # The current block of changed lines; git writes removed lines first.
    removed: list[str] = []
    added: list[str] = []
    last = lines
    for line in body:
        if line[0] not in _SWAPPED:  # "no newline at end of file", about the line before
            last.append(line)
            continue
        if line[0] == " ":
            lines += removed + added
            removed, added = [], []
        last = {"+": removed, "-": added, " ": lines}[line[0]]
        last.append(_SWAPPED[line[0]] + line[1:])
    lines += removed + added
    head = f"@@ -{new_start},{num_new} +{old_start},{num_old} @@"
    return "\n".join([head, *lines]) + "\n"
