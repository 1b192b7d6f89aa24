"""Each format reads what models write in it, and says what it expected where it cannot."""

import json
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools import get_toolset
from coding_gym.tools.formats import TOOL_FORMATS, ParsedAction, parse_action, render_calls
from coding_gym.tools.schemas import array, boolean, function, integer

NANO = get_toolset("nano").schemas
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
LLAMA = '{"name": "bash", "parameters": {"command": "ls -la"}}'
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
# As each format writes it.
WRITTEN = {
    "openai": render_calls([LS], "openai"),
    "json": LS_JSON,
    "hermes": f"<tool_call>{LS_JSON}</tool_call>",
    "nanoagent": f"<tool_call>[{LS_JSON}]</tool_call>",
    "qwen3_coder": QWEN,
    "llama3": LLAMA,
    "mistral": f"[TOOL_CALLS] [{LS_JSON}]",
    "bash_block": BLOCK,
    "swe_agent": SWE,
}


def parse(text: str, tool_format: str = "auto", **options: Any) -> ParsedAction:
    return parse_action(text, tool_format, SCHEMAS, **options)


def test_the_examples_are_what_is_rendered() -> None:
    assert WRITTEN.keys() < set(TOOL_FORMATS)
    for name, text in WRITTEN.items():
        assert render_calls([LS], name, SCHEMAS) == text


def test_a_strict_format_reads_no_other() -> None:
    for reader in WRITTEN:
        for writer, text in WRITTEN.items():
            parsed = parse(text, f"{reader}[strict]")
            assert parsed.calls == ((LS,) if reader == writer else ())
            is_prose = writer == "bash_block" != reader
            assert bool(parsed.error) == (reader != writer and not is_prose)


def test_what_models_get_wrong_is_forgiven_where_it_is_clear() -> None:
    for tool_format, text in [
        ("nanoagent", f"<tool_call>[{LS_JSON}]"),
        ("nanoagent", "<tool_call>[{'name': 'bash', 'arguments': {'command': 'ls -la'}}]"),
        ("qwen3_coder", QWEN.replace("<tool_call>\n", "")),
        ("qwen3_coder", QWEN.replace("\n</tool_call>", "")),
        ("qwen3_coder", QWEN.replace("</parameter>\n", "")),
        ("qwen3_coder", QWEN.replace("\nls -la\n", "ls -la").replace("\n", "")),
        ("llama3", f"I look. <|python_tag|>{LLAMA}<|eom_id|>"),
        ("llama3", f"[{LLAMA}]<|eot_id|>"),
        ("llama3", LS_JSON),
        ("llama3", f"{LLAMA}}}"),
        ("mistral", f"[TOOL_CALLS]{LS_JSON}"),
        ("mistral", f"I look. [TOOL_CALLS] [{LS_JSON}]</s>"),
        ("mistral", '[TOOL_CALLS]bash[ARGS]{"command": "ls -la"}'),
        ("mistral", '[TOOL_CALLS]bash{"command": "ls -la"}'),
        ("mistral", "[TOOL_CALLS]bash[ARGS]{'command': 'ls -la'}"),
        ("mistral", '[TOOL_CALLS][{"name": "bash", "arguments": {"command": "ls -la",}}]'),
        ("bash_block", BLOCK.replace("bash", "mswea_bash_command")),
        ("bash_block", f"```python\nx\n```\n{BLOCK}"),
        ("swe_agent", SWE.replace("function>", "")),
        ("swe_agent", SWE.replace("\n</function>", "")),
        ("qwen3_coder", QWEN.partition("</function>")[0]),
        ("swe_agent", SWE.replace("ls -la", "\nls -la\n")),
        ("swe_agent", "<function=bash>\n<parameter=command>\nls -la\n</function>"),
    ]:
        assert parse(text, tool_format).calls == (LS,), (tool_format, text)
        assert parse(text, tool_format).error == "", (tool_format, text)


def test_values_in_tags_have_the_type_that_the_schema_says() -> None:
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


def test_a_value_of_another_type_stays_the_text_that_it_is() -> None:
    for text in ["seven", "7.0", "[1, 2", "true", "", "1" * 2000]:
        (call,) = parse(f"<function=edit><parameter=line>{text}</parameter></function>").calls
        assert call.arguments == {"line": text}, text


def test_only_one_line_end_at_each_side_of_a_value_belongs_to_the_tags() -> None:
    for text, value in {
        "a": "a",
        "\na\n": "a",
        "\n\n  a\n\n": "\n  a\n",
        "\n": "",
        "": "",
        "\n\n": "",
        "a\n": "a",
        " \n": " ",
    }.items():
        (call,) = parse(f"<function=bash><parameter=command>{text}</parameter></function>").calls
        assert call.arguments == {"command": value}


