"""The dialects whose calls are Python calls, ``edit(path="a.py")``, or Gemma's ``edit{path:…}``.

A small reader of literals takes both: strings, numbers, True or true, None or null, lists and
objects. Nothing is evaluated, and Python's own parser, which warns of escapes, stays out of it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.text.truncate import well_formed
from coding_gym.tools.formats.format import (
    Format,
    ParsedAction,
    Read,
    Reading,
    read_marked,
    templated,
)
from coding_gym.tools.formats.json_calls import Marks, read_call
from coding_gym.tools.formats.json_text import (
    MAX_CALLS,
    MAX_DEPTH,
    FormatError,
    decode,
    decode_whole,
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
_LISTS = {"[": "]", "(": ")"}


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

    def missing(self, wanted: str) -> FormatError:
        """Returns the error that something else stands next."""
        return FormatError(f"{wanted} is needed, got {self.text[self.position :][:20]!r}")

    def need(self, mark: str) -> None:
        """Steps over ``mark``."""
        if not self.take(mark):
            raise self.missing(mark)

    def items(self, closing: str) -> Iterator[None]:
        """Yields in front of each item of a list, and steps over commas and ``closing``."""
        while not self.take(closing):
            yield
            if not self.take(","):
                self.need(closing)
                return

    def name(self) -> str:
        """Returns the name that stands next."""
        self.take("")
        match = _NAME.match(self.text, self.position)
        if match is None:
            raise self.missing("a name")
        self.position = match.end()
        return match[0]

    def value(self, depth: int = 0) -> Any:
        """Returns the literal that stands next."""
        if depth > MAX_DEPTH:
            raise FormatError(f"it is nested more than {MAX_DEPTH} deep")
        if self.take("{"):
            return self.fields("}", ":", depth + 1)
        for opening, closing in _LISTS.items():
            if self.take(opening):
                return [self.value(depth + 1) for _ in self.items(closing)]
        string = self._string()
        return self._word() if string is None else string

    def _string(self) -> str | None:
        """Returns the string that stands next, if one does."""
        if self.quote:
            if not self.take(self.quote):
                return None
            start, end = self.position, self.text.find(self.quote, self.position)
            if end < 0:
                raise FormatError(f"a string is not closed by {self.quote}")
            self.position = end + len(self.quote)
            return self.text[start:end]
        strings = []
        while match := _STRING.match(self.text, self.position):
            content = next(group for group in match.groups()[1:] if group is not None)
            strings.append(content if match["prefix"] else _ESCAPE.sub(_unescaped, content))
            self.position = match.end()
            self.take("")
        return well_formed("".join(strings)) if strings else None

    def _word(self) -> Any:
        match = _WORD.match(self.text, self.position)
        word = match[0] if match else ""
        try:
            value = _WORDS[word] if word in _WORDS else decode_whole(word.lstrip("+"))
        except FormatError as error:
            raise self.missing("a value") from error
        self.position += len(word)
        return value

    def fields(self, closing: str, between: str, depth: int = 0) -> dict[str, Any]:
        """Returns keys and values up to ``closing``; a key is a name, in an object or a string."""
        fields: dict[str, Any] = {}
        for _ in self.items(closing):
            key = self._string() if between == ":" else None
            key = self.name() if key is None else key
            if key in fields:
                raise FormatError(f"the argument {key} is there twice")
            self.need(between)
            fields[key] = self.value(depth)
        return fields


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

    Those of plain text that ``auto`` reads must begin or end the reply, else prose displays them.
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
    """Reads the calls in tags, or in fences where there is no tag; None where there is neither."""
    return _read_python(_NANOAGENT if "<tool_call>" in text else _PYTHON_FENCE, text, reading)


def _python_calls(text: str, position: int) -> tuple[list[ToolCall], int]:
    """Returns the calls of a list, or those one after another, and where the text goes on."""
    reader = _Literals(text, "", position)
    calls: list[ToolCall] = []
    for _ in reader.items("]") if reader.take("[") else _lines(reader):
        if len(calls) == MAX_CALLS:
            raise FormatError(f"more than {MAX_CALLS} calls in one reply")
        name = reader.name()
        reader.need("(")
        calls.append(ToolCall(name, reader.fields(")", "=")))
    return calls, reader.position


def _lines(reader: _Literals) -> Iterator[None]:
    """Yields in front of each call of those that only blank space or semicolons part."""
    while True:
        yield
        reader.take(";")
        if not _NAME.match(reader.text, skip_space(reader.text, reader.position)):
            return


def _double_quoted(value: Any) -> str:
    """Returns a value as Python, its own quotes double, as in the prompts of small models."""
    return to_json(value) if isinstance(value, str) else repr(value)


def _python_fields(quoted: Callable[[Any], str], call: ToolCall, _index: int) -> Mapping[str, str]:
    arguments = (f"{key}={quoted(value)}" for key, value in call.arguments.items())
    return {"name": call.name, "arguments": ", ".join(arguments)}


# -- Gemma's calls --------------------------------------------------------------------------------


def _read_gemma(
    opening: str, closing: str, quote: str, text: str, reading: Reading
) -> ParsedAction | None:
    """Reads the calls between Gemma's marks; None where there is none."""

    def content(text: str, start: int) -> tuple[list[ToolCall], int]:
        reader = _Literals(text, quote, start + len(opening))
        reader.need("call")
        reader.need(":")
        name = reader.name()
        reader.need("{")
        fields = reader.fields("}", ":")
        reader.need(closing)
        schemas = reading.tools.properties(name)
        arguments = {key: _as_declared(fields[key], schemas.get(key, {})) for key in fields}
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
    if isinstance(value, Mapping):
        keys = ((key if _NAME.fullmatch(key) else f"{quote}{key}{quote}", key) for key in value)
        return f"{{{','.join(f'{text}:{_gemma_value(quote, value[key])}' for text, key in keys)}}}"
    return to_json(value)


