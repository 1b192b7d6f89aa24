"""What a parsed document is made of.

Blocks hold raw text; it is read for inline markup only when the whole document is known, because a
link may refer to a definition that comes later.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """Where a link leads."""

    href: str
    title: str | None = None


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Heading:
    level: int
    text: str


@dataclass(frozen=True)
class CodeBlock:
    language: str
    code: str


@dataclass(frozen=True)
class Rule:
    """A line across the page."""


@dataclass(frozen=True)
class Quote:
    blocks: list[Block]


@dataclass(frozen=True)
class ItemList:
    """A bullet list, or a numbered one when ``start`` is a number."""

    start: int | None
    tight: bool
    items: list[list[Block]]


Block = Paragraph | Heading | CodeBlock | Rule | Quote | ItemList


@dataclass(frozen=True)
class Document:
    """A whole text.

    ``references`` and ``notes``, the raw text of the footnotes, are kept by normalised label.
    """

    blocks: list[Block]
    references: dict[str, Target]
    notes: dict[str, str]


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Code:
    text: str


@dataclass(frozen=True)
class Break:
    """A line break that the author asked for."""


@dataclass(frozen=True)
class Emphasis:
    children: list[Inline]


@dataclass(frozen=True)
class Strong:
    children: list[Inline]


@dataclass(frozen=True)
class Link:
    target: Target
    children: list[Inline]


@dataclass(frozen=True)
class NoteReference:
    """A place that refers to the footnote of that normalised label."""

    label: str


Inline = Text | Code | Break | Emphasis | Strong | Link | NoteReference


def normalise_label(label: str) -> str:
    """The form under which a label is kept: case and spacing do not tell labels apart."""
    return " ".join(label.split()).casefold()
