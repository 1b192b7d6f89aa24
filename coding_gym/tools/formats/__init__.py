"""How tool calls are written in a policy's text: a table of formats, and three readers of it.

The readers take JSON between marks (`json_calls`), XML-like tags (`tag_calls`) and Python-like
calls (`python_calls`); ``bash_block`` is one fenced block of bash, and ``template`` the response
template of a Hugging Face tokenizer. ``auto`` reads all rows of the table except these two: the
mark that stands first decides, and a call without marks must begin a line.

A mark without a readable call is a format error, and nothing of such a reply is run. JSON must be
valid; nothing is repaired. No call inside reasoning is read.
"""

from coding_gym.tools.formats.format import ParsedAction
from coding_gym.tools.formats.instructions import (
    check_format,
    tells_format,
    with_instructions,
)
from coding_gym.tools.formats.json_calls import message_calls
from coding_gym.tools.formats.parsing import ReplyParser
from coding_gym.tools.formats.table import TOOL_FORMATS
from coding_gym.tools.formats.writing import write_call

__all__ = [
    "TOOL_FORMATS",
    "ParsedAction",
    "ReplyParser",
    "check_format",
    "message_calls",
    "tells_format",
    "with_instructions",
    "write_call",
]
