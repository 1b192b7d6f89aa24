"""Reading of calls in a policy's text; text without calls; format errors."""

import json
import re
from ast import literal_eval
from typing import Any

import pytest

from coding_gym.calls import ToolCall
from coding_gym.tools.formats import ParsedAction, ReplyParser
from coding_gym.tools.formats.table import FORMATS
from coding_gym.tools.schemas import array, boolean, function, integer

SCHEMAS = (
    function("bash", "Runs a command.", {"command": "The command"}),
    function(
        "edit",
        "Edits a file.",
        {
            "path": "The file",
            "text": "The text",
            "line": integer("Where"),
            "all": boolean("Everywhere"),
            "lines": array("From and to", "integer"),
            "how": {"type": "object"},
            "ratio": {"type": "number"},
            "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        optional=("line", "all", "lines", "how", "ratio", "either"),
    ),
    function("submit", "Ends the work.", {}),
)
LS = ToolCall("bash", {"command": "ls -la"}, "call00000")
LS_JSON = '{"name": "bash", "arguments": {"command": "ls -la"}}'
EDIT_HALF = '{"name": "edit", "arguments": {"path": "a.py", "text": "    return 1"'
SWE = "<function=bash>\n<parameter=command>ls -la</parameter>\n</function>"
BLOCK = "```bash\nls -la\n```"
PYTHON = "[bash(command='ls -la')]"


def parse(text: str, tool_format: str = "auto", **options: Any) -> ParsedAction:
    return ReplyParser(tool_format, SCHEMAS, **options).read(text)


def hermes(command: str) -> str:
    return f'<tool_call>{{"name": "bash", "arguments": {{"command": "{command}"}}}}</tool_call>'


def commands(text: str, tool_format: str = "auto") -> list[Any]:
    """Returns the first argument of every call that can run."""
    calls = parse(text, tool_format).calls
    return [next(iter(call.arguments.values()), None) for call in calls if not call.error]


def message(*calls: Any, **extra: Any) -> str:
    return json.dumps({"role": "assistant", "content": None, "tool_calls": list(calls)} | extra)


def call_entry(name: str, arguments: Any, **extra: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}} | extra


# -- What is read ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"{LS_JSON}\nThis lists the files.",
        f"{message(call_entry('bash', LS.arguments))}\nThis lists the files.",
        f"I look.\n{LS_JSON}\nThen I go on.",
        f"I look around.\n```json\n{LS_JSON}\n```\nThen I go on.",
        f"<think>a <tool_call>x</tool_call></think>\nNow:\n<tool_call>{LS_JSON}</tool_call> ok?",
        f"[sic] <tool_call>{LS_JSON}</tool_call>",
        f"In a <think> block I would call less.\n{LS_JSON}",
        f"That is it:\n{PYTHON}",
        f"<|tool_call_start|>[{LS_JSON}]<|tool_call_end|>",
        message(content=f"<tool_call>{LS_JSON}</tool_call>"),
    ],
)
def test_auto_reads_a_call_in_every_wrapping(text: str) -> None:
    assert parse(text).calls == (LS,)
    assert parse(text).error == ""


def test_text_around_calls_is_kept() -> None:
    assert parse(f"First.\n<tool_call>{LS_JSON}</tool_call>\nLast.").text == "First.\n\nLast."
    assert parse(f"<think>Hm.</think>\n{LS_JSON}").text == "<think>Hm.</think>"
    parts = [{"type": "text", "text": "Done."}, {"type": "image_url"}]
    for content in ("Done.", parts):
        assert parse(message(call_entry("submit", {}), content=content)).text == "Done."
    for prose in ("[1, 2] is it.", '{"a": 1} is it.', "[1](x) is it."):
        parsed = parse(f"{prose}\n{LS_JSON}")
        assert (parsed.calls, parsed.text) == ((LS,), prose)


@pytest.mark.parametrize(
    "text",
    [
        "All tests pass now.",
        '{"role": "assistant", "content": "All tests pass now."}',
        "[]",
        "[link(a)](https://example.org)",
        "<|channel|>final<|message|>All tests pass.<|return|>",
        'The object {"name": "x", "version": 1} is not a call.',
        '```json\n{"name": "demo", "version": "1.0"}\n```',
        'It is:\n{"name": "demo", ...}\n{"name": "other", ...}',
    ],
)
def test_prose_is_neither_a_call_nor_an_error(text: str) -> None:
    parsed = parse(text)
    assert (parsed.calls, parsed.error) == ((), "")


# -- Format errors --------------------------------------------------------------------------------

