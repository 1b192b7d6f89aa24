"""Which calls are read in a policy's text, and which never are."""

import json
import random
import time
from typing import Any

import pytest

from coding_gym.calls import ToolCall
from coding_gym.tools import get_toolset
from coding_gym.tools.formats import TOOL_FORMATS, ParsedAction, parse_action, render_calls
from coding_gym.tools.schemas import array, boolean, function, integer

SCHEMAS = (
    function("bash", "Runs a command.", command="The command"),
    function(
        "edit",
        "Edits a file.",
        optional=("line", "all", "lines", "how", "ratio", "either"),
        path="The file",
        text="The text",
        line=integer("Where"),
        all=boolean("Everywhere"),
        lines=array("From and to", "integer"),
        how={"type": "object"},
        ratio={"type": "number"},
        either={"anyOf": [{"type": "integer"}, {"type": "null"}]},
    ),
    function("apply_patch", "Applies a patch.", patch="The patch"),
    function("submit", "Ends the work."),
)
LS = ToolCall("bash", {"command": "ls -la"}, "call_0")
LS_JSON = '{"name": "bash", "arguments": {"command": "ls -la"}}'
LS_PARAMETERS = '{"name": "bash", "parameters": {"command": "ls -la"}}'
SUBMIT_JSON = '{"name": "submit", "arguments": {}}'
EDIT_HALF = '{"name": "edit", "arguments": {"path": "a.py", "text": "    return 1"'
QWEN = """\
<tool_call>
<function=bash>
<parameter=command>
ls -la
</parameter>
</function>
</tool_call>"""
SWE = "<function=bash>\n<parameter=command>ls -la</parameter>\n</function>"
BLOCK = "```bash\nls -la\n```"
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-old\n+new\n*** End Patch"
PYTHON = "[bash(command='ls -la')]"


def parse(text: str, tool_format: str = "auto", **options: Any) -> ParsedAction:
    return parse_action(text, tool_format, SCHEMAS, **options)


def hermes(command: str) -> str:
    return f'<tool_call>{{"name": "bash", "arguments": {{"command": "{command}"}}}}</tool_call>'


def commands(text: str, tool_format: str = "auto") -> list[Any]:
    """Returns the first argument of every call that can run."""
    calls = parse(text, tool_format).calls
    return [next(iter(call.arguments.values()), None) for call in calls if not call.error]


def message(*calls: Any, **extra: Any) -> str:
    return json.dumps({"role": "assistant", "content": None, "tool_calls": list(calls)} | extra)


def called(name: str, arguments: Any, **extra: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}} | extra


@pytest.mark.parametrize(
    "text",
    [
        LS_JSON,
        f"  [{LS_JSON}]\n",
        f"I look around.\n```json\n{LS_JSON}\n```",
        f"```json\n{LS_JSON}",
        f"<think>\nWhere am I?\n</think>\n{LS_JSON}",
        f"<think>a <tool_call>x</tool_call></think>\nNow:\n<tool_call>{LS_JSON}</tool_call> ok?",
        f"<tool_call>{LS_JSON}",
        f"[sic] <tool_call>{LS_JSON}</tool_call>",
        message(called("bash", '{"command": "ls -la"}')),
        message(called("bash", {"command": "ls -la"})),
        json.dumps([called("bash", '{"command": "ls -la"}')]),
        LS_PARAMETERS,
    ],
)
def test_auto_reads_a_call_however_it_is_wrapped(text: str) -> None:
    assert parse(text).calls == (LS,)
    assert parse(text).error == ""


@pytest.mark.parametrize(
    "text",
    [
        f"[{LS_JSON}, {SUBMIT_JSON}]",
        f"{LS_JSON}\n{SUBMIT_JSON}",
        f"```json\n{LS_JSON}\n```\nthen\n```json\n{SUBMIT_JSON}\n```",
        f"<tool_call>{LS_JSON}</tool_call>\n<tool_call>{SUBMIT_JSON}</tool_call>",
        f"<tool_call>{LS_JSON}<tool_call>{SUBMIT_JSON}",
        message(called("bash", {"command": "ls -la"}), called("submit", "")),
    ],
)
def test_several_calls_keep_their_order(text: str) -> None:
    assert parse(text).calls == (LS, ToolCall("submit", {}, "call_1"))


