"""A candidate as literal search-and-replace, the form in which policies edit files."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from coding_gym.mutation.source import Edit, apply_edits


class Replacement(NamedTuple):
    """One literal search-and-replace.

    Attributes:
        path: The file, relative to the workspace.
        search: Text that occurs once in it.
        replace: What takes its place.
    """

    path: str
    search: str
    replace: str


def search_and_replace(text: str, edit: Edit) -> tuple[str, str]:
    """Returns the shortest whole lines around an edit that occur once, and their new text.

    Args:
        text: The file as it is.
        edit: What to change in it.
    """
    start = text.rfind("\n", 0, edit.start) + 1
    is_whole_line = edit.start < edit.end and text[edit.end - 1] == "\n"
    end = edit.end if is_whole_line else _line_end(text, edit.end)
    while not _occurs_once(text, start, end):
        if end < len(text):
            end = _line_end(text, end + 1)
        if not _occurs_once(text, start, end) and start:
            start = text.rfind("\n", 0, start - 1) + 1
    changed = text[start : edit.start] + edit.replacement + text[edit.end : end]
    return text[start:end], changed


def _occurs_once(text: str, start: int, end: int) -> bool:
    """Whether a span's text stands nowhere else; `str.count` misses places that overlap."""
    part = text[start:end]
    return (start, end) == (0, len(text)) or text.find(part) == text.rfind(part)


def _line_end(text: str, offset: int) -> int:
    found = text.find("\n", offset)
    return len(text) if found < 0 else found


def replacements(texts: dict[str, str], edits: Iterable[Edit]) -> Iterator[Replacement]:
    """Yields edits as literal replacements, to be made one after the other.

    Args:
        texts: The files as they are, by path; each edit is made in them as it is yielded.
        edits: Spans of the texts as they are at first, none overlapping another.
    """
    for edit in sorted(edits, reverse=True):
        text = texts[edit.path]
        search, replace = search_and_replace(text, edit)
        yield Replacement(edit.path, search, replace)
        texts[edit.path] = apply_edits(text, [edit])


def undone(edits: Iterable[Edit], texts: Mapping[str, str]) -> list[Edit]:
    """Returns the edits that take others back.

    Args:
        edits: Spans of the texts.
        texts: The files by path, before the edits were made.
    """
    shift: dict[str, int] = {}
    back = []
    for edit in sorted(edits):
        start = edit.start + shift.get(edit.path, 0)
        end = start + len(edit.replacement)
        old = texts[edit.path][edit.start : edit.end]
        back.append(Edit(edit.path, start, end, old))
        shift[edit.path] = shift.get(edit.path, 0) + len(edit.replacement) - len(old)
    return back
