"""Template source into pieces, and the inside of markers into tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from slate.errors import TemplateSyntaxError

_STRING = r'"(?:[^"\\]|\\.)*"' + r"|'(?:[^'\\]|\\.)*'"
_MARKER = re.compile(
    rf"\{{#.*?#\}}|\{{\{{(?:{_STRING}|[^\"'])*?\}}\}}|\{{%(?:{_STRING}|[^\"'])*?%\}}", re.DOTALL
)
_TOKEN = re.compile(
    rf"\s*(?:(?P<string>{_STRING})"
    r"|(?P<number>-?\d+(?:\.\d+)?)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<symbol>==|!=|[<>|(),.]))",
    re.DOTALL,
)
_KINDS = {"{{": "output", "{%": "tag", "{#": "comment"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of ``text``, or the inside of an ``output``, a ``tag`` or a ``comment``."""

    kind: str
    content: str
    line: int


@dataclass(frozen=True, slots=True)
class Token:
    """A ``string``, ``number``, ``name`` or ``symbol``, or the ``end``."""

    kind: str
    text: str


def split(source: str) -> Iterator[Piece]:
    """Cuts a template into pieces.

    Raises:
        TemplateSyntaxError: if a marker is not closed.
    """
    position, line = 0, 1
    for match in _MARKER.finditer(source):
        text, marker = source[position : match.start()], match.group()
        yield _text(text, line)
        line += text.count("\n")
        yield Piece(_KINDS[marker[:2]], marker[2:-2].strip(), line)
        line += marker.count("\n")
        position = match.end()
    yield _text(source[position:], line)


def _text(text: str, line: int) -> Piece:
    for opening in _KINDS:
        before, found, _ = text.partition(opening)
        if found:
            raise TemplateSyntaxError(f"{opening} is not closed", line + before.count("\n"))
    return Piece("text", text, line)


def tokenize(content: str, line: int) -> list[Token]:
    """The tokens of an expression or a tag, with an ``end`` token behind them.

    Raises:
        TemplateSyntaxError: at a character that starts no token.
    """
    tokens: list[Token] = []
    position = 0
    content = content.rstrip()
    while position < len(content):
        match = _TOKEN.match(content, position)
        if match is None or match.lastgroup is None:
            raise TemplateSyntaxError(f"unexpected {content[position:].strip()[:1]!r}", line)
        tokens.append(Token(match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return [*tokens, Token("end", "the end")]
