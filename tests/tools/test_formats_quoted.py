"""Calls that are thought of, quoted or unfinished never run, and a broken call never hides."""

import json
from typing import Any

import pytest

from coding_gym.tools.formats import ParsedAction, parse_action
from coding_gym.tools.schemas import function, integer

SCHEMAS = (
    function("bash", "", command=""),
    function("shell", "", cmd=""),
    function("rewrite", "", optional=("old_code", "line"), path="", new_code="", line=integer("")),
)


def hermes(command: str) -> str:
    return f'<tool_call>{{"name": "bash", "arguments": {{"command": "{command}"}}}}</tool_call>'


def parse(text: str, tool_format: str = "auto") -> ParsedAction:
    return parse_action(text, tool_format, SCHEMAS)


def ran(text: str, tool_format: str = "auto") -> list[Any]:
    """The arguments of the calls that can be run, the only one of each as it is."""
    calls = parse(text, tool_format).calls
    return [next(iter(call.arguments.values()), None) for call in calls if not call.error]


LS = hermes("ls")
PYTHON = "[bash(command='rm -rf src')]"
REWRITE = '{"name": "rewrite", "arguments": {"path": "a.py", "new_code": "    return 1"'


@pytest.mark.parametrize(
    "text",
    [
        f"Maybe {hermes('git checkout .')} would undo it, no.\n</think>\n\n{LS}",
        f"{hermes('git checkout .')}? No.\n</think>\n\n{LS}",
        f"Maybe {hermes('echo </think>')}, no.\n</think>\n\n{LS}",
        f"I may write <tool_call>.\n</think>\n{LS}",
        f"{{'a': 1}} is it.\n</think>\n{LS}",
        f"Or\n```json\n{REWRITE}}}}}\n```\n?\n</think>\n{LS}",
        f"<|channel>thought\nMaybe {hermes('git checkout .')}.\n<channel|>{LS}",
        f"Maybe {hermes('git checkout .')}.\n<channel|>{LS}",
    ],
)
def test_calls_in_reasoning_are_not_run(text: str) -> None:
    assert ran(text) == ["ls"]
    assert parse(text).text.endswith(("</think>", "<channel|>"))


def test_an_argument_may_hold_the_mark_that_closes_reasoning() -> None:
    for text in (
        hermes("echo </think>"),
        f"I look.\n{hermes('echo </think>')}",
        f"Hm.\n</think>\n{hermes('echo </think>')}",
        '{"name": "bash", "arguments": {"command": "echo </think>"}}',
        'I look:\n{"name": "bash", "arguments": {"command": "echo </think>"}}',
        json.dumps({"role": "assistant", "content": f"Hm.</think>\n{hermes('echo </think>')}"}),
    ):
        assert ran(text) == ["echo </think>"], text
    half = f'<tool_call>{{"name": "bash", "arguments": {{"command": "</think>{LS}'
    assert ran(half) == []
    assert parse(half).error


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>\n{REWRITE}",
        f"<tool_call>\n{REWRITE}}}",
        REWRITE,
        f"{REWRITE}}}",
        f"I look.\n{REWRITE}",
        f"[{REWRITE}}}}}",
        f"```json\n{REWRITE}",
        f"[TOOL_CALLS][{REWRITE}",
        f"[TOOL_CALLS]rewrite[ARGS]{REWRITE.partition('arguments')[2][3:]}",
        "{'name': 'rewrite', 'arguments': {'path': 'a.py', 'new_code': 'x'",
        "<function=rewrite>\n<parameter=path>\na.py\n</parameter>\n",
        "<tool_call>\n<function=rewrite>\n<parameter=path>\na.py\n</parameter>",
    ],
)
def test_a_reply_that_is_cut_off_is_a_format_error(text: str) -> None:
    assert ran(text) == []
    assert "cut off" in parse(text).error


