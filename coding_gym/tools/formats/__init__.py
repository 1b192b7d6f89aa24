"""How tool calls are written in a policy's text.

| format | a call is written as |
|---|---|
| ``openai`` | an assistant message with ``tool_calls``, or a bare list of tool calls |
| ``json`` | ``{"name": …, "arguments": {…}}``, several or a list of them, or in a fenced block |
| ``hermes`` | the same between ``<tool_call>`` and ``</tool_call>``, any number of times |
| ``auto`` | any of these |

``auto`` reads text that begins with ``{`` or ``[`` as ``openai``, then ``json``, then ``hermes``,
and any other text as ``hermes``, then ``json``; the first that fits wins. A ``<think>`` block in
front is not searched for calls. Strict JSON is tried in all of them before anything is repaired.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from coding_gym.calls import ToolCall
from coding_gym.errors import InvalidArgumentError
from coding_gym.text.unicode import well_formed
from coding_gym.tools.formats import bare, hermes, openai
from coding_gym.tools.formats.parsed import FormatError, ParsedAction
from coding_gym.tools.formats.reading import MAX_CALLS, Reader, lenient_reader, read_strictly

__all__ = ["TOOL_FORMATS", "ParsedAction", "parse_action", "render_calls"]

Parse = Callable[[str, Reader], ParsedAction | None]

_FORMATS: Mapping[str, tuple[Parse, Callable[[Sequence[ToolCall]], str], str]] = MappingProxyType(
    {
        "openai": (openai.parse, openai.render, openai.EXPECTED),
        "json": (bare.parse, bare.render, bare.EXPECTED),
        "hermes": (hermes.parse, hermes.render, hermes.EXPECTED),
    }
)

TOOL_FORMATS = ("auto", *_FORMATS)


def parse_action(
    text: str, tool_format: str = "auto", tool_names: Collection[str] = ()
) -> ParsedAction:
    """Reads the tool calls out of a policy's reply. Never raises on any text.

    Args:
        text: The reply.
        tool_format: One of `TOOL_FORMATS`.
        tool_names: The tools that exist. JSON that is broken is repaired only where the outcome
            names one of them.

    Raises:
        InvalidArgumentError: There is no such format.
    """
    _check(tool_format)
    text = well_formed(text)
    thought, body = _split_thought(text)
    names = _order(body) if tool_format == "auto" else (tool_format,)
    error = ""
    for reader in (read_strictly, lenient_reader(tool_names, len(text))):
        for name in names:
            parse, _, expected = _FORMATS[name]
            try:
                parsed = parse(body, reader)
                if parsed is not None:
                    return _finish(parsed, thought)
            except FormatError as failure:
                error = f"The tool call could not be read: {failure}. Expected {expected}."
    if not _seems_to_call(body or thought):
        return ParsedAction(text=text.strip())
    expected = _FORMATS["json" if tool_format == "auto" else tool_format][2]
    where = "" if body else " after </think>"
    error = error or f"No tool call was found{where}. Expected {expected}."
    return ParsedAction(text=text.strip(), error=error)


def render_calls(calls: Sequence[ToolCall], tool_format: str = "json") -> str:
    """Writes calls so that `parse_action` reads the same calls back.

    An empty ``call_id`` comes back as ``call_0``, ``call_1``, …; ``auto`` writes ``json``.

    Raises:
        InvalidArgumentError: There is no such format, or an argument is not a JSON value.
    """
    _check(tool_format)
    _, render, _ = _FORMATS["json" if tool_format == "auto" else tool_format]
    try:
        return render(calls)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"arguments must be JSON values: {error}") from error


def _check(tool_format: str) -> None:
    if tool_format not in TOOL_FORMATS:
        known = ", ".join(TOOL_FORMATS)
        raise InvalidArgumentError(f"tool_format must be one of {known}, got {tool_format!r}")


def _order(body: str) -> tuple[str, ...]:
    return ("openai", "json", "hermes") if body.startswith(("{", "[")) else ("hermes", "json")


def _split_thought(text: str) -> tuple[str, str]:
    """Splits off a ``<think>`` block in front; an unfinished one is all thought."""
    body = text.strip()
    if not body.startswith("<think>"):
        return "", body
    thought, end, rest = body.partition("</think>")
    return thought + end, rest.strip()


def _seems_to_call(body: str) -> bool:
    marks = ('"name"' in body and '"arguments"' in body) or '"tool_calls"' in body
    return marks or "<tool_call" in body or body.startswith(("{", "[{"))


def _finish(parsed: ParsedAction, thought: str) -> ParsedAction:
    """Gives every call an id of its own, and the thought back to the text."""
    if len(parsed.calls) > MAX_CALLS:
        raise FormatError(f"{len(parsed.calls)} calls in one reply, at most {MAX_CALLS} are read")
    taken = {call.call_id for call in parsed.calls}
    seen: set[str] = set()
    calls = []
    for i, call in enumerate(parsed.calls):
        call_id = call.call_id
        if not call_id or call_id in seen:
            candidates = (f"call_{i}" + "_" * n for n in range(len(parsed.calls) + 1))
            call_id = next(c for c in candidates if c not in taken)
            taken.add(call_id)
        seen.add(call_id)
        calls.append(replace(call, call_id=call_id))
    return replace(parsed, calls=tuple(calls), text=f"{thought}\n{parsed.text}".strip())
