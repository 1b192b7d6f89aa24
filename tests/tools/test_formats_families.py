"""Every family of open models: its literal form, what its models get wrong, and its limits."""

from typing import Any

import pytest

from coding_gym.calls import ToolCall
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools.formats import TOOL_FORMATS, ParsedAction, parse_action, render_calls
from coding_gym.tools.schemas import array, boolean, function, integer

SCHEMAS = (
    function("edit", "Edits.", optional=("line",), path="The file", line=integer("Where")),
    function("run", "Runs.", cmd="The command"),
    function("many", "", xs=array("", "string"), o={"type": "object"}, b=boolean("")),
    function("apply_patch", "Patches.", patch="The patch"),
    function("submit", "Ends."),
)
EDIT = ToolCall("edit", {"path": "a.py", "line": 3})
SUBMIT = ToolCall("submit")
TEXT_FORMATS = ("bash_block", "apply_patch")
ARGUMENTS = '{"path": "a.py", "line": 3}'
OBJECT = f'{{"name": "edit", "arguments": {ARGUMENTS}}}'
DSML = """\
<｜DSML｜function_calls>
<｜DSML｜invoke name="edit">
<｜DSML｜parameter name="path" string="true">a.py</｜DSML｜parameter>
<｜DSML｜parameter name="line" string="false">3</｜DSML｜parameter>
</｜DSML｜invoke>
</｜DSML｜function_calls>"""
QWEN = """\
<tool_call>
<function=edit>
<parameter=path>
a.py
</parameter>
<parameter=line>
3
</parameter>
</function>
</tool_call>"""
GLM = """\
<tool_call>edit
<arg_key>path</arg_key>
<arg_value>a.py</arg_value>
<arg_key>line</arg_key>
<arg_value>3</arg_value>
</tool_call>"""
V3 = f"function<｜tool▁sep｜>edit\n```json\n{ARGUMENTS}\n```<｜tool▁call▁end｜>"
K3 = (
    '<|open|>tools<|sep|><|open|>call tool="edit" index="1"<|sep|><|open|>argument key="path" '
    'type="string"<|sep|>a.py<|close|>argument<|sep|><|open|>argument key="line" type="number"'
    "<|sep|>3<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>"
)
MINIMAX = """\
<minimax:tool_call>
<invoke name="edit">
<parameter name="path">a.py</parameter>
<parameter name="line">3</parameter>
</invoke>
</minimax:tool_call>"""
M3 = """\
]<]minimax[>[<tool_call>
]<]minimax[>[<invoke name="edit">]<]minimax[>[<path>a.py]<]minimax[>[</path>]<]minimax[>[<line>3\
]<]minimax[>[</line>]<]minimax[>[</invoke>
]<]minimax[>[</tool_call>"""
MUSE = "to=edit<|message|>" + MINIMAX.replace("minimax:tool_call", "atem:function_calls").replace(
    "<invoke", "<atem:invoke"
).replace("</invoke", "</atem:invoke").replace("<parameter", "<atem:parameter").replace(
    "</parameter", "</atem:parameter"
)
V3_BEGIN, V3_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
K2_BEGIN, K2_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
K2 = f"<|tool_call_begin|>functions.edit:0<|tool_call_argument_begin|>{ARGUMENTS}<|tool_call_end|>"
HARMONY = "<|channel|>commentary to=functions.edit <|constrain|>json<|message|>" + ARGUMENTS
# What a model of each family sends for `EDIT`: first what is rendered, then variants, each with the
# end that its chat template may add.
LITERALS: dict[str, tuple[str, ...]] = {
    "harmony": (
        f"{HARMONY}<|call|>",
        f"<|channel|>analysis<|message|>R<|end|><|start|>assistant{HARMONY}<|call|>",
        f" to=functions.edit<|channel|>commentary json<|message|>{ARGUMENTS}<|call|>",
        f" to=functions.edit<|channel|>commentary <|constrain|>json<|message|>{ARGUMENTS}<|call|>",
        f"<|channel|>commentary to=functions.edit json<|message|>{ARGUMENTS}<|call|>",
        f"<|channel|>analysis<|message|>R<|start|>assistant{HARMONY}",
    ),
    "deepseek_v3": (
        f"{V3_BEGIN}<｜tool▁call▁begin｜>{V3}{V3_END}",
        f"{V3_BEGIN}<｜tool▁call▁begin｜>{V3}{V3_END}<｜end▁of▁sentence｜>",
    ),
    "deepseek_v31": (
        f"{V3_BEGIN}<｜tool▁call▁begin｜>edit<｜tool▁sep｜>{ARGUMENTS}<｜tool▁call▁end｜>{V3_END}",
    ),
    "deepseek_v32": (
        DSML,
        f"{DSML}<｜end▁of▁sentence｜>",
        f'<｜DSML｜function_calls><｜DSML｜invoke name="edit">{ARGUMENTS}</｜DSML｜invoke>'
        "</｜DSML｜function_calls>",
    ),
    "deepseek_v4": (DSML.replace("function_calls", "tool_calls"),),
    "deepseek_v41": (DSML.replace("function_calls", "calls").replace("DSML｜", "DSML｜ "),),
    "kimi_k2": (
        f"{K2_BEGIN}{K2}{K2_END}",
        f"{K2_BEGIN}{K2}{K2_END}<|im_end|>",
        f"{K2_BEGIN}{K2.replace('functions.edit:0', ' edit:0 ')}{K2_END}",
        f"<|tool_call_section_begin|>{K2}<|tool_call_section_end|>",
    ),
    "kimi_k3": (K3, f"<|open|>response<|sep|><|close|>response<|sep|>{K3}<|end_of_msg|>"),
    "glm45": (GLM,),
    "glm47": (GLM.replace("\n", ""),),
    "hermes": (
        f"<tool_call>{OBJECT}</tool_call>",
        f"<tool_call>\n{OBJECT}\n</tool_call><|im_end|>",
    ),
    "qwen3_coder": (QWEN, f"{QWEN}<|im_end|>"),
    "minimax_m2": (MINIMAX,),
    "minimax_m3": (M3,),
    "llama3": (
        OBJECT.replace("arguments", "parameters"),
        OBJECT.replace("arguments", "parameters") + "<|eot_id|>",
        f"<|python_tag|>{OBJECT}",
    ),
    "pythonic": (
        "[edit(path='a.py', line=3)]",
        '[edit(path="a.py", line=3)]<|eot|>',
        "<|python_start|>[edit(path='a.py', line=3)]<|python_end|>",
    ),
    "mistral": (
        f"[TOOL_CALLS] [{OBJECT}]",
        f"[TOOL_CALLS][{OBJECT[:-1]}, " + '"id": "abcdefghi"}]</s>',
    ),
    "mistral_v11": (
        f"[TOOL_CALLS]edit[CALL_ID]call00000[ARGS]{ARGUMENTS}",
        f"[TOOL_CALLS]edit[CALL_ID]abcdefghi[ARGS]{ARGUMENTS}</s>",
    ),
    "mistral_v13": (
        f"[TOOL_CALLS]edit[ARGS]{ARGUMENTS}",
        f"[TOOL_CALLS]edit[ARGS]{ARGUMENTS}</s>",
        f"[TOOL_CALLS]edit{ARGUMENTS}",
    ),
    "functiongemma": (
        "<start_function_call>call:edit{path:<escape>a.py<escape>,line:3}<end_function_call>",
        "<start_function_call>call:edit{path:<escape>a.py<escape>,line:<escape>3<escape>}"
        "<end_function_call><start_function_response>",
    ),
    "gemma4": ('<|tool_call>call:edit{line:3,path:<|"|>a.py<|"|>}<tool_call|>',),
    "smollm3_python": ('<code>edit(path="a.py", line=3)</code>',),
    "nanoagent": (f"<tool_call>[{OBJECT}]</tool_call>",),
    "nanoagent_python": ('<tool_call>[edit(path="a.py", line=3)]</tool_call>',),
    "lfm2": ("<|tool_call_start|>[edit(path='a.py', line=3)]<|tool_call_end|>",),
    "muse_glimmer": (MUSE, f"{MUSE}<|eot|>"),
    "anthropic": (
        '{"role": "assistant", "content": [{"type": "tool_use", "id": "call_0", "name": "edit", '
        f'"input": {ARGUMENTS}}}]}}',
    ),
    "responses": (
        '{"output": [{"type": "function_call", "call_id": "call_0", "name": "edit", "arguments": '
        '"{\\"path\\": \\"a.py\\", \\"line\\": 3}"}]}',
    ),
}
OTHERS = ("openai", "json", "swe_agent")
FAMILIES = (*LITERALS, *OTHERS)
# Their end mark is also the stop string, which servers remove, or there is none.
MAY_LACK_END = {
    *("harmony", "hermes", "nanoagent", "mistral", "mistral_v11", "mistral_v13"),
    *("qwen3_coder", "swe_agent", "json", "llama3"),
}