EMPTY = (
    *("", "<|im_end|>", message(), "<think>Nothing left to do.", "<think>Hm.</think>\n"),
    *(f"<think>I call {hermes('ls')}", f"<think>{hermes('ls')}</think>", f"{LS_JSON}</think>"),
)
OTHER_MARKS = (  # marks after or inside calls
    *("</tool_call>", "</function>", "</invoke>", "</function_calls>", "<|python_end|>"),
    *("<|tool_call_end|>", "<tool_call|>", "</TOOLCALL>", "<|/tool_call|>", "</tool_calls>"),
    *("<|END_ACTION|>", "<｜tool▁call▁end｜>", "<start_function_call>call:bash{command:ls}"),
)
UNREADABLE = (
    *(("auto", text) for text in EMPTY),
    ("auto", "<tool_call>two words</tool_call>"),
    ("auto", '<tool_call>{"name": "bash", "command": "ls"}</tool_call>'),
    ("auto", '{"name": "bash", "arguments": {"command": NaN}}'),
    ("auto", f'{{"name": "bash", "arguments": {{"n": {"1" * 5000}}}}}'),
    ("auto", f'{{"name": "bash", "arguments": {"[" * 200_000}'),
    ("auto", '{"role": "assistant", "tool_calls": "ls"}'),
    ("auto", f"{LS_JSON} " * 129),
    ("auto", f"<tool_call>{LS_JSON}</tool_call>\n<tool_call>oops"),
    ("auto", 'commentary to=functions.bash json {"command": "ls'),
    ("auto", 'bash<\uff5ctool▁sep\uff5c>{"command": "ls"}<\uff5ctool▁call▁end\uff5c>'),
    *(("auto", f"I ran ls.\n{mark}") for mark in OTHER_MARKS),
    ("auto", f"<tool_call>two words</tool_call>\n<think>Hm.</think>\n{hermes('ls')}"),
    ("auto", "bash<arg_key>command</arg_key><arg_value>ls</arg_value></tool_call>"),
    ("auto", f"I must not reply with {LS_JSON}"),
    ("auto", "[bash('ls')]"),
    ("auto", "[bash(command='ls'), {'arguments': 2}]"),
    ("lfm2", "<|tool_call_start|>[{'name': 3, 'arguments': {}}]<|tool_call_end|>"),
    ("hermes", LS_JSON),
    (
        "qwen3_coder",
        "<function=edit>\n<parameter=path>\na\n<parameter=text>\nb\n</parameter></function>",
    ),
    ("qwen3_coder", "<function=bash>\nls -la\n</function>"),
    ("qwen3_coder", SWE.replace("</f", "<parameter=command>a</parameter></f")),
    ("mistral", f"[TOOL_CALLS][{LS_JSON}] done"),
    ("bash_block", "I look."),
    ("bash_block", f"{BLOCK}\n{BLOCK}"),
    ("bash_block", "```bash\ncat <<EOF\n```python\nEOF\n```"),
)


@pytest.mark.parametrize(("tool_format", "text"), UNREADABLE)
def test_an_unreadable_or_empty_reply_is_a_one_line_error(tool_format: str, text: str) -> None:
    parsed = parse(text, tool_format)
    assert parsed.calls == ()
    assert len(parsed.error.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    ["'ls'", "command=f'ls'", "command='a' 'b'", "command=ls", "command=1 + 1", "command='a'.b"],
)
def test_an_error_of_a_python_like_call_quotes_the_reply(arguments: str) -> None:
    text = f"I list them:\n[bash({arguments})]"
    error = parse(text).error
    assert error.endswith(FORMATS["pythonic"].example)
    excerpt = re.search(r""", at (['"])(.*?)\1 \(character \d+\)""", error)
    assert excerpt is not None
    assert literal_eval(f"{excerpt[1]}{excerpt[2]}{excerpt[1]}") in text


@pytest.mark.parametrize(
    "value",
    [
        *(r'"\d"', r'"\s*"', r'"\."', r'"\("', r'"\'"', r'"\$x"', r'"C:\path"', '"a\nb"', '"a\tb"'),
        *('"a" + "b"', '"""ls"""', '"say "hi""', "'ls'", '"ls",', '"ls", "command": "rm"'),
        *(r'"x", "replace": \n"y"', "True", '"ls"}, {"command": "rm"'),
    ],
)
def test_invalid_json_is_an_error_in_every_format(value: str) -> None:
    arguments = f'{{"command": {value}}}'
    call = f'{{"name": "bash", "arguments": {arguments}}}'
    texts = (
        *(call, f"I look.\n{call}", f"<tool_call>{call}</tool_call>", f"[TOOL_CALLS][{call}]"),
        f"[TOOL_CALLS]bash[ARGS]{arguments}",
        f"<|channel|>commentary to=functions.bash<|message|>{arguments}<|call|>",
        f"<｜tool▁call▁begin｜>bash<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>",
    )
    for text in texts:
        parsed = parse(text)
        assert commands(text) == [], text
        assert parsed.error, text
    (call,) = parse(message(call_entry("bash", arguments, id="a"))).calls
    assert (call.call_id, call.arguments) == ("a", {})
    assert call.error


# -- Names ----------------------------------------------------------------------------------------

LEAKS = ("functions.bash", "bash<|channel|>commentary", " bash", "default_api.bash")


@pytest.mark.parametrize("name", [*LEAKS, "functions.bash:0"])
def test_names_with_parts_of_a_format_are_resolved(name: str) -> None:
    call = ToolCall(name, {"command": "ls -la"})
    assert ReplyParser("auto", SCHEMAS).read("", calls=[call]).calls == (LS,)
    assert parse(LS_JSON.replace("bash", name)).calls == (LS,)
    assert parse(message(call_entry(name, LS.arguments))).calls == (LS,)