def test_a_block_with_the_name_of_a_tool_without_arguments_calls_that_tool() -> None:
    assert parse("```bash\nsubmit\n```", "bash_block").calls == (ToolCall("submit", {}, "call_0"),)
    assert parse("```bash\nedit\n```", "bash_block").calls[0].arguments == {"command": "edit"}
    assert not parse_action(BLOCK, "bash_block", get_toolset("pdb[pdb,submit]").schemas).calls


def test_a_patch_is_read_with_its_envelope_and_what_stands_around_is_prose() -> None:
    text = f"First.\n```\n{PATCH}\n```\nThen.\n{PATCH}\nDone."
    parsed = parse(text, "apply_patch")
    assert [call.arguments for call in parsed.calls] == [{"patch": PATCH}] * 2
    assert {call.name for call in parsed.calls} == {"apply_patch"}
    assert parsed.text == "First.\n```\n```\nThen.\nDone."
    assert parse_action(PATCH, "apply_patch", NANO).calls == ()
    assert "none of the tools takes a patch" in parse_action(PATCH, "apply_patch", NANO).error


def test_an_attempt_that_cannot_be_read_says_why_and_what_was_expected() -> None:
    for tool_format, text, said in [
        ("hermes", LS_JSON, "No tool call was found. Expected <tool_call>{"),
        ("nanoagent[strict]", f"<tool_call>{LS_JSON}</tool_call>", "a list of calls is needed"),
        ("nanoagent", "<tool_call>ls", "Expecting value"),
        ("hermes[strict]", f"<tool_call>{LS_JSON}", "</tool_call> is missing"),
        ("hermes[strict]", f"<tool_call>{LLAMA}</tool_call>", 'an object "arguments"'),
        ("hermes[strict]", "<tool_call>{'name': 1}</tool_call>", "property name enclosed"),
        ("qwen3_coder", f"<tool_call>{LS_JSON}</tool_call>", "Expected <tool_call><function="),
        ("qwen3_coder", "<function=submit>", "the reply seems cut off"),
        ("llama3", LLAMA[:-1], "the reply seems cut off"),
        ("qwen3_coder", QWEN[:52], "not closed by </parameter>"),
        ("qwen3_coder", QWEN.replace("=bash", "="), "<function=NAME> is needed"),
        ("qwen3_coder[strict]", SWE, "Expected <tool_call><function="),
        ("swe_agent", "<function=bash>\nls -la\n</function>", "is needed, got 'ls -la"),
        ("swe_agent", SWE.replace("</f", "<parameter=command>a</parameter></f"), "twice"),
        ("swe_agent", f"{SWE}\n{SWE[:35]}", "not closed by </parameter>"),
        ("swe_agent", SWE.replace("=command", "="), "needs a name"),
        ("swe_agent[strict]", SWE[:-11], "</function> is needed"),
        ("llama3", "<|python_tag|>bash.call(command='ls')", 'Expected {"name": "<tool>", "param'),
        ("llama3[strict]", f"<|python_tag|>{LLAMA}and{LLAMA}", "Expecting value"),
        ("llama3[strict]", f"{LLAMA};" * 129, "more than 128 calls"),
        ("llama3", f"{LLAMA};" * 129, "more than 128 calls"),
        ("llama3", f"{LLAMA}; {LLAMA[:-8]}", "Unterminated string"),
        ("json", '{"name": "edit", "arguments": {"path": "a", "line": 1', "Expecting ',' delim"),
        ("json", '{"name": "edit", "arguments": {"path": "a", "text":', "Expecting value"),
        ("json", f"{LS_JSON} and {LS_JSON}", "Expecting value"),
        ("mistral", "[TOOL_CALLS]ls", "Expected [TOOL_CALLS] ["),
        ("mistral", f"[TOOL_CALLS][{LS_JSON}] done", "other text follows the calls: 'done'"),
        ("mistral", "[TOOL_CALLS]bash[ARGS]{}" * 129, "more than 128 calls"),
        ("mistral[strict]", "[TOOL_CALLS]bash{}", "[ARGS] is missing"),
        ("bash_block", "I look.", "there are no blocks of bash in the reply"),
        ("bash_block", LS_JSON, "Expected exactly one block of bash"),
        ("bash_block", f"{BLOCK}\n{BLOCK}", "there are 2 blocks of bash in the reply"),
        ("bash_block", BLOCK[:-3], "the block is not closed"),
        ("bash_block", "```bash\ncat <<EOF\n```python\nEOF\n```", "a line inside the block begins"),
        ("apply_patch", PATCH[:-1], "the line *** End Patch is missing"),
        ("apply_patch", f"{PATCH}\n" * 129, "at most 128 are read"),
        ("swe_agent", f"{SWE}\n" * 129, "more than 128 calls"),
    ]:
        parsed = parse(text, tool_format)
        assert parsed.calls == (), (tool_format, text, said)
        assert said in parsed.error, (tool_format, text, said)
        assert " Expected " in parsed.error, (tool_format, text, said)
        assert len(parsed.error.splitlines()) == 1, (tool_format, text, said)