def test_text_around_calls_is_kept() -> None:
    assert parse(f"First.\n<tool_call>{LS_JSON}</tool_call>\nLast.").text == "First.\n\nLast."
    assert parse(f"First.\n```json\n{LS_JSON}\n```\nLast.").text == "First.\nLast."
    assert parse(f"<think>Hm.</think>\n{LS_JSON}").text == "<think>Hm.</think>"
    parts = [{"type": "text", "text": "Done."}, {"type": "image_url"}]
    for content in ("Done.", parts):
        assert parse(message(called("submit", {}), content=content)).text == "Done."
    for shown in ("[1, 2] is it.", '{"a": 1} is it.', "[1](x) is it."):
        parsed = parse(f"{shown}\n{LS_JSON}")
        assert (parsed.calls, parsed.text) == ((LS,), shown)


@pytest.mark.parametrize(
    "text",
    [
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
        '```json\n{"name": "demo", "version": "1.0"}\n```',
        "<think>Nothing left to do.",
    ],
)
def test_prose_is_no_call_and_no_error(text: str) -> None:
    parsed = parse(text)
    assert (parsed.calls, parsed.error) == ((), "")


def test_every_format_reads_prose_as_no_call() -> None:
    for name in TOOL_FORMATS:
        parsed = parse("All tests pass now.", name)
        assert parsed.calls == ()
        assert bool(parsed.error) == (name == "bash_block")
    assert parse("I am done.<|im_end|>") == ParsedAction(text="I am done.")


@pytest.mark.parametrize(
    ("tool_format", "text"),
    [
        ("auto", "<tool_call>ls</tool_call>"),
        ("auto", '{"name": "bash", "command": "ls"}'),
        ("auto", f'{LS_JSON}<tool_call>{{"name": "submit"}}</tool_call>'),
        ("auto", '{"name": "bash", "arguments": {"command": NaN}}'),
        ("auto", '{"name": "bash", "arguments": {"command": 1e999}}'),
        ("auto", f'{{"name": "bash", "arguments": {{"n": {"1" * 2000}}}}}'),
        ("auto", f'{{"name": "bash", "arguments": {"[" * 200_000}'),
        ("auto", f'{{"name": "bash", "arguments": {"[" * 99}{"]" * 99}}}'),
        ("auto", '<tool_call>{"name": 3, "arguments": {}}</tool_call>'),
        ("auto", "<tool_call>[7]</tool_call>"),
        ("auto", '{"role": "assistant", "tool_calls": "ls"}'),
        ("auto", f"{LS_JSON} " * 129),
        ("auto", f"<tool_call>{LS_JSON}</tool_call>" * 129),
        ("auto", "<think>I call <tool_call> with"),
        ("auto", 'commentary to=functions.bash json {"command": "ls"}'),
        ("auto", 'bash<\uff5ctool▁sep\uff5c>{"command": "ls"}<\uff5ctool▁call▁end\uff5c>'),
        ("auto", "bash<arg_key>command</arg_key><arg_value>ls</arg_value></tool_call>"),
        ("auto", "call:bash{command:<escape>ls<escape>}<end_function_call>"),
        ("auto", 'I look.\n{"name": "bash", "parameters": {"command": "ls"}}\nThen I go on.'),
        ("hermes", LS_JSON),
        ("nanoagent[strict]", f"<tool_call>{LS_JSON}</tool_call>"),
        ("hermes[strict]", f"<tool_call>{LS_JSON}"),
        ("hermes[strict]", f"<tool_call>{LS_PARAMETERS}</tool_call>"),
        ("qwen3_coder", f"<tool_call>{LS_JSON}</tool_call>"),
        ("qwen3_coder", QWEN.replace("=bash", "=")),
        ("swe_agent", "<function=bash>\nls -la\n</function>"),
        ("swe_agent", SWE.replace("</f", "<parameter=command>a</parameter></f")),
        ("swe_agent", f"{SWE}\n" * 129),
        ("llama3", f"{LS_PARAMETERS};" * 129),
        ("json", f"{LS_JSON} and {LS_JSON}"),
        ("mistral", "[TOOL_CALLS]ls"),
        ("mistral", f"[TOOL_CALLS][{LS_JSON}] done"),
        ("bash_block", "I look."),
        ("bash_block", f"{BLOCK}\n{BLOCK}"),
        ("bash_block", "```bash\ncat <<EOF\n```python\nEOF\n```"),
        ("apply_patch", PATCH[:-1]),
        ("apply_patch", f"{PATCH}\n" * 129),
    ],
)
def test_an_unreadable_call_is_an_error_of_one_line(tool_format: str, text: str) -> None:
    parsed = parse(text, tool_format)
    assert parsed.calls == ()
    assert len(parsed.error.splitlines()) == 1
    assert "xpected" in parsed.error


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>\n{EDIT_HALF}",
        EDIT_HALF,
        f"I look.\n{EDIT_HALF}",
        f"```json\n{EDIT_HALF}",
        f"[TOOL_CALLS][{EDIT_HALF}",
        f"[TOOL_CALLS]edit[ARGS]{EDIT_HALF.partition('arguments')[2][3:]}",
        "<function=edit>\n<parameter=path>\na.py\n</parameter>\n",
        "<tool_call>\n<function=edit>\n<parameter=path>\na.py\n</parameter>",
        '{"name": "bash", "arguments": {"command": "ls -',
    ],
)
def test_half_a_command_never_runs(text: str) -> None:
    assert commands(text) == []
    assert parse(text).error


