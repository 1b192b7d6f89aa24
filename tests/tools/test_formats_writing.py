"""Calls written in each format are read again as the same calls."""

from dataclasses import replace

import pytest

from coding_gym.calls import ToolCall
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools.formats import TOOL_FORMATS, ReplyParser, write_call
from coding_gym.tools.schemas import function, integer

SCHEMAS = (
    function("bash", "Runs.", command="The command"),
    function("edit", "Edits.", optional=("line",), path="The file", line=integer("Where")),
    function("submit", "Ends."),
)
CALLS = (
    ToolCall("edit", {"path": 'a "b" TOOL_NAME\\n.py', "line": 3}),
    ToolCall("bash", {"command": "echo ARGUMENT 'VALUE'\nls"}),
    ToolCall("submit"),
)
WRITTEN = sorted({*TOOL_FORMATS} - {"template", "bash_block"})


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
@pytest.mark.parametrize("tool_format", WRITTEN)
def test_a_written_call_is_read_again(tool_format: str, call: ToolCall) -> None:
    read = ReplyParser(tool_format, SCHEMAS).read(write_call(call, tool_format))
    assert [replace(one, call_id="") for one in read.calls] == [call]


@pytest.mark.parametrize("call", CALLS[1:], ids=lambda call: call.name)
def test_a_written_block_is_read_again(call: ToolCall) -> None:
    read = ReplyParser("bash_block", SCHEMAS).read(write_call(call, "bash_block"))
    assert [replace(one, call_id="") for one in read.calls] == [call]


def test_a_block_holds_one_argument_and_a_template_writes_nothing() -> None:
    with pytest.raises(InvalidArgumentError, match="bash_block"):
        write_call(CALLS[0], "bash_block")
    with pytest.raises(InvalidArgumentError, match="template"):
        write_call(CALLS[2], "template")
