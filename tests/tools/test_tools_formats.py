import json
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools import get_toolset
from coding_gym.tools.formats import ParsedAction, parse_action
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
