"""Removes tests from test files, so that the visible tests do not reveal the bug."""

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping

from coding_gym import syntax
from coding_gym.source_text import SourceText
from coding_gym.syntax import Function, first_line


def hide(files: Mapping[str, str], locations: Iterable[tuple[str, int]]) -> dict[str, str] | None:
    """Removes functions; returns the new text of each changed file, or None if this is impossible.

    Args:
        files: The text of each file, by path.
        locations: Path and first line of each function.
    """
    by_path: dict[str, set[int]] = {}
    for path, line in locations:
        by_path.setdefault(path, set()).add(line)
    changed_texts = {}
    for path, lines in by_path.items():
        text = _without_functions(files[path], lines) if path in files else None
        if text is None:
            return None
        changed_texts[path] = text
    return changed_texts


def _without_functions(text: str, starts: Collection[int]) -> str | None:
    tree = syntax.parse_or_none(text)
    # Tools disagree on the line numbers of a text with these characters.
    if tree is None or "\r" in text or "\f" in text:
        return None
    lines, source = text.split("\n"), SourceText(text)
    removed_lines: set[int] = set()
    pass_lines: dict[int, str] = {}
    num_removed = 0
    for body, is_block in _statement_lists(tree):
        functions = [n for n in body if isinstance(n, Function) and first_line(n) in starts]
        num_removed += len(functions)
        removed_lines.update(*(_lines_of(node, lines, source) for node in functions))
        if functions and len(functions) == len(body) and is_block:
            pass_lines[first_line(functions[0])] = " " * functions[0].col_offset + "pass"
    if num_removed != len(starts):
        return None
    remaining_lines = [
        pass_lines.get(number, line)
        for number, line in enumerate(lines, 1)
        if number in pass_lines or number not in removed_lines
    ]
    new_text = "\n".join(remaining_lines)
    return new_text.rstrip("\n") + "\n" if new_text.strip() else ""


def _statement_lists(tree: ast.Module) -> Iterator[tuple[list[ast.stmt], bool]]:
    """Yields every list of statements, and whether the list must contain a statement."""
    for owner in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            if isinstance(body := getattr(owner, name, None), list):
                yield body, owner is not tree


def _lines_of(node: Function, lines: list[str], source: SourceText) -> set[int]:
    """Returns the lines of a function, of the comments above and of the blank lines below."""
    first, last = source.first_comment(first_line(node)), node.end_lineno or node.lineno
    while last < len(lines) and not lines[last].strip():
        last += 1
    return set(range(first, last + 1))
