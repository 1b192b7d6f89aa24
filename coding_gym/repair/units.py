"""Functions that a running program can take a changed version of, without a fresh import."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from coding_gym.mutation.source import Edit, Source
from coding_gym.syntax import Function, first_line


@dataclass(frozen=True, slots=True)
class Unit:
    """A function that stands in a module or a class, not inside another function.

    Attributes:
        function: Its name.
        classes: Names of the classes around it, outermost first.
        start: Offset of the line with its ``def``.
        body_start: Offset of its first statement.
        end: Offset after its last line.
        line: Its first line, decorators included.
        def_line: The line with its ``def``.
        body_line: The line of its first statement.
        last_line: Its last line.
    """

    function: str
    classes: tuple[str, ...]
    start: int
    body_start: int
    end: int
    line: int
    def_line: int
    body_line: int
    last_line: int

    def holds(self, edit: Edit) -> bool:
        """Whether an edit of the same file lies inside the function, decorators left out."""
        return self.start <= edit.start and edit.end <= self.end

    def to_json(self) -> dict[str, Any]:
        """Returns the unit as a JSON object."""
        return asdict(self)


def units(source: Source) -> list[Unit]:
    """Returns the units of a file, in order."""
    return list(_units(source, source.tree.body, ()))


def _units(source: Source, block: Sequence[ast.stmt], classes: tuple[str, ...]) -> Iterator[Unit]:
    for node in block:
        if isinstance(node, ast.ClassDef):
            yield from _units(source, node.body, (*classes, node.name))
        elif isinstance(node, Function):
            last_line = node.end_lineno or node.lineno
            start, end = source.line_span(node.lineno, last_line)
            yield Unit(
                node.name,
                classes,
                start,
                source.span(node.body[0])[0],
                end,
                first_line(node),
                node.lineno,
                node.body[0].lineno,
                last_line,
            )
