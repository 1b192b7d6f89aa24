"""The tag dialects: a call in tags, with a tag for each argument and its value as plain text.

One reader takes them all; a `_Tags` says how a dialect spells its tags. A value is the text between
its tags; the tool's schema gives it a type. Where a dialect puts values on lines of their own, one
line end at each side belongs to the tags, as in vLLM's and SGLang's ``qwen3_coder`` parsers;
OpenHands and SWE-agent strip all blank space, which loses the indentation of an edit.
"""

import html
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.format import Format, ParsedAction, Reading, read_marked, templated
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
_ON_LINES = "<parameter={key}>\n{value}\n</parameter>\n"


class _Tags:
    """How a dialect spells its tags.

    Args:
        written: Templates of a call (``name``, ``arguments``, ``index``) and of an argument
            (``key``, ``value``, ``kind``, ``is_string``).
        call: Pattern of the tag that opens a call, with a group ``name``.
        argument: Pattern of the tag that opens an argument, with a group ``key``, and a group
            ``kind`` where it says ``true`` or ``string`` of a string, something else of others.
        value_end: Pattern of the tag that closes an argument.
        call_end: Pattern of the tag that closes a call.
        outer: Patterns of the tags around one call, which may be missing.
        around: Pattern of the tags around all calls.
        on_lines: Whether one line end at each side of a value belongs to the tags.
        may_lack_end: Whether a server may have removed ``call_end``, being the stop string.
        needs_outer: Whether strict reading asks for the outer tags (True), or for none (False).
        unescapes: Whether names and keys are escaped as in HTML.
        nests: Whether lists and objects are tags inside tags.
    """

    def __init__(
        self,
        written: tuple[str, str],
        call: str,
        argument: str,
        value_end: str,
        call_end: str,
        *,
        outer: tuple[str, str] = ("(?!)", "(?!)"),
        around: str = "",
        on_lines: bool = False,
        may_lack_end: bool = False,
        needs_outer: bool | None = None,
        unescapes: bool = False,
        nests: bool = False,
    ) -> None:
        self.written, self.on_lines, self.may_lack_end = written, on_lines, may_lack_end
        self.needs_outer, self.unescapes, self.nests = needs_outer, unescapes, nests
        any_call, any_argument = (re.sub(r"\?P<\w+>", "?:", tag) for tag in (call, argument))
        mark = call.partition("(?P<name>")[0]
        self.opening = re.compile(rf"(?P<outer>{outer[0]}\s*)?(?={mark})")
        self.head, self.parameter = re.compile(call), re.compile(rf"\s*+{argument}")
        self.end, self.outer_end = (re.compile(rf"\s*+{tag}") for tag in (call_end, outer[1]))
        self.around = re.compile(around) if around else None
        tags = "|".join((any_argument, any_call, *outer, call_end))
        # What may stand behind a value's closing tag; the text inside a value goes on otherwise.
        self.behind = re.compile(rf"\s*+(?:{tags}|</?\w*\Z|\Z)")
        # What may end a value: its closing tag, or, at the start of a line, another tag.
        self.next_tag = re.compile(
            rf"(?P<close>{value_end})|\n[ \t]*(?:{argument}|{call})"
            rf"|\n[ \t]*(?P<end>{call_end})(?=\s*(?:\Z|{'|'.join(outer)}|{any_call}))"
        )
        # The tags as messages display them.
        opened, _, closed = written[0].partition("{arguments}")
        key_opened, _, key_closed = written[1].partition("{value}")
        displayed_tags = (opened, key_opened, key_closed, closed.partition("\n")[0])
        self.call_tag, self.key_tag, self.value_end, self.call_end = map(_displayed, displayed_tags)


def _displayed(template: str) -> str:
    tag = template.format(name="NAME", key="KEY", index=1, kind="string", is_string="true")
    return " ".join(tag.split())


def _read(tags: _Tags, text: str, reading: Reading) -> ParsedAction | None:
    """Reads all calls; None where there is none."""
    return read_marked(text, tags.opening, partial(_read_call, tags, reading), tags.around)


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
        raise FormatError(f"{tags.call_tag} is needed, got {text[start:][:20]!r}")
    name = html.unescape(name) if tags.unescapes else name
    schemas = reading.tools.properties(name)
    body = skip_space(text, head.end())
    if text.startswith("{", body) and not reading.exact:
        value, position = decode(text, body, loose=reading.forgives)
        call = named_call(name, value)
    else:
        arguments, position = _read_arguments(tags, reading, text, head.end(), schemas)
        call = ToolCall(name, arguments)
    is_whole = bool(schemas) and schemas.keys() <= call.arguments.keys()
    position = _read_end(tags, reading, text, position, is_whole=is_whole)
    closed = tags.outer_end.match(text, position)
    if reading.exact and tags.needs_outer and closed is None:
        raise FormatError("</tool_call> is missing behind the call")
    return [call], closed.end() if closed else position


