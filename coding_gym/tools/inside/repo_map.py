"""A map of the repository: its most used definitions, as many as there is room for."""

# ruff: noqa: TID252, PTH109, PTH118 - in the sandbox this package has another name

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .quick_tags import quick_tags
from .ranking import Ranked, ranked
from .tags import Tags, tags
from .tree import Tree, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_SIGNATURE_CHARS = 100
_PARSED_BYTES = 2 << 20  # of all files together; more are read by regular expressions


def answer(request: dict[str, Any], reply: Callable[[Any], None]) -> None:
    """Replies with a map: ``text``, and how much it leaves out.

    Args:
        request: ``paths``, of which only what is below is shown, none for all; ``max_chars``.
        reply: Takes ``text``, ``shown``, ``definitions``, ``files`` and ``left_out`` (files that
            were not read).
    """
    tree = Tree(os.getcwd())
    files = list(tree.files())
    parses = sum(len(file.data) for file in files) <= _PARSED_BYTES
    found: dict[str, Tags] = {}
    lines: dict[str, dict[int, str]] = {}
    for file in files:
        is_quick = file.language == "python" and not parses
        found[file.path] = quick_tags(file.data) if is_quick else tags(file)
        code = file.lines()
        lines[file.path] = {
            line: code[line - 1] for line, _, _ in found[file.path].definitions if line <= len(code)
        }
    wanted = [_inside(path) for path in request["paths"]]
    order = [d for d in ranked(found) if not wanted or _is_below(d.path, wanted)]
    text, num_shown = drawn(order, lines, request["max_chars"])
    num_files = sum(1 for path in found if not wanted or _is_below(path, wanted))
    reply(
        {
            "text": text,
            "shown": num_shown,
            "definitions": len(order),
            "files": num_files,
            "left_out": tree.num_left_out,
        }
    )


def _inside(path: str) -> str:
    path = os.path.relpath(os.path.join(os.getcwd(), path.replace("\0", "")))
    return "" if path == "." else path


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(not f or path == f or path.startswith(f + "/") for f in folders)


def drawn(
    order: Iterable[Ranked], lines: Mapping[str, Mapping[int, str]], max_chars: int
) -> tuple[str, int]:
    """Draws the first definitions that there is room for, by file, with the classes around them.

    Args:
        order: Definitions, the most important first.
        lines: By path and number, the lines of code that define them.
        max_chars: Room for the text.

    Returns:
        The text, and how many definitions it shows.
    """
    order = list(order)
    places = {(d.path, d.name): d.line for d in order if d.kind == "class"}
    shown: dict[str, dict[int, str]] = {}
    num_shown, room = 0, max_chars
    for definition in order:
        path = definition.path
        numbers = {definition.line} | {
            places[path, outer] for outer in _outer(definition.name) if (path, outer) in places
        }
        new = {
            number: f"{number:6}  {printable(lines[path].get(number, ''), _SIGNATURE_CHARS)}\n"
            for number in sorted(numbers - set(shown.get(path, ())))
        }
        cost = sum(map(len, new.values()))
        cost += 0 if path in shown else len(printable(path)) + 2
        if cost > room:
            break
        room -= cost
        num_shown += 1
        shown.setdefault(path, {}).update(new)
    text = "".join(
        f"{printable(path)}:\n{''.join(by_line[n] for n in sorted(by_line))}"
        for path, by_line in shown.items()
    )
    return text, num_shown


def _outer(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]
