"""Formats of tool calls in a policy's text: a table of formats, and three readers.

A mark is the delimiter of a call, such as ``<tool_call>``. The readers parse JSON between marks
(`json_calls`), XML-like tags (`tag_calls`) and Python-like calls (`python_calls`); ``bash_block``
is one fenced block of bash. For ``template``, a Hugging Face tokenizer's response template reads
the reply. ``auto`` reads all rows except ``template`` and, unless the toolset adds it,
``bash_block``: each mark selects its row, and a call without marks must begin a line.

A mark without a readable call is a format error, and then no call of the reply runs. JSON must be
valid; nothing is repaired. Calls inside reasoning are ignored.
"""

from coding_gym.tools.formats.format import ParsedAction
from coding_gym.tools.formats.instructions import (
    check_format,
    explains_format,
    system_prompt,
)
from coding_gym.tools.formats.json_calls import content_text, message_calls
from coding_gym.tools.formats.parsing import ReplyParser
from coding_gym.tools.formats.table import TOOL_FORMATS

__all__ = [
    "TOOL_FORMATS",
    "ParsedAction",
    "ReplyParser",
    "check_format",
    "content_text",
    "explains_format",
    "message_calls",
    "system_prompt",
]
