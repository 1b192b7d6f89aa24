"""Whatever a policy writes is read without an exception, and what is rendered is read back."""

import itertools
import json
import random

import pytest

from coding_gym.calls import ToolCall
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools import get_toolset
from coding_gym.tools.formats import TOOL_FORMATS, ParsedAction, parse_action, render_calls

SCHEMAS = get_toolset("nano").schemas
LS_JSON = '{"name": "shell", "arguments": {"cmd": "ls"}}'


def parse(text: str, tool_format: str = "auto") -> ParsedAction:
    return parse_action(text, tool_format, SCHEMAS)


def test_what_is_not_json_cannot_be_rendered() -> None:
    for value in (float("nan"), b"ls", {1, 2}):
        with pytest.raises(InvalidArgumentError, match="arguments must be JSON values"):
            render_calls([ToolCall("shell", {"cmd": value})])


def test_no_text_makes_reading_raise() -> None:
    rng = random.Random(4)
    pieces = ["<tool_call>", "</tool_call>", *'{}[]:,"\\ \n', '"name"', '"arguments"', '"shell"']
    pieces += [
        "```json\n",
        "\n```",
        "<think>",
        "</think>",
        "1e999",
        "NaN",
        "\ud800",
        '"tool_calls"',
        "<function=shell>",
        "<function=",
        "</function>",
        "<parameter=cmd>",
        "</parameter>",
        "<|python_tag|>",
        "[TOOL_CALLS]",
        "shell[ARGS]",
        "\n```bash\n",
        "\n*** Begin Patch\n",
        "\n*** End Patch",
        ";",
    ]
    pieces += ["<|channel|>", "commentary to=functions.shell", "<|message|>", "<|tool_call_begin|>"]
    pieces += ["functions.shell:0<|tool_call_argument_begin|>", "<|tool_call_end|>", "shell(cmd="]
    pieces += ['<invoke name="shell">', '<parameter name="cmd">', "</invoke>", "<arg_key>cmd", "["]
    pieces += ["</arg_key>", "<arg_value>", "]<]minimax[>[", "<|tool_call>call:shell{", '<|"|>']
    pieces += ['<|open|>call tool="shell"', "<|sep|>", "<|tool_call_start|>", "<code>", "'", "cmd:"]
    pieces += ['"function"', "null", LS_JSON, '"\\ud800"', "x", "\x85", "\u2028"]
    for number in range(700):
        text = "".join(rng.choices(pieces, k=rng.randrange(25)))
        for tool_format in TOOL_FORMATS:
            name = tool_format + "[strict]" * (number % 2)
            parsed = parse_action(text, name, SCHEMAS, text_formats=("bash_block", "apply_patch"))
            assert len(parsed.error.splitlines()) <= 1
            json.dumps([call.to_json() for call in parsed.calls], allow_nan=False)
            (parsed.text + parsed.error).encode()


LONG = 300_000  # characters; work that grows with their square would take minutes
ANYTHING = [*'[ \n\\"é', '{"a":', "<tool_call>", '<tool_call>["', "{}", "```json\n"]
STARTS = ["", "{", '{"name": "shell", "arguments": {"cmd": "', "<tool_call>["]


def test_a_long_text_of_anything_is_answered() -> None:
    for start, unit in itertools.product(STARTS, ANYTHING):
        text = start + unit * (LONG // len(unit))
        assert parse(text).calls == (), (start, unit)


def test_a_long_text_of_what_only_looks_like_calls_is_answered() -> None:
    for tool_format, start, unit in (
        ("auto", "<function=", "a"),
        ("auto", "<function=shell>", " x"),
        ("auto", "<function=shell><parameter=cmd>", "\n"),
        ("auto", "<function=shell><parameter=cmd>", "\n</function>x"),
        ("auto", "<function=shell><parameter=cmd>", "\n<parameter=other>"),
        ("auto", "", "<function=shell>"),
        ("auto", "", "\n<parameter=cmd>"),
        ("auto", "", "<tool_call>\n<function=shell>\n"),
        ("auto", "", "[TOOL_CALLS]"),
        ("auto", "[TOOL_CALLS]", "a"),
        ("auto", "[TOOL_CALLS]", "["),
        ("auto", "<|python_tag|>", "{};"),
        ("auto", "<|python_tag|>", ";"),
        ("auto", "", "```bash\n"),
        ("bash_block", "", "```bash\n"),
        ("bash_block", "", "```bash\n```\n"),
        ("apply_patch", "", "*** Begin Patch\n"),
        ("auto", "<|channel|>", "to="),
        ("auto", "", "<|tool_call_begin|>functions.shell:0<|tool_call_argument_begin|>{"),
        ("auto", "<tool_call>shell<arg_key>cmd</arg_key><arg_value>", "</arg_value>"),
        ("auto", "", "]<]minimax[>[<a>"),
        ("auto", "[shell(cmd=", "'a'\n"),
        ("auto", "", "\n[shell("),
        ("auto", "<|tool_call>call:shell{cmd:", '<|"|>'),
        ("auto", "x", "to=functions."),
        ("auto", "<|channel|>final<|message|>a", " "),
        ("auto", "a", ' \n{"name": 1}'),
        ("auto", "a", "\n{"),
        ("auto", "", "<|im_end|>"),
        ("auto", "", "x</think>"),
        ("auto", "<tool_call>", "x</think>"),
    ):
        for end in ("", 'x\n{"name": "x", "arguments": 1}x'):
            text = start + unit * (LONG // len(unit)) + end
            parsed = parse_action(text, tool_format, SCHEMAS, text_formats=["bash_block"])
            assert parsed.calls == (), (tool_format, start, unit, end)


def test_quotes_and_brackets_that_never_close_are_answered() -> None:
    starts = ['{"name": "shell", "arguments": {"cmd": ', "[TOOL_CALLS]shell[ARGS]{", "<tool_call>{"]
    units = ['"\\', '\\"', '["', '{"', "(", '{"name"', "[TOOL_CALLS][", "// \n "]
    units += ['"', "{}", '{"a":1}', "]", '"",', "\\"]
    for size, start, unit in itertools.product([8_000, LONG], starts, units):
        assert parse(start + unit * (size // len(unit))).calls == (), (size, start, unit)


def test_a_megabyte_of_argument_is_read() -> None:
    calls = (ToolCall("shell", {"cmd": "é\n" * 500_000}, "call_0"),)
    for tool_format in (
        "openai",
        "json",
        "hermes",
        "harmony",
        "qwen3_coder",
        "gemma4",
        "bash_block",
    ):
        text = render_calls(calls, tool_format, SCHEMAS)
        assert parse(text, tool_format).calls == calls


def test_lone_surrogates_are_replaced() -> None:
    text = '\ud800<tool_call>{"name": "shell", "arguments": {"cmd": "\\udfff"}}</tool_call>'
    parsed = parse(text)
    assert parsed.text == "\ufffd"
    assert parsed.calls == (ToolCall("shell", {"cmd": "\ufffd"}, "call_0"),)
