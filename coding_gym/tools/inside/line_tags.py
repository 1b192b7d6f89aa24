"""Definitions and uses of names, read line by line with regular expressions.

For languages that the sandbox has no parser for, and for Python that does not parse. Each line is
matched on its own and cut first, so that no line can take long.
"""

from __future__ import annotations

import re

_MAX_LINE_CHARS = 300
_MAX_LINES = 20_000
_NAME = r"(?P<name>[A-Za-z_$][\w$]*)"
_MODIFIERS = (
    r"(?:(?:public|private|protected|internal|static|final|abstract|override|open|sealed|data"
    r"|async|export|default|declare|virtual|inline|pub(?:\([^)]{0,30}\))?|unsafe|const|extern"
    r"|synchronized|readonly|suspend|case|implicit|partial)\s+){0,6}"
)
_CLASS = r"(?:class|interface|enum|trait|struct|object|record|union|module|namespace|protocol)"
_TYPED = r"[A-Za-z_][\w<>\[\],.?:]*[\s*&]+(?:[A-Za-z_][\w:<>]*::)?"
_CLASS_LINE = rf"^\s*{_MODIFIERS}{_CLASS}\s+{_NAME}"
_TYPED_FUNCTION = rf"^\s*{_MODIFIERS}{_TYPED}{_NAME}\s*\([^;]*$"
_DEFINITIONS = {
    "python": [
        ("class", rf"^\s*class\s+{_NAME}"),
        ("function", rf"^\s*(?:async\s+)?def\s+{_NAME}"),
    ],
    "javascript": [
        ("class", rf"^\s*{_MODIFIERS}(?:class|interface|enum|type|namespace)\s+{_NAME}"),
        ("function", rf"^\s*{_MODIFIERS}function\s*\*?\s*{_NAME}"),
        ("function", rf"^\s+{_MODIFIERS}(?:get\s+|set\s+)?#?{_NAME}\s*\([^()]*\)[^(;]*\{{\s*$"),
        ("variable", rf"^(?:export\s+)?(?:const|let|var)\s+{_NAME}\s*[=:]"),
    ],
    "java": [
        ("class", _CLASS_LINE),
        ("function", rf"^\s*{_MODIFIERS}(?:fun|def|func)\s+(?:<[^>]*>\s*)?{_NAME}"),
        ("function", _TYPED_FUNCTION),
    ],
    "go": [
        ("function", rf"^func\s+(?:\([^)]*\)\s*)?{_NAME}"),
        ("class", rf"^type\s+{_NAME}"),
        ("variable", rf"^(?:var|const)\s+{_NAME}"),
    ],
    "rust": [
        ("function", rf"^\s*{_MODIFIERS}fn\s+{_NAME}"),
        ("class", rf"^\s*{_MODIFIERS}(?:struct|enum|trait|union|type|mod)\s+{_NAME}"),
        ("variable", rf"^\s*(?:pub\s+)?(?:const|static)\s+{_NAME}"),
        ("function", rf"^\s*macro_rules!\s+{_NAME}"),
    ],
    "c": [
        ("class", rf"^\s*(?:typedef\s+)?{_CLASS}\s+{_NAME}[^;]*$"),
        ("variable", rf"^\s*#\s*define\s+{_NAME}"),
        ("function", rf"^{_MODIFIERS}{_TYPED}{_NAME}\s*\([^;]*$"),
    ],
    "ruby": [
        ("class", rf"^\s*(?:class|module)\s+{_NAME}"),
        ("function", rf"^\s*def\s+(?:self\.)?{_NAME}"),
    ],
    "php": [
        ("class", rf"^\s*{_MODIFIERS}(?:class|interface|trait|enum)\s+{_NAME}"),
        ("function", rf"^\s*{_MODIFIERS}function\s+&?{_NAME}"),
    ],
}
_COMPILED = {
    language: [(kind, re.compile(pattern)) for kind, pattern in patterns]
    for language, patterns in _DEFINITIONS.items()
}
_NO_TYPES = ("return", "else", "new")
_KEYWORDS = frozenset(  # of any of them
    re.findall(
        r"\w+",
        "if else for while do switch case catch return new throw try typeof sizeof function "
        "await yield in of delete void using lock foreach elif except import from package "
        "with assert not and or let var const true false null None True False this self super "
        "static public private int float double char bool boolean string def class end fn "
        "func struct enum use impl ",
    )
)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"' + r"|'(?:[^'\\]|\\.)*'")
_IDENTIFIER = re.compile(r"\.?[A-Za-z_$][\w$]*")


def line_tags(
    lines: list[str], language: str
) -> tuple[list[tuple[int, str, str]], list[tuple[int, str]]]:
    """Returns the definitions (line, name, kind) and the uses (line, name) of a file."""
    definitions, uses = [], []
    comment = "#" if language in ("python", "ruby") else "//"
    for number, whole in enumerate(lines[:_MAX_LINES], 1):
        line = _QUOTED.sub('""', whole[:_MAX_LINE_CHARS]).partition(comment)[0]
        if not line.strip() or line.lstrip().startswith(("*", "/*")):
            continue
        defined = _definition(line, language)
        if defined:
            definitions.append((number, *defined))
        uses += [
            (number, name)
            for name in _IDENTIFIER.findall(line)
            if name not in _KEYWORDS and (not defined or name != defined[0])
        ]
    return definitions, uses


def _definition(line: str, language: str) -> tuple[str, str] | None:
    first = line.split(None, 1)[0]
    for kind, pattern in _COMPILED[language]:
        match = pattern.match(line)
        if (
            match
            and match.group("name") not in _KEYWORDS
            and first not in ("return", "else", "new")
        ):
            return match.group("name"), kind
    return None
