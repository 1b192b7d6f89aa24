"""The tag dialects: a call in tags, with a tag for each argument and its value as plain text.

One reader takes them all; a row of `_Tags` says how a dialect spells its tags. A value is the text
between its tags; the tool's schema gives it a type. Where a dialect puts values on lines of their
own, one line end at each side belongs to the tags, as in vLLM's and SGLang's ``qwen3_coder``
parsers; OpenHands and SWE-agent strip all blank space, which loses the indentation of an edit.
"""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.format import Format, KnownTools, ParsedAction, Reading, read_marked
from coding_gym.tools.formats.json_calls import named_call
from coding_gym.tools.formats.json_text import (
    MAX_DEPTH,
    FormatError,
    decode,
    skip_space,
    typed,
    untyped,
)
from coding_gym.tools.schemas import Schema

_TYPES = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    type(None): "null",
    list: "array",
}


@dataclass(frozen=True, kw_only=True)
class _Tags:
    """How a dialect spells its tags; all but the templates are regular expressions.

    Attributes:
        call: The tag that opens a call, with a group ``name``.
        argument: The tag that opens an argument, with a group ``key``, and a group ``kind`` where
            it says ``true`` or ``string`` of a string and something else of any other value.
        value_end: The tag that closes an argument.
        call_end: The tag that closes a call.
        outer: The tags around one call, which may be missing: what opens and what closes them.
        around: The tags around all calls.
        on_lines: Whether one line end at each side of a value belongs to the tags.
        may_lack_end: Whether a server may have removed ``call_end``, being the stop string.
        needs_outer: Whether strict reading asks for the outer tags, or for their absence; None
            where there are none.
        unescapes: Whether names and keys are escaped as in HTML.
        nests: Whether lists and objects are tags inside tags.
        write_call: The template of a call, with ``name``, ``arguments`` and ``index``.
        write_argument: The template of an argument: ``key``, ``value``, ``kind``, ``is_string``.
        write_around: The text around all calls; the first may use the ``name`` of the first call.
    """

    call: str
    argument: str
    value_end: str
    call_end: str
    outer: tuple[str, str] = ("", "")
    around: str = ""
    on_lines: bool = False
    may_lack_end: bool = False
    needs_outer: bool | None = None
    unescapes: bool = False
    nests: bool = False
    write_call: str
    write_argument: str
    write_around: tuple[str, str] = ("", "")

    @cached_property
    def opening(self) -> re.Pattern[str]:
        """Finds a call, or the outer tag right in front of it."""
        outer = f"(?P<outer>{self.outer[0]}\\s*)?" if self.outer[0] else "(?P<outer>(?!))?"
        mark = self.call.partition("(?P<name>")[0]
        return re.compile(f"{outer}(?={mark})")

    @cached_property
    def head(self) -> re.Pattern[str]:
        """Matches the tag that opens a call."""
        return re.compile(self.call)

    @cached_property
    def parameter(self) -> re.Pattern[str]:
        """Matches the tag that opens an argument."""
        return re.compile(rf"\s*+{self.argument}")

    @cached_property
    def end(self) -> re.Pattern[str]:
        """Matches the tag that closes a call."""
        return re.compile(rf"\s*+{self.call_end}")

    @cached_property
    def outer_end(self) -> re.Pattern[str]:
        """Matches the outer tag behind a call; nothing where the dialect has none."""
        return re.compile(rf"\s*{self.outer[1] or '(?!)'}")

    @cached_property
    def behind(self) -> re.Pattern[str]:
        """Matches what may stand behind a value's closing tag; text inside a value does not."""
        call = _unnamed(self.call)
        ends = "|".join(part for part in (*self.outer, self.call_end) if part)
        return re.compile(rf"\s*+(?:{_unnamed(self.argument)}|{call}|{ends}|</?\w*\Z|\Z)")

    @cached_property
    def next_tag(self) -> re.Pattern[str]:
        """Finds what may end a value, the last three at the start of a line.

        They are its closing tag, or else the next tag where the closing one was forgotten.
        """
        outer = "".join(f"|{part}" for part in self.outer if part)
        return re.compile(
            rf"(?P<close>{self.value_end})|\n[ \t]*(?:{self.argument}|{self.call})"
            rf"|\n[ \t]*(?P<end>{self.call_end})(?=\s*(?:\Z{outer}|{_unnamed(self.call)}))"
        )

    @cached_property
    def section(self) -> re.Pattern[str] | None:
        """Finds the tags around all calls."""
        return re.compile(self.around) if self.around else None


