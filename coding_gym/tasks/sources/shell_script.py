"""The commands of a shell script, each with all the lines that belong to it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

# What a shell reads as one; where none fits, a quote has no end.
_TOKEN = re.compile(
    r"""(?P<continued>[ \t]*\\\n[ \t]*) | \\. | '[^']*' | "(?:\\.|[^"\\])*" |
    (?P<comment>(?<![^\s;&|(])\#[^\n]*) | <<< |
    <<(?P<tabs>-?)[ \t]*\\?(?P<quote>['"]?)(?P<document>[A-Za-z_]\w*)(?P=quote) |
    (?P<end>\n) | [ \t]+ | [^'"\\\s<\#]+ | [\s<\#]""",
    re.DOTALL | re.VERBOSE,
)
_MAX_EXCERPT_CHARS = 40  # characters of a command in an error
# How blocks begin, and how they end.
_BLOCKS = (
    (r"if\b", r"\bfi"),
    (r"(?:for|while|until|select)\b", r"\bdone"),
    (r"case\b", r"\besac"),
    (r"\(", r"\)"),
    (r"\{|function\b|[\w-]+\s*\(\)", r"\}"),
)
_AFTER_BLOCK = r"\s*(?:[;&|<>].*)?$"


class UnreadableScriptError(ValueError):
    """A script whose commands cannot be told apart.

    Attributes:
        line: Number of the line, from 1.
    """

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a script.

    Attributes:
        line: Number of its first line, from 1.
        text: All of it, continued lines joined; here-documents and texts in quotes as they are.
    """

    line: int
    text: str

    @property
    def is_unfinished_block(self) -> bool:
        """Whether it begins a loop, a condition or a function that does not end with it."""
        return any(
            re.match(begin, self.text) and not re.search(end + _AFTER_BLOCK, self.text, re.DOTALL)
            for begin, end in _BLOCKS
        )


@dataclass(slots=True)
class _Begun:
    """A command whose end is not reached yet."""

    first: int = 0
    pieces: list[str] = field(default_factory=list)

    def add(self, line: int, piece: str) -> None:
        if not self.pieces:
            self.first, piece = line, piece.lstrip()
        elif piece.isspace() and self.pieces[-1].isspace():
            return
        if piece:
            self.pieces.append(piece)

    def goes_on(self) -> bool:
        """Whether it cannot end at the line's end; drops the blanks there."""
        while self.pieces and self.pieces[-1].isspace():
            self.pieces.pop()
        return bool(self.pieces) and self.pieces[-1].endswith(("&&", "|"))

    def end(self) -> Iterator[Command]:
        """Yields it, if it is one, and begins another."""
        if text := "".join(self.pieces).strip():
            yield Command(self.first, text)
        self.pieces = []


def read_commands(script: str) -> Iterator[Command]:
    """Yields the commands of a script, without its comments.

    The lines of a loop, a condition or a function are commands of their own.

    Raises:
        UnreadableScriptError: A quote or a here-document does not end.
    """
    script = script.replace("\r\n", "\n") + "\n"
    position, line = 0, 1
    command = _Begun()
    documents: list[re.Match[str]] = []
    while position < len(script):
        token = _TOKEN.match(script, position)
        if token is None:
            excerpt = script[position : position + _MAX_EXCERPT_CHARS].split("\n")[0]
            raise UnreadableScriptError(line, f"the quote of {excerpt!r} has no end")
        if token["document"]:
            documents.append(token)
        if not token["end"]:
            command.add(line, _kept(token))
            position, line = token.end(), line + token[0].count("\n")
            continue
        joint = ("\n" if documents else " ") if command.goes_on() else ""
        position, line = token.end(), line + 1
        for document in documents:
            body = _body(script, position, document, line)
            command.add(line, f"\n{body[:-1]}")
            position, line = position + len(body), line + body.count("\n")
        documents = []
        if joint:
            command.add(line, joint)
        else:
            yield from command.end()
    yield from command.end()


def _kept(token: re.Match[str]) -> str:
    """Returns what stays of a token: line ends and the blanks around them become one blank."""
    if token["continued"]:
        return " " if len(token["continued"]) > len("\\\n") else ""
    return "" if token["comment"] else token[0]


def _body(script: str, position: int, document: re.Match[str], line: int) -> str:
    """Returns the lines of a here-document, the one that ends it too."""
    tabs = r"\t*" if document["tabs"] else ""
    end = re.compile(rf"^{tabs}{document['document']}\n", re.MULTILINE).search(script, position)
    if end is None:
        name = document["document"]
        raise UnreadableScriptError(line - 1, f"the here-document has no end {name!r}")
    return script[position : end.end()]