@pytest.mark.parametrize(
    "text",
    [
        f"Maybe {hermes('git checkout .')} would undo it, no.\n</think>\n\n{hermes('ls')}",
        f"Maybe {hermes('echo </think>')}, no.\n</think>\n\n{hermes('ls')}",
        f"I may write <tool_call>.\n</think>\n{hermes('ls')}",
        f"Or\n```json\n{EDIT_HALF}}}}}\n```\n?\n</think>\n{hermes('ls')}",
        f"<|channel>thought\nMaybe {hermes('git checkout .')}.\n<channel|>{hermes('ls')}",
    ],
)
def test_calls_in_reasoning_never_run(text: str) -> None:
    assert commands(text) == ["ls"]
    assert parse(text).text.endswith(("</think>", "<channel|>"))


def test_an_argument_may_hold_the_end_of_reasoning() -> None:
    for text in (
        hermes("echo </think>"),
        f"Hm.\n</think>\n{hermes('echo </think>')}",
        'I look:\n{"name": "bash", "arguments": {"command": "echo </think>"}}',
        json.dumps({"role": "assistant", "content": f"Hm.</think>\n{hermes('echo </think>')}"}),
    ):
        assert commands(text) == ["echo </think>"], text


def test_quoted_calls_never_run() -> None:
    for text in (
        f"The form is, for example\n{PYTHON}\nbut I have a question first.",
        "Write <code>bash(command='rm -rf src')</code> to delete it? I will not.",
        "I must not reply with " + LS_JSON,
    ):
        assert commands(text) == [], text
    for text in (PYTHON, f"{PYTHON}\nThat is it.", f"That is it:\n{PYTHON}"):
        assert commands(text) == ["ls -la"], text


def test_no_call_inside_another_call_runs() -> None:
    for submit in (
        '<tool_call>{"name": "submit", "arguments": {}}</tool_call>',
        "<function=submit>\n</function>",
        "[TOOL_CALLS]submit[ARGS]{}",
        f"\n```json\n{SUBMIT_JSON}\n```\n",
        "\n```bash\nsubmit\n```\n",
    ):
        inside = json.dumps(submit)[1:-1]
        for whole in (
            f'{{"name": "bash", "arguments": {{"command": "{inside}"}}}}',
            f'<tool_call>{{"name": "bash", "arguments": {{"command": "{inside}"}}}}</tool_call>',
            f'[TOOL_CALLS]bash[ARGS]{{"command": "{inside}"}}',
            f"<function=bash>\n<parameter=command>a {submit}\n</parameter>\n</function>",
        ):
            (call,) = parse(whole, text_formats=("bash_block",)).calls
            assert call.name == "bash"
        for half in (
            f'{{"name": "bash", "arguments": {{"command": "{submit}',
            f'[TOOL_CALLS]bash[ARGS]{{"command": "{submit}',
            f"<function=bash>\n<parameter=command>a {submit}",
        ):
            calls = parse(half, text_formats=("bash_block",)).calls
            assert "submit" not in [call.name for call in calls]


def test_no_call_behind_an_unreadable_one_with_a_mark_runs() -> None:
    quoted = f"Use {hermes('a')} or {hermes('rm -rf src')}"
    for held in (quoted, f"</tool_call> or {hermes('rm -rf src')}"):
        broken = f'<tool_call>{{"name": "edit", "arguments": {{"path": "{held}"}}}}</tool_call>'
        assert commands(broken) == []
        assert commands(f"{hermes('ls')}{broken}{hermes('ls')}") == ["ls"]
    parsed = parse(f"I look.\n{hermes('ls')}\n<tool_call>oops</tool_call>\n{hermes('ls')}")
    assert [call.name for call in parsed.calls] == ["bash", "", "bash"]