def _unnamed(pattern: str) -> str:
    return re.sub(r"\?P<\w+>", "?:", pattern)


def _read(tags: _Tags, text: str, reading: Reading) -> ParsedAction | None:
    """Reads all calls; None where there is none.

    Raises:
        FormatError: One cannot be read.
    """
    return read_marked(text, tags.opening, partial(_read_call, tags, reading), tags.section)


def _read_call(tags: _Tags, reading: Reading, text: str, start: int) -> tuple[list[ToolCall], int]:
    """Returns the call whose tags begin at ``start``, and where the text goes on."""
    opened = tags.opening.match(text, start)
    has_outer = bool(opened and opened["outer"])
    if reading.exact and tags.needs_outer is not None and has_outer != tags.needs_outer:
        wanted = "is missing" if tags.needs_outer else "must not stand"
        raise FormatError(f"<tool_call> {wanted} in front of the call")
    start = opened.end() if opened else start
    head = tags.head.match(text, start)
    name = head["name"].strip() if head else ""
    if head is None or not name:
        raise FormatError(f"{_tag_of_call(tags)} is needed, got {text[start:][:20]!r}")
    name = html.unescape(name) if tags.unescapes else name
    body = skip_space(text, head.end())
    if text.startswith("{", body) and not reading.exact:
        value, position = decode(text, body, loose=reading.forgives)
        call = named_call(name, value)
    else:
        arguments, position = _read_arguments(tags, reading, text, head.end(), name)
        call = ToolCall(name, arguments)
    position = _read_end(tags, reading, text, position)
    closed = tags.outer_end.match(text, position)
    if reading.exact and tags.needs_outer and closed is None:
        raise FormatError("</tool_call> is missing behind the call")
    return [call], closed.end() if closed else position


def _read_arguments(
    tags: _Tags, reading: Reading, text: str, position: int, name: str
) -> tuple[dict[str, Any], int]:
    """Returns the arguments of a call, and where the text goes on."""
    schemas = reading.tools.properties(name)
    arguments: dict[str, Any] = {}
    while parameter := tags.parameter.match(text, position):
        key = parameter["key"].strip()
        key = html.unescape(key) if tags.unescapes else key
        if not key or key in arguments:
            raise FormatError(
                f"the argument {key} is there twice"
                if key
                else "the tag of an argument needs a name"
            )
        schema = schemas.get(key, {})
        if tags.nests and text.startswith(f"{_M3}<", parameter.end()):
            arguments[key], position = _read_nested(text, parameter.end(), key, schema, 0)
            continue
        value, position = _read_value(tags, reading, text, parameter, schemas)
        kind = parameter.groupdict().get("kind")
        is_string = None if kind is None else kind in ("true", "string")
        arguments[key] = typed(value, schema, is_string=is_string)
    return arguments, position


def _read_value(
    tags: _Tags, reading: Reading, text: str, parameter: re.Match[str], schemas: Mapping[str, Any]
) -> tuple[str, int]:
    """Returns the text of a value, and where the text goes on.

    It ends at the first closing tag behind which another tag or nothing stands. Where a line
    begins with the tag of another of the tool's arguments or of another tool before that, the
    closing tag was forgotten: the second attempt ends it there.
    """
    start = parameter.end()
    first: tuple[int, int] | None = None
    for tag in tags.next_tag.finditer(text, start):
        key, name = tag["key"], tag["name"]
        if tag["close"] and tags.behind.match(text, tag.end()):
            return _value(tags, text[start : tag.start()]), tag.end()
        if tag["close"]:
            first = first or tag.span()
        elif (key is not None and key.strip() in schemas) or (tag["end"] and tags.may_lack_end):
            if reading.forgives:
                return _value(tags, text[start : tag.start() + 1]), tag.start() + 1
            if key is not None:
                break
        elif name is not None and name.strip() in reading.tools.names:
            break
    if first:
        return _value(tags, text[start : first[0]]), first[1]
    raise FormatError(f"a value is not closed by {_plain(tags.value_end)}")


