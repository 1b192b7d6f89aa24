"""What is read of a policy's text, whatever it writes; nothing that it writes raises."""

import itertools
import json
import random
from typing import Any

import pytest

from coding_gym.calls import ToolCall
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools import get_toolset
from coding_gym.tools.formats import TOOL_FORMATS, ParsedAction, parse_action, render_calls
from coding_gym.tools.schemas import function as schema

SCHEMAS = get_toolset("nano").schemas
LS = ToolCall("shell", {"cmd": "ls"}, "call_0")
LS_JSON = '{"name": "shell", "arguments": {"cmd": "ls"}}'


def parse(text: str, tool_format: str = "auto") -> ParsedAction:
    return parse_action(text, tool_format, SCHEMAS)


def message(*calls: Any, **extra: Any) -> str:
    return json.dumps({"role": "assistant", "content": None, "tool_calls": list(calls)} | extra)


def function(name: str, arguments: Any, **extra: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}} | extra


def test_one_call_is_read_in_every_way_it_may_be_written() -> None:
    for text in [
        LS_JSON,
        f"  [{LS_JSON}]\n",
        f"I look around.\n```json\n{LS_JSON}\n```",
        f"```\n{LS_JSON}\n```",
        f"```json\n{LS_JSON}",
        f"<think>\nWhere am I?\n</think>\n{LS_JSON}",
        f"<tool_call>{LS_JSON}</tool_call>",
        f"<tool_call>\n[{LS_JSON}]\n</tool_call>",
        f"<think>a <tool_call>x</tool_call></think>\nNow:\n<tool_call>{LS_JSON}</tool_call> ok?",
        f"<tool_call>{LS_JSON}",
        f"[sic] <tool_call>{LS_JSON}</tool_call>",
        message(function("shell", '{"cmd": "ls"}')),
        message(function("shell", {"cmd": "ls"})),
        json.dumps([function("shell", '{"cmd": "ls"}')]),
        json.dumps(function("shell", '{"cmd": "ls"}')),
        '{"name": "shell", "parameters": {"cmd": "ls"}}',
    ]:
        assert parse(text).calls == (LS,), text
        assert parse(text).error == "", text


def test_several_calls_keep_their_order() -> None:
    submit = '{"name": "submit", "arguments": {}}'
    texts = (
        f"[{LS_JSON}, {submit}]",
        f"{LS_JSON}\n{submit}",
        f"```json\n{LS_JSON}\n```\nthen\n```json\n{submit}\n```",
        f"<tool_call>{LS_JSON}</tool_call>\n<tool_call>{submit}</tool_call>",
        f"<tool_call>[{LS_JSON}, {submit}]</tool_call>",
        f"<tool_call>{LS_JSON}<tool_call>{submit}",
        message(function("shell", {"cmd": "ls"}), function("submit", "")),
    )
    for text in texts:
        assert parse(text).calls == (LS, ToolCall("submit", {}, "call_1"))


def test_what_is_said_beside_the_calls_is_kept() -> None:
    assert parse(f"First.\n<tool_call>{LS_JSON}</tool_call>\nLast.").text == "First.\n\nLast."
    assert parse(f"First.\n```json\n{LS_JSON}\n```\nLast.").text == "First.\nLast."
    assert parse(f"<think>Hm.</think>\n{LS_JSON}").text == "<think>Hm.</think>"
    assert parse(message(function("submit", {}), content="Done.")).text == "Done."
    parts = [{"type": "text", "text": "Done."}, {"type": "image_url"}]
    assert parse(message(function("submit", {}), content=parts)).text == "Done."


def test_a_reply_without_a_call_is_not_an_error() -> None:
    for text in [
        "",
        "All tests pass now.",
        '{"role": "assistant", "content": "All tests pass now."}',
        "[]",
        "[1] is the page I read.",
        "Use <code>foo(x)</code> here.",
        "[link(a)](https://example.org)",
        "[foo(1)] is what I saw.",
        "<|channel|>final<|message|>All tests pass.<|return|>",
        'The object {"name": "x", "version": 1} is not a call.',
        'The "name" field was wrong.',
        '```json\n{"name": "demo", "version": "1.0"}\n```',
        '```\n{"name": ...}\n```',
        "<think>Nothing left to do.",
    ]:
        parsed = parse(text)
        assert (parsed.calls, parsed.error) == ((), ""), text