def test_auto_reads_blocks_and_patches_only_for_their_toolsets() -> None:
    for text, name in ((BLOCK, "bash_block"), (PATCH, "apply_patch")):
        prose = f"I would run\n{text}\nnow."
        assert parse(prose) == ParsedAction(text=prose)
        (call,) = parse(prose, text_formats=(name,)).calls
        assert call.name == name.replace("bash_block", "bash")
        assert parse(f"{prose}\n{QWEN}", text_formats=(name,)).calls == (LS,)
    for held in (f"<tool_call>{LS_JSON}</tool_call>", SWE, "[TOOL_CALLS]", "<|python_tag|>"):
        command = f"cat <<'EOF'\n{held}\nEOF"
        (call,) = parse(f"I look.\n```bash\n{command}\n```", text_formats=("bash_block",)).calls
        assert call.arguments == {"command": command}


def test_a_patch_is_read_with_its_envelope() -> None:
    parsed = parse(f"First.\n```\n{PATCH}\n```\nThen.\n{PATCH}\nDone.", "apply_patch")
    assert [(c.name, c.arguments) for c in parsed.calls] == [("apply_patch", {"patch": PATCH})] * 2
    assert parsed.text == "First.\n```\n```\nThen.\nDone."
    assert parse_action(PATCH, "apply_patch", get_toolset("nano").schemas).calls == ()


def test_a_block_may_name_a_tool_without_arguments() -> None:
    assert parse("```bash\nsubmit\n```", "bash_block").calls == (ToolCall("submit", {}, "call_0"),)
    assert parse("```bash\nedit\n```", "bash_block").calls[0].arguments == {"command": "edit"}


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
    for text in ("seven", "7.0", "[1, 2", "true", "", "1" * 2000):
        (call,) = parse(f"<function=edit><parameter=line>{text}</parameter></function>").calls
        assert call.arguments == {"line": text}, text


def test_one_line_end_at_each_side_belongs_to_the_tags() -> None:
    for text, value in {"\na\n": "a", "\n\n  a\n\n": "\n  a\n", "\n": "", "a\n": "a"}.items():
        (call,) = parse(f"<function=bash><parameter=command>{text}</parameter></function>").calls
        assert call.arguments == {"command": value}


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (f"{LS_JSON}}}", "ls -la"),
        (f"<tool_call>{LS_JSON[:-1]}</tool_call>", "ls -la"),
        (LS_JSON.replace('"', "'"), "ls -la"),
        (LS_JSON.replace("}}", ",},}"), "ls -la"),
        ('{"name": "bash", "arguments": {"command": "echo "hi" > f"}}', 'echo "hi" > f'),
        (f"{LS_JSON}\n{LS_JSON} done", None),  # one of the two would be dropped
        ('{"name": "bash", "arguments": {"command": "ls\\n"},}}', None),  # its end would be cut
        ('{"name": "bash", "arguments": {"command": "ls [a]', None),
    ],
)
def test_repaired_json_keeps_every_string(text: str, command: str | None) -> None:
    assert commands(text) == ([] if command is None else [command])
    assert bool(parse(text).error) == (command is None)
    assert parse_action(text, "auto").calls == ()  # for unknown tools nothing is repaired


def test_arguments_in_a_string_are_never_repaired() -> None:
    (call,) = parse(message(called("bash", '{"command": "rm -r build', id="a"))).calls
    assert (call.name, call.call_id, call.arguments) == ("bash", "a", {})
    assert call.error
    for arguments in ([1], 7, True, '"ls"', "{} {}"):
        (call,) = parse(message(called("bash", arguments))).calls
        assert (call.arguments, bool(call.error)) == ({}, True)


def test_ids_are_kept_and_always_differ() -> None:
    ids = [None, "call_0", "x", "x", ""]
    calls = parse(message(*(called("submit", {}, id=each) for each in ids))).calls
    assert [c.call_id for c in calls] == ["call_0_", "call_0", "x", "call_3", "call_4"]


def test_a_message_keeps_reasoning_and_argument_text() -> None:
    for key in ("reasoning_content", "reasoning"):
        text = message(called("bash", '{"command":  "ls"}'), **{key: "Hm.", "content": "Now."})
        parsed = parse(text)
        assert (parsed.text, parsed.reasoning) == ("Now.", "Hm.")
        assert parsed.calls[0].arguments_text == '{"command":  "ls"}'
        assert ToolCall.from_json(parsed.calls[0].to_json()).arguments_text == '{"command":  "ls"}'


