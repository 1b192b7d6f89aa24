"""Text to inline nodes."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from inkwell import nodes

_PUNCTUATION = set("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_TICKS = re.compile(r"`+")
_DESTINATION = re.compile(
    r"\(\s*(?:<(?P<bracketed>[^<>\n]*)>|(?P<href>(?:[^\s()\\]|\\.|\([^\s()]*\))*))"
    r"""(?:\s+(?P<quote>["'])(?P<title>(?:\\.|(?!(?P=quote)).)*)(?P=quote))?\s*\)""",
    re.DOTALL,
)
_LABEL = re.compile(r"\[([^\[\]]*)\]")
_NOTE = re.compile(r"\[\^([^\[\]]+)\]")

_Found = tuple[nodes.Inline, int]


class InlineParser:
    """Reads inline markup.

    ``references`` are the link definitions of the document, ``notes`` the labels of its footnotes.
    """

    def __init__(self, references: Mapping[str, nodes.Target], notes: Container[str] = ()) -> None:
        self.references = references
        self.notes = notes

    def parse(self, text: str) -> list[nodes.Inline]:
        """The nodes of ``text``; neighbouring plain text is one node."""
        parsed: list[nodes.Inline] = []
        plain: list[str] = []
        pos = 0
        while pos < len(text):
            node, end = self._next(text, pos)
            if isinstance(node, nodes.Text):
                plain.append(node.text)
            else:
                if plain:
                    parsed.append(nodes.Text("".join(plain)))
                    plain = []
                parsed.append(node)
            pos = end
        if plain:
            parsed.append(nodes.Text("".join(plain)))
        return parsed

    def _next(self, text: str, pos: int) -> _Found:
        found: _Found | None = None
        match text[pos]:
            case "\\":
                found = _escape(text, pos)
            case "`":
                found = _code(text, pos)
            case "[":
                found = self._note(text, pos) or self._link(text, pos)
            case "*" | "_":
                found = self._emphasis(text, pos)
        return found or (nodes.Text(text[pos]), pos + 1)

    def _note(self, text: str, pos: int) -> _Found | None:
        found = _NOTE.match(text, pos)
        label = nodes.normalise_label(found[1]) if found else ""
        if found is None or label not in self.notes:
            return None
        return nodes.NoteReference(label), found.end()

    def _link(self, text: str, pos: int) -> _Found | None:
        found = self._bracketed(text, pos)
        if found is None:
            return None
        label, target, end = found
        return nodes.Link(target, self.parse(label)), end

    def _bracketed(self, text: str, pos: int) -> tuple[str, nodes.Target, int] | None:
        """The bracketed text at ``pos``, where it leads, and the end of the whole construct."""
        close = _closing_bracket(text, pos)
        if close is None:
            return None
        content, end = text[pos + 1 : close], close + 1
        if inline := _DESTINATION.match(text, end):
            href = inline["href"] if inline["bracketed"] is None else inline["bracketed"]
            title = inline["title"]
            target = nodes.Target(_unescape(href), None if title is None else _unescape(title))
            return content, target, inline.end()
        label = content
        if explicit := _LABEL.match(text, end):
            label = explicit[1] or content
            end = explicit.end()
        reference = self.references.get(nodes.normalise_label(label))
        return None if reference is None else (content, reference, end)

    def _emphasis(self, text: str, pos: int) -> _Found:
        run = _run_length(text, pos)
        width = min(run, 2)
        if _may_open(text, pos, pos + run):
            close = _closing_run(text, pos + width, text[pos], width)
            if close is not None:
                children = self.parse(text[pos + width : close])
                node = nodes.Strong(children) if width == 2 else nodes.Emphasis(children)
                return node, close + width
        return nodes.Text(text[pos : pos + run]), pos + run


def plain_text(inlines: list[nodes.Inline]) -> str:
    """The text that is left when all markup is taken away."""
    parts = []
    for node in inlines:
        match node:
            case nodes.Text(text) | nodes.Code(text):
                parts.append(text)
            case nodes.Emphasis(children) | nodes.Strong(children) | nodes.Link(_, children):
                parts.append(plain_text(children))
            case nodes.Break():
                parts.append("\n")
    return "".join(parts)


def _escape(text: str, pos: int) -> _Found | None:
    following = text[pos + 1 : pos + 2]
    if following == "\n":
        return nodes.Break(), pos + 2
    return (nodes.Text(following), pos + 2) if following in _PUNCTUATION else None


def _unescape(text: str) -> str:
    return _ESCAPE.sub(r"\1", text)


def _code(text: str, pos: int) -> _Found:
    end = _code_end(text, pos)
    ticks = _run_length(text, pos)
    if end is None:
        return nodes.Text("`" * ticks), pos + ticks
    code = text[pos + ticks : end - ticks].replace("\n", " ")
    if code.strip() and code[0] == code[-1] == " ":
        code = code[1:-1]
    return nodes.Code(code), end


def _code_end(text: str, pos: int) -> int | None:
    """The end of the code span that starts at ``pos``, closed by an equally long run."""
    ticks = _run_length(text, pos)
    for run in _TICKS.finditer(text, pos + ticks):
        if len(run[0]) == ticks:
            return run.end()
    return None


def _run_length(text: str, pos: int) -> int:
    return len(text) - pos - len(text[pos:].lstrip(text[pos]))


def _skip(text: str, pos: int) -> int:
    """The position after whatever stands at ``pos``, stepping over escapes and code spans whole."""
    if text[pos] == "\\":
        return pos + 2
    if text[pos] == "`":
        return _code_end(text, pos) or pos + _run_length(text, pos)
    return pos + 1


def _closing_bracket(text: str, pos: int) -> int | None:
    depth = 0
    while pos < len(text):
        if text[pos] == "[":
            depth += 1
        elif text[pos] == "]":
            depth -= 1
            if depth == 0:
                return pos
        pos = _skip(text, pos)
    return None


def _may_open(text: str, start: int, end: int) -> bool:
    """Whether the run from ``start`` to ``end`` may open emphasis; ``_`` never does in a word."""
    if end == len(text) or text[end].isspace():
        return False
    return text[start] == "*" or start == 0 or not text[start - 1].isalnum()


def _may_close(text: str, start: int, end: int) -> bool:
    if text[start - 1].isspace():
        return False
    return text[start] == "*" or end == len(text) or not text[end].isalnum()


def _closing_run(text: str, pos: int, char: str, width: int) -> int | None:
    """Where the delimiters that end an emphasis of ``width`` begin, searching from ``pos``."""
    start = pos
    while pos < len(text):
        if text[pos] != char:
            pos = _skip(text, pos)
            continue
        run = _run_length(text, pos)
        fits = run % 2 == 1 if width == 1 else run >= 2
        if fits and pos > start and _may_close(text, pos, pos + run):
            return pos + run - width
        pos += run
    return None