def _gemma_fields(quote: str, call: ToolCall, _index: int) -> Mapping[str, str]:
    # Gemma 4's chat template sorts them.
    arguments = dict(sorted(call.arguments.items())) if quote == '<|"|>' else call.arguments
    return {"name": call.name, "arguments": _gemma_value(quote, arguments)}


# -- The formats ----------------------------------------------------------------------------------

_KNOWN = r"(?P<tool>[A-Za-z_][\w.-]*)\("


def _python(
    name: str,
    read: Read,
    around: tuple[str, str],
    sign: str,
    explained: str,
    quoted: Callable[[Any], str] = repr,
    **rest: Any,
) -> Format:
    return templated(
        name,
        read,
        "{name}({arguments})",
        partial(_python_fields, quoted),
        around=around,
        explained=f"Write the calls as Python calls with named arguments, {explained}.",
        sign=sign,
        **{"between": ", "} | rest,
    )


def _gemma(name: str, opening: str, closing: str, quote: str) -> Format:
    return templated(
        name,
        partial(_read_gemma, opening, closing, quote),
        f"{opening}call:{{name}}{{arguments}}{closing}",
        partial(_gemma_fields, quote),
        explained=f"Write each call between {opening} and {closing}, each string between {quote}.",
        sign=re.escape(opening),
    )


FORMATS = (
    _python(
        "pythonic",
        partial(_read_python, _BARE),
        ("[", "]"),
        rf"\[(?<=^\[)\s*{_KNOWN}|<\|python_start\|>",
        "in one list and nothing else",
        is_atomic=False,
    ),
    _python(
        "lfm2",
        partial(_read_python, _LFM2),
        ("<|tool_call_start|>[", "]<|tool_call_end|>"),
        r"<\|tool_call_start\|>",
        "in one list between <|tool_call_start|> and <|tool_call_end|>",
    ),
    _python(
        "smollm3_python",
        partial(_read_python, _CODE),
        ("<code>", "</code>"),
        rf"<code>(?<=^<code>)\s*{_KNOWN}",
        "between <code> and </code>",
        _double_quoted,
        between="\n",
        is_atomic=False,
    ),
    _python(
        "nanoagent_python",
        _read_nanoagent,
        ("<tool_call>[", "]</tool_call>"),
        rf"<tool_call>\s*(?:\[\s*[A-Za-z_]|{_KNOWN})",
        "in one list between <tool_call> and </tool_call>",
        _double_quoted,
    ),
    _gemma("gemma4", "<|tool_call>", "<tool_call|>", '<|"|>'),
    _gemma("functiongemma", "<start_function_call>", "<end_function_call>", "<escape>"),
)
