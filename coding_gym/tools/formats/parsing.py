"""Text to tool calls: the formats by name, and the choice that ``auto`` makes among them."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from coding_gym.arguments import unknown_name
from coding_gym.calls import ToolCall
from coding_gym.text.truncate import well_formed
from coding_gym.tools.formats import json_calls, literal_calls, tag_calls, text_blocks
from coding_gym.tools.formats.format import Format, ParsedAction, Reading
from coding_gym.tools.formats.json_text import MAX_CALLS, FormatError, decode, is_cut_off
from coding_gym.tools.patches import BEGIN

AUTO = "auto"
STRICT = "[strict]"

_ALL = (*json_calls.FORMATS, *tag_calls.FORMATS, *literal_calls.FORMATS, *text_blocks.FORMATS)
FORMATS: Mapping[str, Format] = MappingProxyType({one.name: one for one in _ALL})
TOOL_FORMATS = (AUTO, *FORMATS)
_CHOICES = {name + mode: (name, bool(mode)) for name in TOOL_FORMATS for mode in ("", STRICT)}

_BARE = ("openai", "anthropic", "responses", "llama3", "json")
_LOOKS_LIKE_JSON = re.compile(r"""\{\s*(?:["'}]|\w+\s*:)|\[\s*[\[{\]"]""")
_PYTHON_CALLS = re.compile(r"(?:(?P<pythonic>\[)|(?P<smollm3_python><code>))\s*[^\W\d][\w.-]*\(")
_SIGNS = tuple((one, re.compile(one.sign, re.MULTILINE)) for one in _ALL if one.sign)
_SIGN = re.compile("|".join(one.sign.replace("?P<tool>", "?:") for one, _ in _SIGNS), re.MULTILINE)
# What chat templates write behind a reply, and servers may leave there.
_STOPS = (
    *("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|eot|>", "</s>", "<|call|>"),
    *("<|return|>", "<｜end▁of▁sentence｜>", "<|end_of_msg|>", "<|observation|>", "<|user|>"),
    *("<end_of_turn>", "<turn|>", "<start_function_response>", "<|tool_response>", "[e~["),
)
# What opens and closes reasoning; the second is that of Gemma 4.
_THOUGHTS = (("<think>", "</think>"), ("<|channel>thought", "<channel|>"))
# Stands for the n-th mark that closes reasoning, while its place is looked for.
_NUMBERED = re.compile("\ue000(\\d+)\ue001")
# Parts of calls whose opening mark is missing, and calls as JSON that may be broken.
_PART = re.compile(
    r"</?tool_call|<\|tool_calls?_(?:section_)?end\|>|<｜tool▁|<arg_(?:key|value)>|<parameter=[^<>\n]"
    r"|</(?:function|invoke|minimax:tool_call|｜DSML｜|atem:)|<(?:end_function_call|tool_call\|)>"
    r"|commentary to=functions\.\w|to=[^\s<]{1,64}<\|message\|>|^call:[\w.-]{1,64}\{",
    re.MULTILINE,
)
_NAME_KEY = re.compile(r"""["']name["']\s*:""")
_ARGUMENTS_KEY = re.compile(r"""["'](?:arguments|parameters|input)["']\s*:""")


def split_format(tool_format: str) -> tuple[str, bool]:
    """Returns the name of a format, and whether ``[strict]`` stands behind it.

    Raises:
        UnknownNameError: There is no such format.
    """
    if isinstance(tool_format, str) and tool_format in _CHOICES:
        return _CHOICES[tool_format]
    raise unknown_name("tool format", tool_format, TOOL_FORMATS)


def parse_action(
    text: str,
    tool_format: str = AUTO,
    schemas: Sequence[Mapping[str, Any]] = (),
    *,
    text_formats: Collection[str] = (),
) -> ParsedAction:
    """Reads the tool calls out of a policy's reply. Never raises on any text.

    Args:
        text: The reply.
        tool_format: One of `TOOL_FORMATS`, or one with ``[strict]`` behind it: then nothing is
            repaired, and only what the format itself would write is read.
        schemas: The tools that exist, as OpenAI function schemas. JSON that is broken is repaired
            only where the outcome names one of them; formats without types take these from here.
        text_formats: What ``auto`` tries too, after all others; see `Toolset.text_formats`.

    Raises:
        UnknownNameError: There is no such format.
    """
    name, exact = _CHOICES.get(tool_format) or split_format(tool_format)
    text = _without_stops((text if text.isascii() else well_formed(text)).strip())
    reader = _Reader(name, exact, schemas, text_formats)
    thought, body = _split_thought(text, reader)
    parsed, error, is_attempt = reader.read(body, thought)
    if parsed is not None:
        is_message = body.startswith("{") and name in (AUTO, *_BARE)
        if exact or parsed.calls or not is_message:
            return parsed
        # A message: its content is a reply of its own.
        said = parse_action(parsed.text, AUTO, schemas, text_formats=text_formats)
        return replace(said, reasoning="\n".join(filter(None, (parsed.reasoning, said.reasoning))))
    reading = reader.reading(body)
    if not (is_attempt or _seems_to_call(body or thought, name, reading)):
        return ParsedAction(text=text)
    return ParsedAction(text=text, error=" ".join(error.splitlines()))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads replies in one format; the fields are arguments of `parse_action`."""

    name: str
    exact: bool
    schemas: Sequence[Mapping[str, Any]]
    text_formats: Collection[str]

    def reading(self, text: str) -> Reading:
        """Returns how a text is to be read."""
        return Reading(self.schemas, len(text), exact=self.exact, alone=self.name != AUTO)

    def read(self, body: str, thought: str = "") -> tuple[ParsedAction | None, str, bool]:
        """Returns what was read, else why nothing was, and whether the text is an attempt."""
        reading = self.reading(body)
        expected = FORMATS["json" if self.name == AUTO else self.name]
        error, is_attempt = "", self.name == "bash_block"
        for chosen, is_marked in self._candidates(body, reading):
            expected = chosen if is_marked else expected
            for reading.forgives in (False,) if self.exact else (False, True):
                try:
                    parsed = chosen.read(body, reading)
                    if parsed is not None:
                        return _finished(parsed, thought), "", True
                except FormatError as failure:
                    error = f"The tool call could not be read: {failure}."
                    error += f" Expected {chosen.expected}."
                    is_attempt = is_attempt or is_marked
        where = " after </think>" if thought and not body else ""
        error = error or f"No tool call was found{where}. Expected {expected.expected}."
        return None, error, is_attempt

    def _candidates(self, body: str, reading: Reading) -> Iterator[tuple[Format, bool]]:
        if self.name == AUTO:
            yield from _candidates(body, reading, self.text_formats)
        else:
            yield FORMATS[self.name], self.name not in _BARE


def _candidates(
    body: str, reading: Reading, text_formats: Collection[str]
) -> Iterator[tuple[Format, bool]]:
    """Yields the formats that ``auto`` tries, and whether a mark says that a text is in one.

    Only the mark that stands first decides: others stand in its arguments. So nothing is looked
    for behind JSON that is a call, or broken, which may be half a call.
    """
    start = 0
    if _LOOKS_LIKE_JSON.match(body):
        yield from ((FORMATS[name], False) for name in (_BARE if reading.exact else ("json",)))
        end = _end_of_shown(body, reading)
        if end is None:
            return
        start = end
    rest = body[start:]
    outside = _without_blocks(rest, text_formats) if text_formats else rest
    chosen, _ = _first_sign(outside, reading)
    if chosen:
        yield chosen, True
        return
    if python := _PYTHON_CALLS.match(body):  # of a tool that does not exist, or prose
        yield FORMATS[python.lastgroup or ""], False
    if outside == rest or '"arguments"' in outside:
        if "<tool_call>" in outside:
            yield FORMATS["hermes"], True
        yield FORMATS["json"], False
    for name in text_blocks.BLOCKS:
        if name in text_formats:
            yield FORMATS[name], True


def _end_of_shown(body: str, reading: Reading) -> int | None:
    """Returns where the JSON that a text begins with ends; None where it may be a call.

    Where it is none that can be decoded, such as Python's, that is at the first mark behind it.
    """
    try:
        value, end = decode(body, loose=True)
    except FormatError:
        end = _first_sign(body, reading)[1]
        shown = body[:end]
        may_be_call = end == len(body) or _NAME_KEY.search(shown) or is_cut_off(shown)
        return None if may_be_call else end
    return None if json_calls.holds_calls(value) else end


def _first_sign(text: str, reading: Reading, *, atomic: bool = False) -> tuple[Format | None, int]:
    """Returns the format whose sign stands first in a text, and where; None where there is none.

    Args:
        text: What to look through.
        reading: Knows the tools, one of which some signs must name.
        atomic: Whether only special tokens count.
    """
    for found in _SIGN.finditer(text):
        for one, sign in _SIGNS:
            match = sign.match(text, found.start())
            if match is None or (atomic and not one.is_atomic):
                continue
            tool = match.groupdict().get("tool")
            if tool is None or tool in reading.tools.names:
                return one, found.start()
    return None, len(text)


def _without_blocks(body: str, text_formats: Collection[str]) -> str:
    """Returns what stands outside the blocks of these formats, whose content may be anything."""
    for name, (opening, closing) in text_blocks.BLOCKS.items():
        if name not in text_formats:
            continue
        parts = []
        position = 0
        while opened := opening.search(body, position):
            parts.append(body[position : opened.start()])
            closed = closing.search(body, opened.end())
            position = closed.end() if closed else len(body)
        body = "".join([*parts, body[position:]])
    return body


def _split_thought(text: str, reader: _Reader) -> tuple[str, str]:
    """Splits off reasoning in front.

    The opening tag may be missing, where the chat template wrote it. Then the first closing one
    counts that stands in no argument of a call. A block without an end ends at the first special
    token that opens a call, else with the text.
    """
    body, reading = text, reader.reading(text)
    opening, closing = next(
        (pair for pair in _THOUGHTS if body.startswith(pair[0])),
        next((pair for pair in _THOUGHTS if pair[1] in body), _THOUGHTS[0]),
    )
    thought, end, rest = body.partition(closing)
    if not end:
        start = len(body)
        if body.startswith(opening):
            _, start = _first_sign(body, reading, atomic=True)
            return body[:start].rstrip(), body[start:]
        return "", body
    if body.startswith(opening) or not _may_be_call(thought, reading):
        return thought + end, rest.strip()
    start = _end_of_thought(body, closing, reader)
    return body[:start], body[start:].strip()


def _end_of_thought(body: str, closing: str, reader: _Reader) -> int:
    """Returns where reasoning ends that the chat template opened, 0 where there is none.

    The text is read with a number in place of each closing tag: one that comes back in the prose
    beside the calls is in none of them.
    """
    parts = body.split(closing)
    numbered = (f"\ue000{i}\ue001{part}" for i, part in enumerate(parts[1:]))
    parsed, _, _ = reader.read(parts[0] + "".join(numbered))
    number = 0
    if parsed and parsed.calls:
        found = _NUMBERED.search(parsed.text)
        is_clear = found and all(call.name for call in parsed.calls)
        number = int(found[1][:9]) if found and is_clear else len(body)
    elif parsed or _begins_call(body, reader):
        number = len(body)  # a message or a broken call, which may hold the tag
    if number >= len(parts) - 1:
        return 0
    return sum(len(part) + len(closing) for part in parts[: number + 1])


def _begins_call(body: str, reader: _Reader) -> bool:
    if body.startswith(("{", "[", "```", BEGIN)):
        return True
    return _first_sign(body, reader.reading(body))[1] == 0


def _without_stops(text: str) -> str:
    """Returns a text without the stop tokens behind it."""
    end = len(text)
    while stop := next((stop for stop in _STOPS if text.endswith(stop, 0, end)), ""):
        end -= len(stop)
        while end and text[end - 1].isspace():
            end -= 1
    return text[:end]


def _may_be_call(text: str, reading: Reading) -> bool:
    if text.startswith(("{", "[")) or "```" in text or BEGIN in text or _NAME_KEY.search(text):
        return True
    return _first_sign(text, reading)[0] is not None


def _seems_to_call(body: str, name: str, reading: Reading) -> bool:
    is_json = (_NAME_KEY.search(body) and _ARGUMENTS_KEY.search(body)) or '"tool_calls"' in body
    is_patch = name == "apply_patch" and BEGIN in body
    is_marked = bool(_PART.search(body)) or _first_sign(body, reading)[0] is not None
    return bool(is_json) or is_patch or is_marked or body.startswith(("{", "[{"))


def _finished(parsed: ParsedAction, thought: str) -> ParsedAction:
    """Gives every call an id of its own, and the thought back to the text.

    Raises:
        FormatError: There are too many calls.
    """
    num_calls = len(parsed.calls)
    if num_calls > MAX_CALLS:
        raise FormatError(f"{num_calls} calls in one reply, at most {MAX_CALLS} are read")
    taken = {call.call_id for call in parsed.calls}
    seen: set[str] = set()
    calls = []
    for i, call in enumerate(parsed.calls):
        call_id = call.call_id
        if not call_id or call_id in seen:
            call_id = f"call_{i}"
            while call_id in taken:
                call_id += "_"
            taken.add(call_id)
        seen.add(call_id)
        calls.append(ToolCall(call.name, call.arguments, call_id, call.error, call.arguments_text))
    text = f"{thought}\n{parsed.text}".strip() if thought else parsed.text
    return ParsedAction(tuple(calls), text, parsed.error, parsed.reasoning)
