"""Text to tool calls: the formats by name, and the choice that ``auto`` makes among them."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from coding_gym.arguments import unknown_name
from coding_gym.calls import ToolCall, with_unique_ids
from coding_gym.text.truncate import well_formed
from coding_gym.tools.formats import json_calls, literal_calls, tag_calls, text_blocks
from coding_gym.tools.formats.format import Format, ParsedAction, Reading
from coding_gym.tools.formats.json_text import MAX_CALLS, FormatError, checked, decode, is_cut_off
from coding_gym.tools.patches import BEGIN

AUTO = "auto"
STRICT = "[strict]"

_ALL = (*json_calls.FORMATS, *tag_calls.FORMATS, *literal_calls.FORMATS, *text_blocks.FORMATS)
_BY_NAME = {one.name: one for one in _ALL}
FORMATS: Mapping[str, Format] = MappingProxyType({AUTO: _BY_NAME["json"]} | _BY_NAME)
"""The formats by name; ``auto`` is explained and written as ``json``."""
TOOL_FORMATS = tuple(FORMATS)
_ANYWHERE = replace(_BY_NAME["json"], read=json_calls.read_anywhere)
_CHOICES = {name + mode: (name, bool(mode)) for name in TOOL_FORMATS for mode in ("", STRICT)}

_BARE = ("openai", "anthropic", "responses", "llama3", "json")
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
    reader = _Reader(name, schemas, text_formats, exact=exact)
    thought, body = reader.split_thought(text)
    parsed, error, is_attempt = reader.read(body, thought)
    if parsed is not None:
        is_message = body.startswith("{") and name in (AUTO, *_BARE)
        if exact or parsed.calls or not is_message:
            return parsed
        # A message: its content is a reply of its own.
        said = parse_action(parsed.text, AUTO, schemas, text_formats=text_formats)
        return replace(said, reasoning="\n".join(filter(None, (parsed.reasoning, said.reasoning))))
    if not (is_attempt or reader.seems_to_call(body or thought)):
        return ParsedAction(text=text)
    return ParsedAction(text=text, error=" ".join(error.splitlines()))


def parsed_calls(calls: Sequence[ToolCall], text: str) -> ParsedAction:
    """Returns calls that a caller has parsed, within the limits of `parse_action`. Never raises.

    Args:
        calls: The calls; they may be unknown to every toolset.
        text: What the policy said beside them.
    """
    text = well_formed(text)
    try:
        kept = tuple(replace(call, arguments=checked(dict(call.arguments), 0)) for call in calls)
        return _finished(ParsedAction(kept, text), "")
    except FormatError as failure:
        return ParsedAction(text=text, error=f"The tool calls could not be read: {failure}.")


class _Reader:
    """Reads replies in one format; the arguments are those of `parse_action`."""

    def __init__(
        self,
        name: str,
        schemas: Sequence[Mapping[str, Any]],
        text_formats: Collection[str],
        *,
        exact: bool,
    ) -> None:
        self.name, self.text_formats = name, text_formats
        self.reading = Reading(schemas, exact=exact, alone=name != AUTO)

    def read(self, body: str, thought: str = "") -> tuple[ParsedAction | None, str, bool]:
        """Returns what was read, else why nothing was, and whether the text is an attempt."""
        self.reading.begin(len(body))
        expected = FORMATS[self.name]
        error, is_attempt = "", self.name == "bash_block"
        for chosen, is_marked in self._candidates(body):
            expected = chosen if is_marked else expected
            for forgives in (False,) if self.reading.exact else (False, True):
                self.reading.forgives = forgives
                try:
                    parsed = chosen.read(body, self.reading)
                    if parsed is not None:
                        return _finished(parsed, thought), "", True
                except FormatError as failure:
                    error = f"The tool call could not be read: {failure}."
                    error += f" Expected {chosen.expected}."
                    is_attempt = is_attempt or is_marked
        where = " after </think>" if thought and not body else ""
        error = error or f"No tool call was found{where}. Expected {expected.expected}."
        return None, error, is_attempt

    def _candidates(self, body: str) -> Iterator[tuple[Format, bool]]:
        """Yields the formats to try, and whether a mark says that a text is in one.

        For ``auto`` only the mark that stands first decides: others stand in its arguments. So
        nothing is looked for behind JSON that is a call, or broken, which may be half a call.
        """
        if self.name != AUTO:
            yield FORMATS[self.name], self.name not in _BARE
            return
        start: int | None = 0
        if json_calls.LOOKS_LIKE_JSON.match(body):
            names = _BARE if self.reading.exact else ("json",)
            yield from ((FORMATS[name], False) for name in names)
            start = self._end_of_leading_json(body)
        if start is None:
            return
        rest = body[start:]
        outside = text_blocks.without_blocks(rest, self.text_formats)
        chosen, _ = self._first_sign(outside)
        if chosen:
            yield chosen, True
            return
        if python := _PYTHON_CALLS.match(body):  # of a tool that does not exist, or prose
            yield FORMATS[python.lastgroup or ""], False
        if outside == rest or '"arguments"' in outside:
            if "<tool_call>" in outside:
                yield FORMATS["hermes"], True
            yield _ANYWHERE, False
        for name in text_blocks.BLOCKS:
            if name in self.text_formats:
                yield FORMATS[name], True

    def _end_of_leading_json(self, body: str) -> int | None:
        """Returns where the JSON that a text begins with ends; None where it may be a call.

        Where it cannot be decoded, such as Python's, that is at the first mark behind it.
        """
        try:
            value, end = decode(body, loose=True)
        except FormatError:
            end = self._first_sign(body)[1]
            leading = body[:end]
            may_be_call = end == len(body) or _NAME_KEY.search(leading) or is_cut_off(leading)
            return None if may_be_call else end
        return None if json_calls.holds_calls(value) else end

    def _first_sign(self, text: str, *, atomic: bool = False) -> tuple[Format | None, int]:
        """Returns the format whose sign stands first in a text, and where.

        Args:
            text: What to look through.
            atomic: Whether only special tokens count.
        """
        for found in _SIGN.finditer(text):
            for one, sign in _SIGNS:
                match = sign.match(text, found.start())
                if match is None or (atomic and not one.is_atomic):
                    continue
                tool = match.groupdict().get("tool")
                if tool is None or tool in self.reading.tools.names:
                    return one, found.start()
        return None, len(text)

    def split_thought(self, body: str) -> tuple[str, str]:
        """Splits off reasoning in front.

        The opening tag may be missing, where the chat template wrote it. Then the first closing one
        counts that stands in no argument of a call. A block without an end ends at the first
        special token that opens a call, else with the text.
        """
        opening, closing = next(
            (pair for pair in _THOUGHTS if body.startswith(pair[0])),
            next((pair for pair in _THOUGHTS if pair[1] in body), _THOUGHTS[0]),
        )
        thought, end, rest = body.partition(closing)
        if not end and not body.startswith(opening):
            return "", body
        if not end:
            _, start = self._first_sign(body, atomic=True)
            return body[:start].rstrip(), body[start:]
        if body.startswith(opening) or not self._may_be_call(thought):
            return thought + end, rest.strip()
        start = self._end_of_thought(body, closing)
        return body[:start], body[start:].strip()

    def _end_of_thought(self, body: str, closing: str) -> int:
        """Returns where reasoning ends that the chat template opened, 0 where there is none.

        The text is read with a number in place of each closing tag: one that comes back in the
        prose beside the calls is in none of them.
        """
        parts = body.split(closing)
        numbered = (f"\ue000{i}\ue001{part}" for i, part in enumerate(parts[1:]))
        parsed, _, _ = self.read(parts[0] + "".join(numbered))
        begins_call = body.startswith(("{", "[", "```", BEGIN)) or self._first_sign(body)[1] == 0
        number = 0
        if parsed and parsed.calls:
            found = _NUMBERED.search(parsed.text)
            is_clear = found and all(call.name for call in parsed.calls)
            number = int(found[1][:9]) if found and is_clear else len(body)
        elif parsed or begins_call:
            number = len(body)  # a message or a broken call, which may hold the tag
        if number >= len(parts) - 1:
            return 0
        return sum(len(part) + len(closing) for part in parts[: number + 1])

    def _may_be_call(self, text: str) -> bool:
        if text.startswith(("{", "[")) or "```" in text or BEGIN in text or _NAME_KEY.search(text):
            return True
        return self._first_sign(text)[0] is not None

    def seems_to_call(self, body: str) -> bool:
        """Whether a text in which nothing was read has a part of a call."""
        has_keys = _NAME_KEY.search(body) and _ARGUMENTS_KEY.search(body)
        is_json = has_keys or '"tool_calls"' in body or body.startswith(("{", "[{"))
        is_patch = self.name == "apply_patch" and BEGIN in body
        return bool(is_json or is_patch or _PART.search(body) or self._first_sign(body)[0])


def _without_stops(text: str) -> str:
    """Returns a text without the stop tokens behind it."""
    end = len(text)
    while stop := next((stop for stop in _STOPS if text.endswith(stop, 0, end)), ""):
        end -= len(stop)
        while end and text[end - 1].isspace():
            end -= 1
    return text[:end]


def _finished(parsed: ParsedAction, thought: str) -> ParsedAction:
    """Gives every call an id of its own, and the thought back to the text."""
    num_calls = len(parsed.calls)
    if num_calls > MAX_CALLS:
        raise FormatError(f"{num_calls} calls in one reply, at most {MAX_CALLS} are read")
    text = f"{thought}\n{parsed.text}".strip() if thought else parsed.text
    return ParsedAction(with_unique_ids(parsed.calls), text, parsed.error, parsed.reasoning)