def test_an_unknown_name_is_left_to_the_toolset() -> None:
    parsed = parse(LS_JSON.replace('"bash"', '"functions.exec"'))
    assert [call.name for call in parsed.calls] == ["exec"]
    named = ToolCall("functions.bash", {})
    schemas = [function("functions.bash", "", {})]
    assert ReplyParser("auto", schemas).read("", calls=[named]).calls[0].name == "functions.bash"


# -- Reasoning ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"Maybe {hermes('git checkout .')} would undo it, no.\n</think>\n\n{hermes('ls')}",
        f"Maybe {hermes('echo </think>')}, no.\n</think>\n\n{hermes('ls')}",
        f"I may write <tool_call>.\n</think>\n{hermes('ls')}",
        f"Or\n```json\n{EDIT_HALF}}}}}\n```\n?\n</think>\n{hermes('ls')}",
        f"<|channel>thought\nMaybe {hermes('git checkout .')}.\n<channel|>{hermes('ls')}",
        f"[THINK]Maybe {hermes('git checkout .')}.[/THINK]{hermes('ls')}",
        f"<think>A.</think>\n<think>Maybe {hermes('git checkout .')}.</think>{hermes('ls')}",
        f"<think>A.</think>\nI look.\n<think>Or\n{LS_JSON}?</think>\n{hermes('ls')}",
        f"{hermes('ls')}\n<think>Or {hermes('git checkout .')}?</think>",
    ],
)
def test_calls_in_reasoning_never_run(text: str) -> None:
    assert commands(text) == ["ls"]
    assert parse(text).text.endswith(("</think>", "<channel|>", "[/THINK]"))


# -- Blocks of bash -------------------------------------------------------------------------------


def test_auto_reads_blocks_only_for_their_toolsets() -> None:
    prose = f"I would run\n{BLOCK}\nnow."
    assert parse(prose) == ParsedAction(text=prose)
    assert parse(prose, text_formats=("bash_block",)).calls == (LS,)
    parsed = parse(f"{prose}\n{SWE}", text_formats=("bash_block",))
    assert parsed.calls == (LS,)
    for text in (f"<tool_call>{LS_JSON}</tool_call>", SWE, "[TOOL_CALLS]", "<|python_tag|>"):
        command = f"cat <<'EOF'\n{text}\nEOF"
        (call,) = parse(f"I look.\n```bash\n{command}\n```", text_formats=("bash_block",)).calls
        assert call.arguments == {"command": command}
    assert parse("```bash\nsubmit\n```", "bash_block").calls[0].name == "submit"


# -- Values, ids, messages ------------------------------------------------------------------------


def test_values_in_tags_get_the_type_of_the_schema() -> None:
    values: dict[str, tuple[str, Any]] = {
        "path": ("007", "007"),
        "text": ("  {'indented': true}\n", "  {'indented': true}\n"),
        "line": (" 7\n", 7),
        "all": ("True", True),
        "lines": ("[1, 2]", [1, 2]),
        "how": ('{"a": null}', {"a": None}),
        "ratio": ("0.5", 0.5),
        "either": ("null", None),
        "unknown": ("7", "7"),
    }
    tags = "".join(f"<parameter={key}>\n{text}\n</parameter>" for key, (text, _) in values.items())
    (call,) = parse(f"<function=edit>\n{tags}\n</function>").calls
    assert call.arguments == {key: value for key, (_, value) in values.items()}
    for text in ("seven", "[1, 2", ""):
        (call,) = parse(f"<function=edit><parameter=line>{text}</parameter></function>").calls
        assert call.arguments == {"line": text}, text


def test_one_line_end_on_each_side_of_a_value_is_removed() -> None:
    for text, value in {"\na\n": "a", "\n\n  a\n\n": "\n  a\n", "\n": "", "a\n": "a"}.items():
        (call,) = parse(f"<function=bash><parameter=command>{text}</parameter></function>").calls
        assert call.arguments == {"command": value}
    text = '<invoke name="bash"><parameter name="command">a\n</parameter></invoke>'
    assert commands(text) == ["a\n"]


def test_call_ids_are_kept_and_made_unique() -> None:
    ids = [None, "call00000", "x", "x", ""]
    text = message(*(call_entry("submit", {}, id=call_id) for call_id in ids))
    calls = ReplyParser("auto", SCHEMAS).read(text, ["y", "x", "call00003"]).calls
    ids = [call.call_id for call in calls]
    assert ids[1] == "call00000"
    assert len({*ids, "y", "x", "call00003"}) == 8
    assert all(len(call_id) == 9 and call_id.isalnum() for call_id in ids)
    (call,) = parse("[TOOL_CALLS]submit[CALL_ID]abcdefghi[ARGS]{}").calls
    assert call.call_id == "abcdefghi"


def test_arguments_of_a_message_must_be_an_object() -> None:
    for arguments in ([1], 7, True, '"ls"', "{} {}", '{"command": "rm -r build'):
        (call,) = parse(message(call_entry("bash", arguments))).calls
        assert (call.arguments, bool(call.error)) == ({}, True)