@pytest.mark.parametrize(
    "text",
    [
        'I look.\n```json\n{"name": "shell", "parameters": {"cmd": "ls}\n```',
        'I look. ```json {"name": "shell", "parameters": {"cmd": "ls}```',
        'I look.\n{"name": "shell", "parameters": {"cmd": "ls"}}\nThen I go on.',
        'I look.\n{"type": "tool_use", "name": "shell", "input": {"cmd": "ls',
        'I look. {"type": "tool_use", "name": "shell", "input": {"cmd": "ls',
        'I look.\n{"name": "shell", "parameters": {"cmd": "ls"',
        'commentary to=functions.shell json {"cmd": "ls"}',
        'shell<\uff5ctool▁sep\uff5c>{"cmd": "ls"}<\uff5ctool▁call▁end\uff5c>',
        "shell<arg_key>cmd</arg_key><arg_value>ls</arg_value></tool_call>",
        "<parameter=cmd>ls</parameter></function>",
        "call:shell{cmd:<escape>ls<escape>}<end_function_call>",
        'to=shell<|message|>{"cmd": "ls"}',
    ],
)
def test_broken_calls_of_any_shape_are_format_errors(text: str) -> None:
    assert parse(text).calls == ()
    assert parse(text).error


def test_calls_within_a_text_are_not_run() -> None:
    for text in (
        f"The form is, for example\n{PYTHON}\nbut I have a question first.",
        "Write <code>bash(command='rm -rf src')</code> to delete it? I will not.",
        "<code>bash(command='rm -rf src')</code> deletes it.",
        'I must not reply with {"name": "bash", "arguments": {"command": "rm -rf src"}}',
    ):
        assert ran(text) == [], text
    for text in (
        PYTHON,
        f"{PYTHON}\nThat is it.",
        f"That is it:\n{PYTHON}",
        "That is it:\n<code>bash(command='rm -rf src')</code>",
    ):
        assert ran(text) == ["rm -rf src"], text


def test_nothing_behind_an_unreadable_call_with_a_mark_in_it_is_run() -> None:
    quoted = f"Use {hermes('a')} or {hermes('rm -rf src')}"
    for held in (quoted, f"</tool_call> or {hermes('rm -rf src')}"):
        broken = f'<tool_call>{{"name": "rewrite", "arguments": {{"path": "{held}"}}}}</tool_call>'
        assert ran(broken) == []
        assert ran(f"{LS}{broken}{LS}") == ["ls"]
    parsed = parse(f"I look.\n{LS}\n<tool_call>oops</tool_call>\n{LS}")
    assert [call.name for call in parsed.calls] == ["bash", "", "bash"]
    assert parsed.text == "I look.\n\n<tool_call>oops</tool_call>"


def test_prose_does_not_hide_a_call() -> None:
    assert ran(f"{{'a': 1}} is what it returns.\n{LS}") == ["ls"]
    assert ran(f"{{'name': 'bash', 'arguments': {{'x': 1}}}}}} and\n{LS}") == []
    bare = '{"name": "bash", "arguments": {"command": "ls"}}'
    for shown in ("[1, 2] is it.", '{"a": 1} is it.', "[1](x) is it."):
        assert (ran(f"{shown}\n{bare}"), parse(f"{shown}\n{bare}").text) == (["ls"], shown)
    message = {"role": "assistant", "content": f"I look.\n{LS}", "reasoning": "Hm."}
    parsed = parse(json.dumps(message))
    assert (ran(json.dumps(message)), parsed.text, parsed.reasoning) == (["ls"], "I look.", "Hm.")
    python = "```python\nprint(bash(command='a'))\n```\n<tool_call>[bash(command='ls')]</tool_call>"
    assert ran(python, "nanoagent_python") == ["ls"]
    assert ran("```python\nbash(command='ls')\n```", "nanoagent_python") == ["ls"]


def test_prose_is_no_call_and_keeps_no_stop_token() -> None:
    shown = 'See:\n```json\n{"name": "demo", "type": "module"}\n```'
    assert parse(shown) == ParsedAction(text=shown)
    assert parse("I am done.<|im_end|>") == ParsedAction(text="I am done.")
    final = "<|channel|>final<|message|>I wrote to=functions.bash in it.<|return|>"
    assert parse(final) == ParsedAction(text="I wrote to=functions.bash in it.")


def test_values_have_the_type_of_their_argument() -> None:
    for null in ("None", "null"):
        text = f"<function=rewrite><parameter=line>{null}</parameter></function>"
        assert parse(text).calls[0].arguments == {"line": None}
    for value in ("12", "true"):
        text = f"<|tool_call>call:bash{{command:{value}}}<tool_call|>"
        assert parse(text).calls[0].arguments == {"command": value}