def test_an_attempt_that_cannot_be_read_says_why_in_one_line() -> None:
    for text, said in [
        ("<tool_call>ls</tool_call>", "Expecting value: line 1 column 1 (char 0). Expected <tool"),
        ("<tool_call name='shell'>ls", 'Expected {"name"'),
        ('{"name": "shell", "cmd": "ls"}', 'Expected {"name"'),
        ('{"tool": "shell"}', 'Expected {"name"'),
        ('{"output": ["shell"]}', 'Expected {"name"'),
        (f'{LS_JSON}<tool_call>{{"name": "submit"}}</tool_call>', 'Expected {"name"'),
        ('{"name": "shell", "arguments": {"cmd": "rm -rf /tmp/a', "Unterminated string"),
        ('{"name": "shell", "arguments": {"cmd": NaN}}', "NaN is not JSON"),
        ('{"name": "shell", "arguments": {"cmd": 1e999}}', "out of range"),
        (f'{{"name": "shell", "arguments": {{"n": {"1" * 2000}}}}}', "number of 2000 digits"),
        (f'{{"name": "shell", "arguments": {"[" * 200_000}', "nested too deeply"),
        (f'{{"name": "shell", "arguments": {"[" * 99}{"]" * 99}}}', "nested more than 64 deep"),
        ('<tool_call>{"name": 3, "arguments": {}}</tool_call>', "got an object with name, argum"),
        ('<tool_call>{"name": "", "arguments": {}}</tool_call>', '"name" must be the name'),
        ("<tool_call>[7]</tool_call>", "got a number"),
        ('{"role": "assistant", "tool_calls": "ls"}', '"tool_calls" must be a list'),
        (f"{LS_JSON} " * 129, "more than 128 calls"),
        (f"<tool_call>{LS_JSON}</tool_call>" * 129, "more than 128 calls"),
        (f"<tool_call>[{', '.join([LS_JSON] * 129)}]</tool_call>", "129 calls in one reply"),
        ("<think>I call <tool_call> with", "No tool call was found after </think>"),
        ('```json\n{"name": "shell", "arguments": {"cmd": "ls\n```', "Unterminated string"),
    ]:
        parsed = parse(text)
        assert parsed.calls == (), (text, said)
        assert said in parsed.error, (text, said)
        assert "\n" not in parsed.error, (text, said)


def test_broken_json_is_repaired_only_for_tools_that_exist() -> None:
    for text in [
        '{"name": "shell", "arguments": {"cmd": "ls"}}}',
        '{"name": "shell", "arguments": {"cmd": "ls",}}',
        "{'name': 'shell', 'arguments': {'cmd': 'ls'}}",
        '<tool_call>{"name": "shell", "arguments": {"cmd": "ls"}}}</tool_call>',
        '```json\n{"name": "shell", "arguments": {"cmd": "ls",}}\n```',
    ]:
        assert parse(text).calls == (LS,), text
        assert parse_action(text, "auto", [schema("bash", "", command="")]).calls == (), text
        assert parse_action(text, "auto").calls == (), text
        assert parse_action(text, "auto").error, text


def test_arguments_in_a_string_are_never_repaired() -> None:
    (call,) = parse(message(function("shell", '{"cmd": "rm -r build', id="a"))).calls
    assert (call.name, call.call_id, call.arguments) == ("shell", "a", {})
    assert call.error == "Unterminated string starting at: line 1 column 9 (char 8)"


def test_arguments_that_are_no_object_give_a_call_with_an_error() -> None:
    for arguments, error in [
        ([1], "expected an object, got a list"),
        (7, "expected an object, got a number"),
        (True, "expected an object, got a boolean"),
        ('"ls"', "expected an object, got a string"),
        ("{} {}", "Extra data: line 1 column 3 (char 2)"),
    ]:
        for text in (
            message(function("shell", arguments)),
            json.dumps({"name": "shell", "arguments": arguments}),
        ):
            assert parse(text).calls == (ToolCall("shell", {}, "call_0", error),)


def test_ids_are_kept_where_given_and_always_differ() -> None:
    ids = [None, "call_0", "x", "x", ""]
    text = message(*(function("submit", {}, id=given) for given in ids))
    assert [c.call_id for c in parse(text).calls] == ["call_0_", "call_0", "x", "call_3", "call_4"]


def test_a_message_keeps_its_reasoning_and_the_strings_of_its_arguments() -> None:
    for key in ("reasoning_content", "reasoning"):
        text = message(function("shell", '{"cmd":  "ls"}'), **{key: "Hm.", "content": "Now."})
        parsed = parse(text)
        assert (parsed.text, parsed.reasoning, parsed.calls) == ("Now.", "Hm.", (LS,))
        assert parsed.calls[0].arguments_text == '{"cmd":  "ls"}'
        assert ToolCall.from_json(parsed.calls[0].to_json()).arguments_text == '{"cmd":  "ls"}'
    assert "arguments_text" not in LS.to_json()


def test_what_is_not_json_cannot_be_rendered() -> None:
    for value in (float("nan"), b"ls", {1, 2}):
        with pytest.raises(InvalidArgumentError, match="arguments must be JSON values"):
            render_calls([ToolCall("shell", {"cmd": value})])


def test_no_text_makes_reading_raise() -> None:
    rng = random.Random(4)
    pieces = ["<tool_call>", "</tool_call>", *'{}[]:,"\\ \n', '"name"', '"arguments"', '"shell"']
    pieces += ["```json\n", "\n```", "<think>", "</think>", "1e999", "NaN", "\ud800"]
    pieces += ["<function=shell>", "<function=", "</function>", "<parameter=cmd>", "</parameter>"]
    pieces += ["<|python_tag|>", "[TOOL_CALLS]", "shell[ARGS]", "\n```bash\n", '"tool_calls"']
    pieces += ["\n*** Begin Patch\n", "\n*** End Patch", ";"]
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
