"""Reads Python-like calls, ``edit(path="a.py")``, and Gemma's calls, ``call:edit{path:…}``.

Lexical tokens become JSON, whose decoder checks the grammar; only string literals are evaluated.
An invalid escape is an error, as in JSON.
"""

import re
from functools import cache
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.syntax import literal_eval
from coding_gym.tools.formats.format import Format, Piece, match_at
from coding_gym.tools.formats.json_calls import read_call
from coding_gym.tools.formats.json_text import FormatError, bad_escape, decode_whole, to_json
from coding_gym.tools.schemas import KnownTools

_QUOTE = '<|"|>'  # Gemma's quotation mark
BARE = r"\[(?=\s*[^\W\d][\w.-]*\()"
"""Pattern of the beginning of Python-like calls without marks, at the start of a line."""

_NAME = r"[^\W\d][\w.-]*"
_STRING = (
    r"(?P<raw>[rR]?)(?:"
    r'"""(?:[^"\\]++|\\.|"(?!""))*+"""'
    r"|'''(?:[^'\\]++|\\.|'(?!''))*+'''"
    r'|"(?:[^"\\\n]++|\\.)*+"'
    r"|'(?:[^'\\\n]++|\\.)*+')"
)
_REST = r"|,\s*(?=[)\]}])|(?P<word>[-+]?\d[\d.]*+(?:[eE][-+]?\d++)?|\w++)|(?P<mark>[\[\](){},:]))"
_ESCAPE = re.compile(r"\\([0-7abfnrtvxuUN\\'\"\n]?)")
_WORDS = {"True": "true", "False": "false", "None": "null"}
# For each opening bracket, the closing bracket in the text and in the JSON; a tuple becomes a list.
_CLOSERS = {"(": (")", "]"), "[": ("]", "]"), "{": ("}", "}")}


@cache
def _tokens(*, is_gemma: bool) -> re.Pattern[str]:
    """Returns the pattern of a lexical token in Python-like calls, or in Gemma's calls."""
    if is_gemma:
        string = rf"{re.escape(_QUOTE)}(?P<text>.*?){re.escape(_QUOTE)}"
        call, key = rf"call\s*:\s*(?P<call>{_NAME})\s*\{{", rf"(?P<key>{_NAME})\s*:"
    else:
        string = _STRING
        call, key = rf"(?P<call>{_NAME})\s*\(", rf"(?P<key>{_NAME})\s*="
    return re.compile(rf"\s*(?:(?P<string>{string})|{call}|{key}{_REST}", re.DOTALL)


def _read_calls(text: str, position: int, *, is_gemma: bool = False) -> tuple[list[ToolCall], int]:
    """Returns the calls of a list, or a single call as a list, and the position after them.

    A call in a list can also be a JSON object, as LFM2 models write it on request.
    """
    start = position
    parts: list[str] = []  # pieces of the calls' JSON text
    closers: list[tuple[str, str]] = []
    while not parts or closers:
        token = _tokens(is_gemma=is_gemma).match(text, position)
        if token is None:
            raise FormatError.at("a value or a bracket is needed", text, position)
        position, mark = token.end(), token["mark"]
        if token["call"]:
            if any(pair != _CLOSERS["["] for pair in closers):
                raise FormatError.at("a call must not be inside another call", text, position)
            parts.append(f'{{"name": {to_json(token["call"])}, "arguments": {{')
            closers.append(("}" if is_gemma else ")", "}}"))
        elif not closers and mark != "[":
            raise FormatError.at("a call or a list of calls is needed", text, token.start())
        elif mark and mark in _CLOSERS:
            parts.append("[" if mark == "(" else mark)
            closers.append(_CLOSERS[mark])
        elif mark and mark in ")]}":
            closer, json_closer = closers.pop()
            if mark != closer:
                raise FormatError.at(f"{closer} is needed", text, position - 1)
            parts.append(json_closer)
        else:
            parts.append(_json_token(token, mark))
    try:
        value = decode_whole("".join(parts))
    except FormatError as error:  # the error's position refers to the JSON text
        rule = str(error).partition(", at ")[0]
        raise FormatError.at(f"{rule}; each argument has a name", text, start) from None
    items = value if isinstance(value, list) else [value]
    return [read_call(item) for item in items], position


def _json_token(token: re.Match[str], mark: str | None) -> str:
    """Converts a string, a key, a word, a comma or a colon to JSON text."""
    groups = token.groupdict()
    if groups["string"] is not None:
        content = groups.get("text")
        return to_json(_literal(token["string"], token["raw"]) if content is None else content)
    if token["key"]:
        return f"{to_json(token['key'])}: "
    word = token["word"] or ""
    if word.isidentifier() and word not in (*_WORDS, *_WORDS.values()):
        raise FormatError.at("a value must be a literal", token.string, token.start("word"))
    return mark or f" {_WORDS.get(word, word.lstrip('+'))}"


def _literal(string: str, raw: str) -> Any:
    """Returns the value of a string in Python's quotes."""
    for escape in () if raw else _ESCAPE.finditer(string):
        if not escape[1]:  # Python only warns about an unknown escape
            raise bad_escape(string, escape.start(), "Python")
    try:
        # Python treats a carriage return in source as the end of a line.
        return literal_eval(string if raw else string.replace("\r", "\\r"))
    except (SyntaxError, ValueError) as error:
        raise FormatError(getattr(error, "msg", str(error))) from None


def read_python(row: Format, text: str, start: int, _tools: KnownTools) -> Piece:
    """Reads a list of calls, or calls one after another, from the mark at ``start``."""
    opening, is_gemma = match_at(row.opens, text, start), row.body == "gemma"
    calls, position = _read_calls(text, opening.end() if opening else start, is_gemma=is_gemma)
    while not (closing := match_at(rf"[\s;]*(?:{row.closes})", text, position)):
        position += text.startswith(";", position)
        next_calls, position = _read_calls(text, position, is_gemma=is_gemma)
        calls += next_calls
    return Piece(calls, closing.end())


def read_bare(
    text: str, start: int, tools: KnownTools, *, requires_known_tool: bool
) -> Piece | None:
    """Reads a list of calls without marks; None if the first tool must be known but is unknown."""
    name = match_at(rf"\[\s*(?P<name>{_NAME})", text, start)
    if requires_known_tool and not (name and tools.resolve(name["name"]) in tools.names):
        return None
    return Piece(*_read_calls(text, start))
