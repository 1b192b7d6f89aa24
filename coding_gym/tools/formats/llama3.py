"""Format ``llama3``: Llama 3.1's ``{"name": …, "parameters": {…}}``.

``<|python_tag|>`` may stand in front. Several calls are separated by ``;`` or line ends, as vLLM's
``llama3_json`` parser reads them.
"""

import re
from collections.abc import Sequence
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.format import Format, Reading
from coding_gym.tools.formats.known_tools import KnownTools
from coding_gym.tools.formats.objects import (
    are_calls,
    check_exact,
    flat_object,
    flattened,
    read_calls,
    to_json,
)
from coding_gym.tools.formats.parsed import FormatError, ParsedAction
from coding_gym.tools.formats.reading import MAX_CALLS, decode_loosely, decode_value

MARK = "<|python_tag|>"
_BETWEEN = re.compile(r"[\s;]*(?:<\|python_tag\|>)?\s*")
_ENDS = ("<|eom_id|>", "<|eot_id|>")  # what a server may leave of the end of a message


def parse(text: str, reading: Reading) -> ParsedAction | None:
    """Reads calls behind the tag or from the start; returns None where there are none.

    Raises:
        FormatError: They cannot be read.
    """
    is_bare = text.startswith(("{", "["))
    prose, tag, body = ("", "", text) if is_bare else text.partition(MARK)
    if not is_bare and not tag:
        return None
    for end in _ENDS:
        body = body.removesuffix(end)
    values = _values(body.strip(), reading)
    if reading.exact:
        check_exact(values, "parameters")
    if is_bare and not are_calls(values):
        return None
    return ParsedAction(read_calls(values), prose.strip())


def _values(body: str, reading: Reading) -> list[Any]:
    values: list[Any] = []
    end = 0
    while True:
        try:
            value, end = (decode_loosely if reading.forgives else decode_value)(body, end)
        except FormatError:
            if not reading.forgives:
                raise
            return [*values, *flattened(reading.json(body[end:]))]
        values.append(value)
        between = _BETWEEN.match(body, end)
        if between and between.end() == len(body):
            return values
        if between is None or between.end() == end:
            raise FormatError(
                f"calls must be separated by ; or a line end, got {body[end:][:20]!r}"
            )
        if len(values) == MAX_CALLS:
            raise FormatError(f"more than {MAX_CALLS} calls in one reply")
        end = between.end()


def render(calls: Sequence[ToolCall], tools: KnownTools) -> str:  # noqa: ARG001 - one signature
    """Writes bare objects with ``; `` between them."""
    return "; ".join(to_json(flat_object(call, i, "parameters")) for i, call in enumerate(calls))


FORMAT = Format(
    name="llama3",
    parse=parse,
    render=render,
    expected='{"name": "<tool>", "parameters": {…}}',
    explained=(
        "Reply with a call as a JSON object of its name and parameters and nothing else, or with "
        "several of them separated by semicolons."
    ),
    mark=MARK,
)