def _value(tags: _Tags, value: str) -> str:
    return value.removeprefix("\n").removesuffix("\n") if tags.on_lines else value


def _plain(pattern: str) -> str:
    """Returns the text that a simple regular expression matches, for messages."""
    return re.sub(r"\(\?P<\w+>[^)]*\)", "KEY", pattern).replace(" ?", "").replace("\\", "")


def _read_end(tags: _Tags, reading: Reading, text: str, position: int) -> int:
    """Returns where a call ends; the second attempt also ends it with the text."""
    if closing := tags.end.match(text, position):
        return closing.end()
    rest = skip_space(text, position)
    end = _plain(tags.call_end)
    if reading.forgives and tags.may_lack_end:
        if end.startswith(text[rest : rest + len(end)]):
            return len(text)  # servers remove the tag, or half of it, when it is the stop string
        if tags.opening.match(text, rest) or text.startswith("</tool_call>", rest):
            return rest
    raise FormatError(f"{_tag_of_argument(tags)} or {end} is needed, got {text[rest:][:20]!r}")


def _tag_of_call(tags: _Tags) -> str:
    tag = tags.write_call.partition("{arguments}")[0].format(name="NAME", index=1)
    return " ".join(tag.split("\n")).strip()


def _tag_of_argument(tags: _Tags) -> str:
    return (
        tags.write_argument.partition("{value}")[0]
        .strip()
        .format(key="KEY", kind="string", is_string="true")
    )


def _write(tags: _Tags, calls: Sequence[ToolCall], _tools: KnownTools) -> str:
    """Writes calls by the templates of a dialect."""
    written = []
    for i, call in enumerate(calls):
        arguments = "".join(_write_argument(tags, *item) for item in call.arguments.items())
        name = _escaped(tags, call.name)
        written.append(tags.write_call.format(name=name, arguments=arguments, index=i + 1))
    if not written:
        return ""
    opened, closed = tags.write_around
    between = "\n" if "\n" in tags.write_call and not opened else ""
    return opened.format(name=calls[0].name) + between.join(written) + closed


def _write_argument(tags: _Tags, key: str, value: Any) -> str:
    plain = _nested(value) if tags.nests else untyped(value)
    template = tags.write_argument
    if tags is _SWE and "\n" in plain:
        template = _QWEN.write_argument
    return template.format(
        key=_escaped(tags, key),
        value=plain,
        kind=_TYPES.get(type(value), "object"),
        is_string="true" if isinstance(value, str) else "false",
    )


