"""The runs of changed lines in a patch, and where they are in the base tree."""

from collections.abc import Iterator

from coding_gym import diff_text
from coding_gym.patch import FileChange

Run = tuple[int, list[str], list[str]]
"""The line of the base where it begins, the lines that are gone, and the new ones."""


def changed_runs(change: FileChange) -> Iterator[Run]:
    r"""Yields every run of changed lines of a file, whatever context stands around them.

    Raises:
        PatchError: A hunk is shorter than its header says.

    >>> text = "diff --git a/x b/x\n@@ -3,3 +3,3 @@\n same\n-old\n+new\n same\n"
    >>> list(changed_runs(FileChange("x", "x", text)))
    [(4, ['old'], ['new'])]
    """
    for start, _, body in diff_text.hunks(change.text, change.path):
        # A hunk that removes nothing names the line before it.
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