def _read_arguments(
    tags: _Tags, reading: Reading, text: str, position: int, schemas: Mapping[str, Schema]
) -> tuple[dict[str, Any], int]:
    """Returns the arguments of a call, and where the text goes on."""
    arguments: dict[str, Any] = {}
    while parameter := tags.parameter.match(text, position):
        key = parameter["key"].strip()
        key = html.unescape(key) if tags.unescapes else key
        if not key:
            raise FormatError("the tag of an argument needs a name")
        if key in arguments:
            raise FormatError(f"the argument {key} is there twice")
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
    raise FormatError(f"a value is not closed by {tags.value_end}")


def _value(tags: _Tags, value: str) -> str:
    return value.removeprefix("\n").removesuffix("\n") if tags.on_lines else value


def _read_end(tags: _Tags, reading: Reading, text: str, position: int, *, is_whole: bool) -> int:
    """Returns where a call ends.

    The second attempt also ends it in front of another tag, and with the text where no argument
    may follow: the closing tag was begun, or the call has all that the tool takes.
    """
    if closing := tags.end.match(text, position):
        return closing.end()
    rest = skip_space(text, position)
    got, end = text[rest : rest + 20], tags.call_end
    if reading.forgives and tags.may_lack_end:
        if end.startswith(got) and (is_whole or len(got) > 1):
            return len(text)
        if tags.opening.match(text, rest) or text.startswith("</tool_call>", rest):
            return rest
    got = f"got {got!r}" if got else "the reply seems cut off"
    raise FormatError(f"{tags.key_tag} or {end} is needed, {got}")


def _fields(tags: _Tags, call: ToolCall, index: int) -> Mapping[str, str]:
    """Returns what the template of a call holds."""
    arguments = "".join(_written(tags, *item) for item in call.arguments.items())
    name = _escaped(tags, call.name)
    return {"name": name, "arguments": arguments, "index": str(index + 1)}


def _written(tags: _Tags, key: str, value: Any) -> str:
    plain = _nested(value) if tags.nests else untyped(value)
    template = _ON_LINES if tags.on_lines and "\n" in plain else tags.written[1]
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
    """Returns the value in the tag ``key`` opened before ``start``, and where the text goes on."""
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
        if close >= 0 and text.startswith(end, close):
            leaf = typed(text[start:close], schema, is_string=None if schema else False)
            return leaf, close + len(end)
    if not fields or tag is None or tag[2] != key:
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

_M3_MARK = re.escape(_M3)
_function = partial(
    _Tags,
    call=r"<function=(?P<name>[^<>\n]*)>",
    argument=r"<parameter=(?P<key>[^<>\n]*)>",
    value_end="</parameter>",
    call_end="</function>",
    outer=("<tool_call>", "</tool_call>"),
    on_lines=True,
    may_lack_end=True,
)
_glm = partial(
    _Tags,
    call=r"<tool_call>\s*(?P<name>[^<>\s]+)",
    argument=r"<arg_key>(?P<key>[^<>\n]*)</arg_key>\s*<arg_value>",
    value_end="</arg_value>",
    call_end="</tool_call>",
)
_MINIMAX_M3 = _Tags(
    (
        f'{_M3}<invoke name="{{name}}">{{arguments}}{_M3}</invoke>\n',
        f"{_M3}<{{key}}>{{value}}{_M3}</{{key}}>",
    ),
    rf'{_M3_MARK}<invoke name="(?P<name>[^"<>\n]*)">',
    rf"{_M3_MARK}<(?P<key>(?!/)[^<>\s]+)>",
    rf"{_M3_MARK}</[^<>\s]+>",
    f"{_M3_MARK}</invoke>",
    around=f"{_M3_MARK}</?tool_call>",
    nests=True,
)
_KIMI_K3 = _Tags(
    (
        '<|open|>call tool="{name}" index="{index}"<|sep|>{arguments}<|close|>call<|sep|>',
        '<|open|>argument key="{key}" type="{kind}"<|sep|>{value}<|close|>argument<|sep|>',
    ),
    r'<\|open\|>call tool="(?P<name>[^"\n]*)"(?: index="\d*")?<\|sep\|>',
    r'<\|open\|>argument key="(?P<key>[^"\n]*)"(?: type="(?P<kind>\w*)")?<\|sep\|>',
    r"<\|close\|>argument<\|sep\|>",
    r"<\|close\|>call<\|sep\|>",
    around=r"<\|(?:open|close)\|>(?:response|tools|message)<\|sep\|>|<\|end_of_msg\|>",
    unescapes=True,
)