def _escaped(tags: _Tags, text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;") if tags.unescapes else text


# -- MiniMax M3's nested values -------------------------------------------------------------------

_M3 = "]<]minimax[>["
_M3_TAG = re.compile(r"\s*\]<\]minimax\[>\[<(/?)([^<>\s]+)>")
_EMPTY: Schema = {}


def _read_nested(text: str, start: int, key: str, schema: Schema, depth: int) -> tuple[Any, int]:
    """Returns the value in the tag ``key`` opened before ``start``, and where the text goes on.

    Raises:
        FormatError: A tag is not closed, or there are too many inside each other.
    """
    if depth > MAX_DEPTH:
        raise FormatError(f"it is nested more than {MAX_DEPTH} deep")
    fields: list[tuple[str, Any]] = []
    position = start
    while (tag := _M3_TAG.match(text, position)) and not tag[1]:
        inner = schema.get("items", _EMPTY) if tag[2] == "item" else _EMPTY
        inner = schema.get("properties", _EMPTY).get(tag[2], inner)
        value, position = _read_nested(text, tag.end(), tag[2], inner, depth + 1)
        fields.append((tag[2], value))
    end = f"{_M3}</{key}>"
    if not fields:
        close = text.find(_M3, start)
        if close < 0 or not text.startswith(end, close):
            raise FormatError(f"a value is not closed by {end}")
        leaf = text[start:close]
        return typed(leaf, schema, is_string=None if schema else False), close + len(end)
    if tag is None or tag[2] != key:
        raise FormatError(f"a value is not closed by {end}")
    if all(name == "item" for name, _ in fields):
        return [value for _, value in fields], tag.end()
    return dict(fields), tag.end()


def _nested(value: Any) -> str:
    """Returns a value as MiniMax M3 writes it: lists and objects as tags, but for empty ones."""
    if isinstance(value, (list, Mapping)) and value:
        pairs = value.items() if isinstance(value, Mapping) else (("item", item) for item in value)
        return "".join(f"{_M3}<{key}>{_nested(item)}{_M3}</{key}>" for key, item in pairs)
    return untyped(value)


# -- The formats ----------------------------------------------------------------------------------

_NAME = r"[^<>\n]*"
_QWEN = _Tags(
    call=f"<function=(?P<name>{_NAME})>",
    argument=f"<parameter=(?P<key>{_NAME})>",
    value_end="</parameter>",
    call_end="</function>",
    outer=("<tool_call>", "</tool_call>"),
    on_lines=True,
    may_lack_end=True,
    needs_outer=True,
    write_call="<tool_call>\n<function={name}>\n{arguments}</function>\n</tool_call>",
    write_argument="<parameter={key}>\n{value}\n</parameter>\n",
)
_SWE = _Tags(
    call=_QWEN.call,
    argument=_QWEN.argument,
    value_end=_QWEN.value_end,
    call_end=_QWEN.call_end,
    outer=_QWEN.outer,
    on_lines=True,
    may_lack_end=True,
    needs_outer=False,
    write_call="<function={name}>\n{arguments}</function>",
    write_argument="<parameter={key}>{value}</parameter>\n",
)


def _glm(write_call: str, write_argument: str) -> _Tags:
    return _Tags(
        call=r"<tool_call>\s*(?P<name>[^<>\s]+)",
        argument=r"<arg_key>(?P<key>[^<>\n]*)</arg_key>\s*<arg_value>",
        value_end="</arg_value>",
        call_end="</tool_call>",
        write_call=write_call,
        write_argument=write_argument,
    )


def _invoke(
    prefix: str,
    around: str,
    write_around: tuple[str, str],
    attribute: str = "",
    between: str = "\n",
) -> _Tags:
    """Returns the tags of dialects with ``invoke`` and ``parameter`` behind a prefix."""
    pattern = re.escape(prefix).replace("\\ ", "") + (" ?" if "｜" in prefix else "")
    kind = r'\s+string="(?P<kind>\w+)"' if attribute else ""
    return _Tags(
        call=f'<{pattern}invoke name="(?P<name>[^"<>\\n]*)">',
        argument=f'<{pattern}parameter name="(?P<key>[^"<>\\n]*)"{kind}>',
        value_end=f"</{pattern}parameter>",
        call_end=f"</{pattern}invoke>",
        around=around,
        write_call=f'<{prefix}invoke name="{{name}}">\n{{arguments}}</{prefix}invoke>{between}',
        write_argument=(
            f'<{prefix}parameter name="{{key}}"{attribute}>{{value}}</{prefix}parameter>\n'
        ),
        write_around=write_around,
    )


def _dsml(bar: str, section: str) -> _Tags:
    around = (f"<{bar}{section}>\n", f"</{bar}{section}>")
    sections = "</?｜DSML｜ ?(?:function_|tool_)?calls>"
    return _invoke(bar, sections, around, ' string="{is_string}"')


_MINIMAX_M2 = _invoke(
    "",
    "</?minimax:tool_call>|</?function_calls>",
    ("<minimax:tool_call>\n", "</minimax:tool_call>"),
)
_MUSE = _invoke(
    "atem:",
    r"(?:to=\S{1,99}\s*)?(?:<\|message\|>)?</?atem:function_calls>",
    ("to={name}<|message|><atem:function_calls>\n", "</atem:function_calls>"),
)
_M3_MARK = re.escape(_M3)
_MINIMAX_M3 = _Tags(
    call=f'{_M3_MARK}<invoke name="(?P<name>[^"<>\\n]*)">',
    argument=rf"{_M3_MARK}<(?P<key>(?!/)[^<>\s]+)>",
    value_end=rf"{_M3_MARK}</[^<>\s]+>",
    call_end=f"{_M3_MARK}</invoke>",
    around=f"{_M3_MARK}</?tool_call>",
    nests=True,
    write_call=f'{_M3}<invoke name="{{name}}">{{arguments}}{_M3}</invoke>\n',
    write_argument=f"{_M3}<{{key}}>{{value}}{_M3}</{{key}}>",
    write_around=(f"{_M3}<tool_call>\n", f"{_M3}</tool_call>"),
)
_KIMI_K3 = _Tags(
    call=r'<\|open\|>call tool="(?P<name>[^"\n]*)"(?: index="\d*")?<\|sep\|>',
    argument=r'<\|open\|>argument key="(?P<key>[^"\n]*)"(?: type="(?P<kind>\w*)")?<\|sep\|>',
    value_end=r"<\|close\|>argument<\|sep\|>",
    call_end=r"<\|close\|>call<\|sep\|>",
    around=r"<\|(?:open|close)\|>(?:response|tools|message)<\|sep\|>|<\|end_of_msg\|>",
    unescapes=True,
    write_call='<|open|>call tool="{name}" index="{index}"<|sep|>{arguments}<|close|>call<|sep|>',
    write_argument=(
        '<|open|>argument key="{key}" type="{kind}"<|sep|>{value}<|close|>argument<|sep|>'
    ),
    write_around=("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),
)


def _format(name: str, tags: _Tags, sign: str, *, is_atomic: bool = True) -> Format:
    example = ToolCall("TOOL", {"NAME": "value"})
    return Format(
        name=name,
        read=partial(_read, tags),
        write=partial(_write, tags),
        expected=re.sub(r"\s*\n", "", _write(tags, [example], KnownTools())),
        explained=(
            "Write each call in tags, with the values of its parameters as they are, without "
            "quotes or escapes; lists and objects "
            + ("as tags inside tags." if tags.nests else "as JSON.")
        ),
        sign=sign,
        is_atomic=is_atomic,
    )


_DSML_SIGN = "<｜DSML｜"
FORMATS = (
    _format("qwen3_coder", _QWEN, r"<tool_call>\s*<function="),
    _format("swe_agent", _SWE, "<function=", is_atomic=False),
    _format(
        "glm45",
        _glm(
            "<tool_call>{name}\n{arguments}</tool_call>",
            "<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n",
        ),
        r"<tool_call>\s*(?:[^\s<>{\[]+\s*<arg_key>|(?P<tool>[^\s<>{\[(]+)(?!\s*\())",
    ),
    _format(
        "glm47",
        _glm(
            "<tool_call>{name}{arguments}</tool_call>",
            "<arg_key>{key}</arg_key><arg_value>{value}</arg_value>",
        ),
        "",
    ),
    _format("deepseek_v32", _dsml("｜DSML｜", "function_calls"), _DSML_SIGN),
    _format("deepseek_v4", _dsml("｜DSML｜", "tool_calls"), ""),
    _format("deepseek_v41", _dsml("｜DSML｜ ", "calls"), ""),
    _format("minimax_m2", _MINIMAX_M2, '<minimax:tool_call>|<invoke name="'),
    _format("minimax_m3", _MINIMAX_M3, _M3_MARK),
    _format("kimi_k3", _KIMI_K3, r"<\|open\|>(?:tools<\|sep\|>|call tool)"),
    _format("muse_glimmer", _MUSE, "<atem:|to=[^\\s<]{1,99}<\\|message\\|><atem:"),
)