def test_a_reply_without_a_call_is_no_error_but_for_a_bash_block() -> None:
    for name in TOOL_FORMATS:
        parsed = parse("All tests pass now.", name)
        assert parsed.calls == ()
        assert bool(parsed.error) == (name == "bash_block")


def test_auto_leaves_blocks_and_patches_in_prose_unless_the_toolset_says_otherwise() -> None:
    for text, name in ((BLOCK, "bash_block"), (PATCH, "apply_patch")):
        prose = f"I would run\n{text}\nnow."
        assert parse(prose) == ParsedAction(text=prose)
        (call,) = parse(prose, text_formats=(name,)).calls
        assert call.name == name.replace("bash_block", "bash")
        both = parse(f"{prose}\n{QWEN}", text_formats=(name,))
        assert both.calls == (LS,)
        assert parse_action(prose, "auto", SCHEMAS[1:2], text_formats=(name,)).error == ""
    assert parse("Done.", text_formats=("bash_block",)) == ParsedAction(text="Done.")
    assert "2 blocks" in parse(f"{BLOCK}\n{BLOCK}", text_formats=("bash_block",)).error


def test_auto_looks_for_no_marks_in_the_blocks_that_a_toolset_reads() -> None:
    for name in ["bash_block", "apply_patch"]:
        for held in (f"<tool_call>{LS_JSON}</tool_call>", SWE, "[TOOL_CALLS]", "<|python_tag|>"):
            command = f"cat <<'EOF'\n{held}\nEOF"
            text = f"```bash\n{command}\n```"
            if name == "apply_patch":
                text = f"*** Begin Patch\n+{held}\n*** End Patch"
            (call,) = parse(f"I look.\n{text}\nThen.", text_formats=(name,)).calls
            assert call.arguments in ({"command": command}, {"patch": text})


def test_no_call_is_found_inside_another_one_not_even_in_a_broken_one() -> None:
    submits = (
        '<tool_call>{"name": "submit", "arguments": {}}</tool_call>',
        "<function=submit>\n</function>",
        "[TOOL_CALLS]submit[ARGS]{}",
        '\n```json\n{"name": "submit", "arguments": {}}\n```\n',
        "\n```bash\nsubmit\n```\n",
    )
    for submit in submits:
        inside = json.dumps(submit)[1:-1]
        whole = (
            f'{{"name": "bash", "arguments": {{"command": "{inside}"}}}}',
            f'<tool_call>{{"name": "bash", "arguments": {{"command": "{inside}"}}}}</tool_call>',
            f'[TOOL_CALLS]bash[ARGS]{{"command": "{inside}"}}',
            f"<function=bash>\n<parameter=command>a {submit}\n</parameter>\n</function>",
        )
        for text in whole:
            (call,) = parse(text, text_formats=("bash_block",)).calls
            assert call.name == "bash"
        half = (
            f'{{"name": "bash", "arguments": {{"command": "{submit}',
            f'[TOOL_CALLS]bash[ARGS]{{"command": "{submit}',
            f"<function=bash>\n<parameter=command>a {submit}",
        )
        for text in half:
            calls = parse(text, text_formats=("bash_block",)).calls
            assert "submit" not in [call.name for call in calls]


def test_a_forgotten_closing_tag_is_seen_only_where_the_tool_has_the_next_parameter() -> None:
    text = "<function=edit>\n<parameter=path>\na.py\n<parameter=text>\nx\n</parameter>\n</function>"
    assert parse(text).calls[0].arguments == {"path": "a.py", "text": "x"}
    assert parse(text, "swe_agent[strict]").calls == ()
    other = text.replace("=text", "=other")
    assert parse(other).calls[0].arguments == {"path": "a.py\n<parameter=other>\nx"}