def _invoke(prefix: str, around: str, attribute: str = "") -> _Tags:
    """Returns the tags of dialects with ``invoke`` and ``parameter`` behind a prefix."""
    tag = prefix.strip() + " ?" * prefix.endswith(("｜", " "))
    kind = r'\s+string="(?P<kind>\w+)"' if attribute else ""
    return _Tags(
        (
            f'<{prefix}invoke name="{{name}}">\n{{arguments}}</{prefix}invoke>\n',
            f'<{prefix}parameter name="{{key}}"{attribute}>{{value}}</{prefix}parameter>\n',
        ),
        f'<{tag}invoke name="(?P<name>[^"<>\\n]*)">',
        f'<{tag}parameter name="(?P<key>[^"<>\\n]*)"{kind}>',
        f"</{tag}parameter>",
        f"</{tag}invoke>",
        around=around,
    )


def _format(name: str, tags: _Tags, **rest: Any) -> Format:
    explained = (
        "Write each call in tags, with the values of its parameters as they are, without "
        "quotes or escapes; lists and objects "
        + ("as tags inside tags." if tags.nests else "as JSON.")
    )
    fields = partial(_fields, tags)
    return templated(
        name, partial(_read, tags), tags.written[0], fields, explained=explained, **rest
    )


def _dsml(name: str, bar: str, section: str, sign: str = "") -> Format:
    tags = _invoke(bar, "</?｜DSML｜ ?(?:function_|tool_)?calls>", ' string="{is_string}"')
    return _format(name, tags, around=(f"<{bar}{section}>\n", f"</{bar}{section}>"), sign=sign)


FORMATS = (
    _format(
        "qwen3_coder",
        _function(
            ("<tool_call>\n<function={name}>\n{arguments}</function>\n</tool_call>", _ON_LINES),
            needs_outer=True,
        ),
        between="\n",
        sign=r"<tool_call>\s*<function=",
    ),
    _format(
        "swe_agent",
        _function(
            (
                "<function={name}>\n{arguments}</function>",
                "<parameter={key}>{value}</parameter>\n",
            ),
            needs_outer=False,
        ),
        between="\n",
        sign="<function=",
        is_atomic=False,
    ),
    _format(
        "glm45",
        _glm(
            (
                "<tool_call>{name}\n{arguments}</tool_call>",
                "<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n",
            )
        ),
        between="\n",
        sign=r"<tool_call>\s*(?:[^\s<>{\[]+\s*<arg_key>|(?P<tool>[^\s<>{\[(]+)(?!\s*\())",
    ),
    _format(
        "glm47",
        _glm(
            (
                "<tool_call>{name}{arguments}</tool_call>",
                "<arg_key>{key}</arg_key><arg_value>{value}</arg_value>",
            )
        ),
    ),
    _dsml("deepseek_v32", "｜DSML｜", "function_calls", "<｜DSML｜"),
    _dsml("deepseek_v4", "｜DSML｜", "tool_calls"),
    _dsml("deepseek_v41", "｜DSML｜ ", "calls"),
    _format(
        "minimax_m2",
        _invoke("", "</?minimax:tool_call>|</?function_calls>"),
        around=("<minimax:tool_call>\n", "</minimax:tool_call>"),
        sign='<minimax:tool_call>|<invoke name="',
    ),
    _format(
        "minimax_m3",
        _MINIMAX_M3,
        around=(f"{_M3}<tool_call>\n", f"{_M3}</tool_call>"),
        sign=_M3_MARK,
    ),
    _format(
        "kimi_k3",
        _KIMI_K3,
        around=("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),
        sign=r"<\|open\|>(?:tools<\|sep\|>|call tool)",
    ),
    _format(
        "muse_glimmer",
        _invoke("atem:", r"(?:to=\S{1,99}\s*)?(?:<\|message\|>)?</?atem:function_calls>"),
        around=("to={name}<|message|><atem:function_calls>\n", "</atem:function_calls>"),
        sign="<atem:|to=[^\\s<]{1,99}<\\|message\\|><atem:",
    ),
)
