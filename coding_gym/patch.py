"""A change to a tree as a unified git diff: reading it, making it from texts, applying it to texts.

Applying to real trees is git's work, inside a sandbox; what is here is exact and without fuzz.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from coding_gym import diff_text
from coding_gym.errors import PatchError


@dataclass(frozen=True)
class FileChange:
    """The part of a patch that is about one file.

    Attributes:
        old_path: The path before, or None for a new file.
        new_path: The path after, or None for a deleted file.
        text: The diff from its ``diff --git`` line on.
    """

    old_path: str | None
    new_path: str | None
    text: str

    @property
    def path(self) -> str:
        """The path after the change, or before it where the file was deleted."""
        return self.new_path or self.old_path or ""

    @property
    def is_binary(self) -> bool:
        """Whether the content is binary data instead of lines."""
        return "\nGIT binary patch\n" in self.text or "\nBinary files " in self.text


@dataclass(frozen=True)
class Patch:
    """A unified git diff.

    Attributes:
        text: The diff; bytes that are not UTF-8 are held as surrogate escapes.
    """

    text: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not self.text.strip()

    @cached_property
    def files(self) -> tuple[FileChange, ...]:
        """The changes, one per file, in the order of the diff.

        Raises:
            PatchError: There is text, but no file header, or one that cannot be read.
        """
        if self.is_empty:
            return ()
        return tuple(FileChange(*paths, text) for paths, text in diff_text.split_files(self.text))

    @property
    def paths(self) -> frozenset[str]:
        """Every path that the patch names, before or after."""
        return frozenset(p for f in self.files for p in (f.old_path, f.new_path) if p)

    @classmethod
    def between(cls, before: Mapping[str, str], after: Mapping[str, str]) -> "Patch":
        """Returns the diff that leads from one set of files (path to text) to another."""
        parts = []
        for path in sorted(before.keys() | after.keys()):
            old, new = before.get(path), after.get(path)
            if old != new:
                parts.append(diff_text.write_file(path, old, new))
        return cls("".join(parts))

    def apply(self, files: Mapping[str, str], *, reverse: bool = False) -> dict[str, str]:
        """Returns the files (path to text) after the patch, or before it with ``reverse``.

        Raises:
            PatchError: A line that the patch expects is not where it says, or a file is missing,
                is in the way, or is binary.
        """
        result = dict(files)
        for change in self.files:
            if change.is_binary:
                raise PatchError(f"{change.path} is binary; only git can apply that")
            old_path, new_path = change.old_path, change.new_path
            if reverse:
                old_path, new_path = new_path, old_path
            if old_path is not None and old_path not in result:
                raise PatchError(f"patch changes {old_path}, which is not in the tree")
            if old_path is None and new_path in result:
                raise PatchError(f"patch creates {new_path}, which is in the tree already")
            text = result.pop(old_path) if old_path is not None else ""
            patched = _apply_hunks(text, change, reverse)
            if new_path is not None:
                result[new_path] = patched
        return result


def _apply_hunks(text: str, change: FileChange, reverse: bool) -> str:
    source, result, taken = diff_text.split_lines(text), [], 0
    for old_start, new_start, body in diff_text.hunks(change.text, change.path):
        old, new = diff_text.sides(body, reverse=reverse)
        start = new_start if reverse else old_start
        first = start - 1 if old else start  # a hunk that removes nothing names the line before it
        if first < taken or source[first : first + len(old)] != old:
            raise PatchError(f"patch does not apply to {change.path} at line {first + 1}")
        result += source[taken:first] + new
        taken = first + len(old)
    return "".join(result + source[taken:])