def parse(text: str, tool_format: str = "auto") -> ParsedAction:
    return parse_action(text, tool_format, SCHEMAS, text_formats=TEXT_FORMATS)


def plain(parsed: ParsedAction) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in parsed.calls if not call.error]


def wanted(*calls: ToolCall) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in calls]


def test_every_format_has_a_literal_example_here() -> None:
    assert {*FAMILIES, *TEXT_FORMATS, "auto"} == set(TOOL_FORMATS)


@pytest.mark.parametrize("name", LITERALS)
def test_the_literal_form_of_a_family_is_read_and_written(name: str) -> None:
    assert render_calls([EDIT], name, SCHEMAS) == LITERALS[name][0]
    for text in LITERALS[name]:
        for reader in (name, "auto"):
            parsed = parse(text, reader)
            assert (plain(parsed), parsed.error) == (wanted(EDIT), ""), (reader, text)
            assert parsed.text == "", (reader, text)
            assert parsed.reasoning == ("R" if "analysis" in text else ""), (reader, text)


@pytest.mark.parametrize("name", FAMILIES)
def test_real_shaped_replies_are_read_or_answered(name: str) -> None:
    valid = render_calls([EDIT], name, SCHEMAS)
    other = render_calls([SUBMIT], "kimi_k2" if name != "kimi_k2" else "gemma4", SCHEMAS)
    wrong_type = render_calls([ToolCall("edit", {"path": "a.py", "line": 31})], name, SCHEMAS)
    read = {
        "parallel calls": (render_calls([EDIT, SUBMIT], name, SCHEMAS), wanted(EDIT, SUBMIT)),
        "thinking before": (f"<think>\nHm, <b> or {{x}}?\n</think>\n{valid}", wanted(EDIT)),
        "thinking opened by the template": (f"Hm.\n</think>\n\n{valid}", wanted(EDIT)),
        "empty arguments": (render_calls([SUBMIT], name, SCHEMAS), wanted(SUBMIT)),
        "trailing stop token": (f"{valid}<|im_end|>\n", wanted(EDIT)),
        "several stop tokens": (f"{valid}</s><|endoftext|>", wanted(EDIT)),
    }
    if name not in ("openai", "anthropic", "responses"):
        read["prose before"] = (f"I fix it now:\n{valid}", wanted(EDIT))
    for kind, (text, calls) in read.items():
        for reader in (name, "auto"):
            assert plain(parse(text, reader)) == calls, (kind, reader, parse(text, reader))
    answered = {
        "prose after": f"{valid}\nThen I submit.",
        "several markers": valid + other,
        "unknown tool": valid.replace("edit", "tedi"),
        "wrong types": wrong_type.replace("31", "three"),
        "missing value": wrong_type.replace("31", ""),
        "broken syntax": valid.replace("a.py", 'a".p"y'),
        "half of it": valid[: len(valid) * 3 // 4],
        "doubled": valid[:-1] + valid,
    }
    for kind, text in answered.items():
        for reader in (name, "auto"):
            parsed = parse(text, reader)
            assert parsed.calls or parsed.error, (kind, reader, text)
            assert not parsed.error or "xpected" in parsed.error, (kind, parsed.error)
    assert ("submit", {}) not in plain(parse(answered["several markers"]))[:1]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_reply_that_breaks_off_never_runs_another_call(name: str) -> None:
    calls = [ToolCall("run", {"cmd": "rm -rf build/a b; echo 12"}), EDIT]
    whole = render_calls(calls, name, SCHEMAS)
    begun = whole.index("cmd")
    for end in range(len(whole)):
        for reader in (name, "auto"):
            parsed = parse(whole[:end], reader)
            found = plain(parsed)
            for (tool, arguments), call in zip(found, calls, strict=False):
                assert tool == call.name, (reader, whole[:end])
                assert arguments.items() <= call.arguments.items(), (reader, whole[:end])
                assert name in MAY_LACK_END or arguments == call.arguments, (reader, whole[:end])
            if end > begun + 3:
                assert parsed.calls or parsed.error, (reader, whole[:end])
    one = render_calls([EDIT], name, SCHEMAS)
    ends = [end for end in range(len(one)) if plain(parse(one[:end], name))]
    has_end = name not in MAY_LACK_END
    assert not has_end or all(not one[end:].strip(" \n") or is_section(one[end:]) for end in ends)


def is_section(rest: str) -> bool:
    """Whether only the marks around all calls are missing, not those of one call."""
    marks = (V3_END, K2_END, "</minimax:tool_call>", "]<]minimax[>[</tool_call>")
    marks = (*marks, "<|close|>tools<|sep|>", "</atem:function_calls>", "</｜DSML｜function_calls>")
    marks = (*marks, "</｜DSML｜tool_calls>", "</｜DSML｜ calls>")
    return any(mark.endswith(rest.strip()) for mark in marks)


HARD = (
    *('print("a")\n\tif x:\n', "'''\"\"\"\\", "</parameter>\n", "a <|im_end|> b", "</tool_call>"),
    *("<|call|>", "é🙂\u2028", "{}[]()<>", "x = '<arg_value>'", " leading and trailing ", "\n\n"),
    *("<function=run>", "[TOOL_CALLS]", "```json\n{}\n```", '{"name": "submit", "arguments": {}}'),
)


@pytest.mark.parametrize("name", FAMILIES)
def test_code_in_arguments_is_read_back_or_refused(name: str) -> None:
    num_carried = 0
    for text in HARD:
        call = ToolCall("run", {"cmd": f"cat{text}x"})
        try:
            written = render_calls([call], name, SCHEMAS)
        except InvalidArgumentError:
            continue
        num_carried += 1
        for reader in (name, "auto"):
            assert plain(parse(f"{written}<|im_end|>", reader)) == wanted(call), (reader, written)
    assert num_carried >= len(HARD) - 2
    many = ToolCall("many", {"xs": ["a", "b c"], "o": {"k": [1, None]}, "b": False})
    for reader in (name, "auto"):
        assert plain(parse(render_calls([many], name, SCHEMAS), reader)) == wanted(many)


def test_values_in_tags_get_the_type_of_the_schema_in_every_dialect() -> None:
    for name in LITERALS:
        text = LITERALS[name][0]
        if "\\" in text or '"path": ' in text or "line=3" in text or "line:3" in text:
            continue
        for written, value in (("True", "True"), ("None", None), ('"3"', '"3"'), (" 3 ", 3)):
            start, _, end = text.rpartition("3")
            (call,) = parse(f"{start}{written}{end}", name).calls
            assert call.arguments == {"path": "a.py", "line": value}, (name, written)
    both = '<invoke name="many"><parameter name="b">True</parameter></invoke>'
    assert parse(both).calls[0].arguments == {"b": True}


def test_ids_of_a_family_are_kept() -> None:
    ids = {
        f"{K2_BEGIN}{K2.replace(':0', ':7')}{K2_END}": "functions.edit:7",
        LITERALS["mistral"][1]: "abcdefghi",
        LITERALS["mistral_v11"][1]: "abcdefghi",
        LITERALS["anthropic"][0].replace("call_0", "toolu_1"): "toolu_1",
        LITERALS["responses"][0].replace("call_0", "call_x"): "call_x",
    }
    for text, call_id in ids.items():
        assert [call.call_id for call in parse(text).calls] == [call_id], text


def test_messages_of_other_servers_are_split_into_text_reasoning_and_calls() -> None:
    call = '"name": "edit", "%s": ' + ARGUMENTS
    anthropic = (
        '{"role": "assistant", "content": [{"type": "thinking", "thinking": "R"}, {"type": "text", '
        '"text": "T"}, {"type": "tool_use", "id": "i", ' + call % "input" + "}]}"
    )
    responses = (
        '{"id": "resp_1", "output": [{"type": "reasoning", "summary": [{"type": "summary_text", '
        '"text": "R"}]}, {"type": "message", "role": "assistant", "content": [{"type": '
        '"output_text", "text": "T"}]}, {"type": "function_call", "id": "fc_1", "call_id": "i", '
        + call % "arguments"
        + "}]}"
    )
    for text in (anthropic, responses):
        parsed = parse(text)
        assert (parsed.text, parsed.reasoning, parsed.error) == ("T", "R", "")
        assert [one.call_id for one in parsed.calls] == ["i"]
        assert plain(parsed) == wanted(EDIT)


def test_an_opener_ends_reasoning_that_was_not_closed() -> None:
    for name in (
        "hermes",
        "kimi_k2",
        "deepseek_v31",
        "lfm2",
        "gemma4",
        "minimax_m2",
        "qwen3_coder",
    ):
        parsed = parse(f"<think>I should edit it. {LITERALS[name][0]}")
        assert (plain(parsed), parsed.text) == (wanted(EDIT), "<think>I should edit it.")
    for text in (LITERALS["pythonic"][0], LITERALS["smollm3_python"][0], OBJECT):
        assert parse(f"<think>I should\n{text}").calls == ()


def test_prose_before_a_bare_object_is_kept_and_half_an_object_is_an_error() -> None:
    for prose in ("I look.\n", "I look:\n  ", 'Where {"a": 1} was, I look:\n\n'):
        parsed = parse(prose + OBJECT)
        assert (plain(parsed), parsed.text) == (wanted(EDIT), prose.strip())
        assert parse(f"{prose}{OBJECT}\n{OBJECT}").calls[1:]
        for text in (f"{prose}{OBJECT[:-9]}", f"{prose}{OBJECT} and so on"):
            assert parse(text).calls == ()
            assert parse(text).error
    half = '{"name": "run", "arguments": {"cmd": "x {"name": "submit", "arguments": {}}'
    assert parse(f"So: {half}").calls == ()
    assert parse(f'name": "run", "arguments": {{"cmd": "ls"}}}}; {OBJECT}').calls == ()
