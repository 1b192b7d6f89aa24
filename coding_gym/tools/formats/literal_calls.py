"""The dialects whose calls are Python calls, ``edit(path="a.py")``, or Gemma's ``edit{path:…}``.

A small reader of literals takes both: strings, numbers, True or true, None or null, lists and
objects. Nothing is evaluated, and Python's own parser, which warns of escapes, stays out of it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.text.truncate import well_formed
from coding_gym.tools.formats.format import Format, KnownTools, ParsedAction, Reading, read_marked
from coding_gym.tools.formats.json_calls import Marks, read_call
from coding_gym.tools.formats.json_text import (
    MAX_CALLS,
    MAX_DEPTH,
    FormatError,
    decode,
    is_text,
    skip_space,
    to_json,
    typed,
    untyped,
)
from coding_gym.tools.schemas import Schema

_STRING = re.compile(
    r"(?P<prefix>[rR]?)(?:"
    r'"""(?P<a>(?:[^"\\]++|\\.|"(?!""))*+)"""'
    r"|'''(?P<b>(?:[^'\\]++|\\.|'(?!''))*+)'''"
    r'|"(?P<c>(?:[^"\\]++|\\.)*+)"'
    r"|'(?P<d>(?:[^'\\]++|\\.)*+)')",
    re.DOTALL,
)
_WORD = re.compile(r"[-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|\w+)")
_NAME = re.compile(r"[^\W\d][\w.-]*")
_ESCAPE = re.compile(
    r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|[0-7]{1,3}|.)", re.DOTALL
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "\n": ""}
_WORDS = {"True": True, "true": True, "False": False, "false": False, "None": None, "null": None}
_PAIRS = {"[": "]", "(": ")", "{": "}"}


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "xuU" and len(code) > 1:
        return chr(min(int(code[1:], 16), 0x10FFFF))
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _ESCAPES.get(code, code if code in "\\'\"" else match[0])


@dataclass(slots=True)
class _Literals:
    """Reads literals from one text.

    Attributes:
        text: The text.
        quote: What stands at both ends of a string; "" for Python's strings.
        position: How far it has been read.
    """

    text: str
    quote: str
    position: int

    def take(self, mark: str) -> bool:
        """Steps over blank space and then over ``mark``, where it stands there."""
        self.position = skip_space(self.text, self.position)
        if not self.text.startswith(mark, self.position):
            return False
        self.position += len(mark)
        return True

    def need(self, mark: str) -> None:
        """Steps over ``mark``, or raises FormatError."""
        if not self.take(mark):
            raise FormatError(f"{mark} is needed, got {self.text[self.position :][:20]!r}")

    def name(self) -> str:
        """Returns the name that stands next."""
        self.position = skip_space(self.text, self.position)
        match = _NAME.match(self.text, self.position)
        if match is None:
            raise FormatError(f"a name is needed, got {self.text[self.position :][:20]!r}")
        self.position = match.end()
        return match[0]

    def value(self, depth: int = 0) -> Any:
        """Returns the literal that stands next."""
        if depth > MAX_DEPTH:
            raise FormatError(f"it is nested more than {MAX_DEPTH} deep")
        for opening, closing in _PAIRS.items():
            if self.take(opening):
                return self._items(closing, depth + 1)
        if self.quote:
            return self._quoted()
        strings = []
        while match := _STRING.match(self.text, self.position):
            content = next(group for group in match.groups()[1:] if group is not None)
            strings.append(content if match["prefix"] else _ESCAPE.sub(_unescaped, content))
            self.position = match.end()
            self.take("")
        return well_formed("".join(strings)) if strings else self._word()

    def _quoted(self) -> Any:
        if not self.take(self.quote):
            return self._word()
        start, end = self.position, self.text.find(self.quote, self.position)
        if end < 0:
            raise FormatError(f"a string is not closed by {self.quote}")
        self.position = end + len(self.quote)
        return self.text[start:end]

    def _word(self) -> Any:
        match = _WORD.match(self.text, self.position)
        word = match[0] if match else ""
        if word in _WORDS:
            self.position += len(word)
            return _WORDS[word]
        try:
            value, end = decode(word.lstrip("+"))
        except FormatError:
            value, end = None, -1
        if end != len(word.lstrip("+")) or not word:
            raise FormatError(f"a value is needed, got {self.text[self.position :][:20]!r}")
        self.position += len(word)
        return value

    def _items(self, closing: str, depth: int) -> Any:
        """Returns the list or object that ``closing`` ends."""
        if closing == "}":
            return self.fields("}", ":", depth)
        items: list[Any] = []
        while not self.take(closing):
            items.append(self.value(depth))
            if not self.take(","):
                self.need(closing)
                break
        return items

    def fields(self, closing: str, between: str, depth: int = 0) -> dict[str, Any]:
        """Returns keys and values up to ``closing``; a key is a name or a string."""
        fields: dict[str, Any] = {}
        while not self.take(closing):
            is_string = self.text[self.position : self.position + 1] in ('"', "'") or (
                self.quote and self.text.startswith(self.quote, self.position)
            )
            key = self.value(depth) if is_string and between == ":" else self.name()
            if key in fields:
                raise FormatError(f"the argument {key} is there twice")
            self.need(between)
            fields[key] = self.value(depth)
            if not self.take(","):
                self.need(closing)
                break
        return fields

    def python_call(self) -> ToolCall:
        """Returns the call ``name(key=value, …)`` that stands next."""
        name = self.name()
        self.need("(")
        return ToolCall(name, self.fields(")", "="))


# -- Python calls ---------------------------------------------------------------------------------


_BARE = Marks(
    r"^(?=\[\s*[^\W\d][\w.-]*\()|<\|python_start\|>", "", "]", r"(?:\s*<\|python_end\|>)?"
)
_LFM2 = Marks(r"<\|tool_call_start\|>", "", "<|tool_call_end|>")
_CODE = Marks("<code>", "", "</code>")
_NANOAGENT = Marks("<tool_call>", "", "</tool_call>")
_PYTHON_FENCE = Marks("^```(?:python|py)$", "", "```")


def _read_python(marks: Marks, text: str, reading: Reading) -> ParsedAction | None:
    """Reads the Python calls behind all marks; None where there is none.

    Raises:
        FormatError: They cannot be read, or prose that ``auto`` reads only shows them.
    """
    spans: list[tuple[int, int]] = []

    def content(text: str, start: int) -> tuple[list[ToolCall], int]:
        head = marks.head.match(text, start)
        position = head.end() if head else start
        if text.startswith(("{", "[{"), position) and not reading.exact:
            value, end = decode(text, position, loose=reading.forgives)
            calls = [read_call(item) for item in (value if isinstance(value, list) else [value])]
        else:
            calls, end = _python_calls(text, position)
        closed = marks.closing.match(text, end)
        if closed is None:
            raise FormatError(f"{marks.end} is missing, got {text[end:][:20]!r}")
        spans.append((start, closed.end()))
        return calls, closed.end()

    parsed = read_marked(text, marks.opening, content, marks.around)
    is_plain = marks in (_BARE, _CODE) and "<|python_start|>" not in text
    if parsed and is_plain and not reading.alone:
        allowed = [text[: spans[0][0]].strip()]  # all prose stands in front,
        if marks is _BARE:
            allowed.append(text[spans[-1][1] :].strip())  # or behind
        if parsed.text not in allowed:
            raise FormatError("other text stands around the calls")
    return parsed


def _read_nanoagent(text: str, reading: Reading) -> ParsedAction | None:
    """Reads the calls in tags, or in fences where there is no tag; None where there is neither.

    Raises:
        FormatError: They cannot be read.
    """
    marks = _NANOAGENT if "<tool_call>" in text else _PYTHON_FENCE
    return _read_python(marks, text, reading)


def _python_calls(text: str, position: int) -> tuple[list[ToolCall], int]:
    """Returns the calls of a list, or those one after another, and where the text goes on."""
    reader = _Literals(text, "", position)
    calls: list[ToolCall] = []
    is_list = reader.take("[")
    while not (is_list and reader.take("]")):
        if len(calls) == MAX_CALLS:
            raise FormatError(f"more than {MAX_CALLS} calls in one reply")
        calls.append(reader.python_call())
        if is_list and not reader.take(","):
            reader.need("]")
            break
        if not is_list:
            reader.take(";")
            if not _NAME.match(text, skip_space(text, reader.position)):
                break
    return calls, reader.position


def _double_quoted(value: Any) -> str:
    """Returns a value as Python, its own quotes double, as in the prompts of small models."""
    return to_json(value) if isinstance(value, str) else repr(value)


def _write_python(
    opening: str, closing: str, between: str, calls: Sequence[ToolCall], _tools: KnownTools
) -> str:
    is_double = opening.startswith(("<code>", "<tool_call>"))
    quoted = _double_quoted if is_double else repr
    written = []
    for call in calls:
        arguments = (f"{key}={quoted(value)}" for key, value in call.arguments.items())
        written.append(f"{call.name}({', '.join(arguments)})")
    return f"{opening}{between.join(written)}{closing}" if calls else ""


# -- Gemma's calls --------------------------------------------------------------------------------


def _read_gemma(
    opening: str, closing: str, quote: str, text: str, reading: Reading
) -> ParsedAction | None:
    """Reads the calls between Gemma's marks; None where there is none.

    Raises:
        FormatError: They cannot be read.
    """

    def content(text: str, start: int) -> tuple[list[ToolCall], int]:
        reader = _Literals(text, quote, start + len(opening))
        reader.need("call")
        reader.need(":")
        name = reader.name()
        reader.need("{")
        fields = reader.fields("}", ":")
        reader.need(closing)
        schemas = reading.tools.properties(name)
        arguments = {
            key: _as_declared(value, schemas.get(key, {})) for key, value in fields.items()
        }
        return [ToolCall(name, arguments)], reader.position

    return read_marked(text, re.compile(re.escape(opening)), content)


def _as_declared(value: Any, schema: Schema) -> Any:
    """Returns a value by the type of its argument, whether it was quoted or not."""
    if isinstance(value, str):
        return typed(value, schema)
    return untyped(value) if is_text(schema) and value is not None else value


def _gemma_value(quote: str, value: Any) -> str:
    if isinstance(value, str):
        return f"{quote}{value}{quote}"
    if isinstance(value, list):
        return f"[{','.join(_gemma_value(quote, item) for item in value)}]"
    if isinstance(value, dict):
        keys = ((key if _NAME.fullmatch(key) else f"{quote}{key}{quote}", key) for key in value)
        return f"{{{','.join(f'{text}:{_gemma_value(quote, value[key])}' for text, key in keys)}}}"
    return to_json(value)


def _write_gemma(
    opening: str, closing: str, quote: str, calls: Sequence[ToolCall], _tools: KnownTools
) -> str:
    is_sorted = quote == _GEMMA4[2]  # as its chat template sorts them
    return "".join(
        f"{opening}call:{call.name}{_gemma_value(quote, arguments)}{closing}"
        for call in calls
        for arguments in [dict(sorted(call.arguments.items()) if is_sorted else call.arguments)]
    )


# -- The formats ----------------------------------------------------------------------------------

_KNOWN = r"(?P<tool>[A-Za-z_][\w.-]*)\("
_GEMMA4 = ("<|tool_call>", "<tool_call|>", '<|"|>')
_FUNCTION_GEMMA = ("<start_function_call>", "<end_function_call>", "<escape>")


def _python(
    name: str,
    read: Callable[[str, Reading], ParsedAction | None],
    written: tuple[str, str, str],
    sign: str,
    explained: str,
    *,
    is_atomic: bool = True,
) -> Format:
    opening, closing, _ = written
    quote = '"' if opening.startswith(("<code>", "<tool_call>")) else "'"
    return Format(
        name=name,
        read=read,
        write=partial(_write_python, *written),
        expected=f"{opening}TOOL(NAME={quote}value{quote}){closing}",
        explained=f"Write the calls as Python calls with named arguments, {explained}.",
        sign=sign,
        is_atomic=is_atomic,
    )


def _gemma(name: str, marks: tuple[str, str, str]) -> Format:
    opening, closing, quote = marks
    return Format(
        name=name,
        read=partial(_read_gemma, *marks),
        write=partial(_write_gemma, *marks),
        expected=f"{opening}call:TOOL{{NAME:{quote}value{quote}}}{closing}",
        explained=f"Write each call between {opening} and {closing}, each string between {quote}.",
        sign=re.escape(opening),
    )


FORMATS = (
    _python(
        "pythonic",
        partial(_read_python, _BARE),
        ("[", "]", ", "),
        rf"\[(?<=^\[)\s*{_KNOWN}|<\|python_start\|>",
        "in one list and nothing else",
        is_atomic=False,
    ),
    _python(
        "lfm2",
        partial(_read_python, _LFM2),
        ("<|tool_call_start|>[", "]<|tool_call_end|>", ", "),
        r"<\|tool_call_start\|>",
        "in one list between <|tool_call_start|> and <|tool_call_end|>",
    ),
    _python(
        "smollm3_python",
        partial(_read_python, _CODE),
        ("<code>", "</code>", "\n"),
        rf"<code>(?<=^<code>)\s*{_KNOWN}",
        "between <code> and </code>",
        is_atomic=False,
    ),
    _python(
        "nanoagent_python",
        _read_nanoagent,
        ("<tool_call>[", "]</tool_call>", ", "),
        rf"<tool_call>\s*(?:\[\s*[A-Za-z_]|{_KNOWN})",
        "in one list between <tool_call> and </tool_call>",
    ),
    _gemma("gemma4", _GEMMA4),
    _gemma("functiongemma", _FUNCTION_GEMMA),
)
