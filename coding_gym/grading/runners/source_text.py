"""Source text with its comments and texts blanked out, so that what is left can be searched."""

import re

_NOT_NEWLINE = re.compile(r"[^\n]")
_OPENING = {")": "(", "]": "[", "}": "{"}
# A `/` after one of these begins a regular expression of JavaScript, elsewhere it divides.
_BEFORE_REGEX = frozenset("(,=:[!&|?{};+-*%<>~^")
_WORDS_BEFORE_REGEX = frozenset(
    (
        "return",
        "typeof",
        "case",
        "in",
        "of",
        "void",
        "delete",
        "throw",
        "new",
        "else",
        "do",
        "await",
    )
)
_REGEX = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/[a-z]*")
_COMMENT = r"//[^\n]*|/\*.*?\*/"
_TEXT = r'"(?:\\.|[^"\\\n])*"'
_CHARACTER = r"'(?:\\.|[^'\\\n])*'"

C_LIKE = re.compile(f"{_COMMENT}|{_TEXT}|{_CHARACTER}", re.DOTALL)
JAVA = re.compile(rf'{_COMMENT}|"""(?:\\.|[^\\])*?"""|{_TEXT}|{_CHARACTER}', re.DOTALL)
# A quote may begin a lifetime, which has no end.
RUST = re.compile(
    rf'{_COMMENT}|\bb?r(#*)".*?"\1|{_TEXT.replace(chr(92) + "n", "")}'
    r"|'(?:\\(?:x..|u\{[^}]*\}|.)|[^'\\\n])'",
    re.DOTALL,
)


def blank(text: str, pattern: re.Pattern[str]) -> str:
    """Returns a text of the same length and lines in which matches are blanks.

    Args:
        text: The source.
        pattern: What comments and texts look like: `C_LIKE`, `JAVA` or `RUST`.
    """
    return pattern.sub(lambda match: _blanks(match[0]), text)


def blank_javascript(text: str) -> str:
    """Returns JavaScript likewise; what is inside ``${}`` of a template stays."""
    return _JavaScript(text).blanked()


def closing(blanked: str, at: int) -> int:
    """Returns where the bracket at ``at`` is closed, or -1.

    Args:
        blanked: A source without comments and texts.
        at: Where it opens.
    """
    stack = []
    for index in range(at, len(blanked)):
        char = blanked[index]
        if char in "([{":
            stack.append(char)
        elif char in ")]}":
            if not stack or stack.pop() != _OPENING[char]:
                return -1
            if not stack:
                return index
    return -1


def opening(blanked: str, at: int) -> int:
    """Returns where the bracket that closes at ``at`` was opened, or -1."""
    depth = 0
    for index in range(at, -1, -1):
        if blanked[index] in ")]}":
            depth += 1
        elif blanked[index] in "([{":
            depth -= 1
            if depth == 0:
                return index if blanked[index] == _OPENING[blanked[at]] else -1
    return -1


def _blanks(text: str) -> str:
    return _NOT_NEWLINE.sub(" ", text)


class _JavaScript:
    """Walks over JavaScript once, from left to right."""

    _PLAIN = re.compile(f"{_COMMENT}|{_TEXT}|{_CHARACTER}", re.DOTALL)
    _WORD = re.compile(r"[\w$]+")
    _TEMPLATE = re.compile(r"(?:\\.|\$(?!\{)|[^`\\$])*(`|\$\{)", re.DOTALL)

    def __init__(self, text: str) -> None:
        self._text = text
        self._parts: list[str] = []
        self._braces: list[str] = []  # "`" for one that a template holds
        self._before = ""  # the last word or sign

    def blanked(self) -> str:
        at = 0
        while at < len(self._text):
            at = self._step(at)
        return "".join(self._parts)

    def _step(self, at: int) -> int:
        char = self._text[at]
        if match := self._PLAIN.match(self._text, at):
            if char in "\"'":
                self._before = "text"
            return self._hide(match.end(), at)
        if char == "/" and self._may_be_regex() and (match := _REGEX.match(self._text, at)):
            self._before = "text"
            return self._hide(match.end(), at)
        if char == "`" or (char == "}" and self._braces[-1:] == ["`"]):
            if char == "}":
                self._braces.pop()
            return self._template(at)
        if char in "{}":
            self._braces = [*self._braces, "{"] if char == "{" else self._braces[:-1]
        return self._keep(at)

    def _template(self, at: int) -> int:
        """Hides a piece of a template: up to its end, or to the next value in it."""
        match = self._TEMPLATE.match(self._text, at + 1)
        if match is None:
            return self._hide(len(self._text), at)
        if match[1] == "`":
            self._before = "text"
        else:
            self._braces.append("`")
            self._before = "{"
        return self._hide(match.end(), at)

    def _keep(self, at: int) -> int:
        match = self._WORD.match(self._text, at)
        end = match.end() if match else at + 1
        kept = self._text[at:end]
        self._parts.append(kept)
        if not kept.isspace():
            self._before = kept
        return end

    def _hide(self, end: int, at: int) -> int:
        self._parts.append(_blanks(self._text[at:end]))
        return end

    def _may_be_regex(self) -> bool:
        before = self._before
        return not before or before in _BEFORE_REGEX or before in _WORDS_BEFORE_REGEX