def test_a_megabyte_of_argument_is_read() -> None:
    calls = (ToolCall("bash", {"command": "é\n" * 500_000}, "call_0"),)
    for name in ("openai", "json", "hermes", "harmony", "qwen3_coder", "gemma4", "bash_block"):
        assert parse(render_calls(calls, name, SCHEMAS), name).calls == calls


def test_lone_surrogates_are_replaced() -> None:
    parsed = parse(
        '\ud800<tool_call>{"name": "bash", "arguments": {"command": "\\udfff"}}</tool_call>'
    )
    assert (parsed.text, parsed.calls[0].arguments) == ("\ufffd", {"command": "\ufffd"})


PIECES = (
    *("<tool_call>", "</tool_call>", *'{}[]:,"\\ \n', '"name"', '"arguments"', '"bash"', "x", "'"),
    *("```json\n", "\n```", "<think>", "</think>", "1e999", "NaN", "\ud800", "\x85", "\u2028"),
    *(
        "<function=bash>",
        "<function=",
        "</function>",
        "<parameter=command>",
        "</parameter>",
        "null",
    ),
    *("<|python_tag|>", "[TOOL_CALLS]", "bash[ARGS]", "\n```bash\n", '"tool_calls"', "<code>"),
    *(
        "\n*** Begin Patch\n",
        "\n*** End Patch",
        ";",
        "<|channel|>",
        "commentary to=functions.bash",
    ),
    *("<|message|>", "<|tool_call_begin|>", "functions.bash:0<|tool_call_argument_begin|>"),
    *("<|tool_call_end|>", "bash(command=", '<invoke name="bash">', '<parameter name="command">'),
    *(
        "</invoke>",
        "<arg_key>command",
        "</arg_key>",
        "<arg_value>",
        "]<]minimax[>[",
        '<|"|>',
        "command:",
    ),
    *("<|tool_call>call:bash{", '<|open|>call tool="bash"', "<|sep|>", "<|tool_call_start|>"),
    *('"function"', "null", "command:", LS_JSON, '"\\ud800"', "//"),
)


def random_reply(rng: random.Random) -> str:
    """Returns marks in any order, a rendered call with changes, or one mark over and over."""
    if rng.random() < 0.4:
        return "".join(rng.choices(PIECES, k=rng.randrange(25)))
    if rng.random() < 0.1:
        return rng.choice(PIECES) + rng.choice(PIECES) * rng.randrange(5000)
    name = rng.choice([*{*TOOL_FORMATS} - {"apply_patch"}])
    text = render_calls([LS], name, SCHEMAS)
    for _ in range(rng.randrange(1, 4)):
        start, end = sorted(rng.choices(range(len(text) + 1), k=2))
        text = text[:start] + rng.choice([*PIECES, "", text[start:end] * 2]) + text[end:]
    return text


@pytest.mark.parametrize(
    "num_replies", [400, pytest.param(100_000, marks=pytest.mark.nightly)], ids=str
)
def test_no_reply_makes_the_parser_raise(num_replies: int, record_property: Any) -> None:
    rng = random.Random(4)
    slowest_s = 0.0
    for number in range(num_replies):
        text = random_reply(rng)
        name = rng.choice([*TOOL_FORMATS, "auto", "auto"]) + "[strict]" * (number % 5 == 0)
        start = time.perf_counter()
        parsed = parse(text, name, text_formats=("bash_block", "apply_patch"))
        slowest_s = max(slowest_s, time.perf_counter() - start)
        assert len(parsed.error.splitlines()) <= 1, (name, text)
        json.dumps([call.to_json() for call in parsed.calls], allow_nan=False)
        (parsed.text + parsed.error).encode()
    record_property("slowest_ms", slowest_s * 1e3)


LONG = 300_000  # characters; work that grows with their square would take minutes


@pytest.mark.parametrize(
    "start", ["", "{", '{"name": "bash", "arguments": {"command": "', "<tool_call>"]
)
def test_long_replies_are_answered(start: str) -> None:
    for unit in (*'[ \n\\"é', '{"a":', '<tool_call>["', "{}", "```json\n", '{"', "x</think>", "//"):
        assert parse(start + unit * (LONG // len(unit))).calls == (), (start, unit)
    for unit in PIECES:
        parse(start + unit * (30_000 // len(unit)), text_formats=("bash_block",))
