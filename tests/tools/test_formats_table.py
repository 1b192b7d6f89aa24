"""Each row of the table reads literal replies of its models, but no truncated reply."""

import re
from typing import Any

import pytest

from coding_gym.calls import ToolCall
from coding_gym.tools.formats import TOOL_FORMATS, ParsedAction, ReplyParser
from coding_gym.tools.schemas import function, integer

SCHEMAS = (
    function("run", "Runs.", {"cmd": "The command"}),
    function("edit", "Edits.", {"path": "The file", "line": integer("Where")}, ["line"]),
    function("submit", "Ends.", {}),
)
ARGUMENTS = '{"path": "a.py", "line": 3}'
OBJECT = f'{{"name": "edit", "arguments": {ARGUMENTS}}}'
LLAMA = OBJECT.replace("arguments", "parameters")
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
DSML = """\
<｜DSML｜function_calls>
<｜DSML｜invoke name="edit">
<｜DSML｜parameter name="path" string="true">a.py</｜DSML｜parameter>
<｜DSML｜parameter name="line" string="false">3</｜DSML｜parameter>
</｜DSML｜invoke>
</｜DSML｜function_calls>"""
MINIMAX = """\
<minimax:tool_call>
<invoke name="edit">
<parameter name="path">a.py</parameter>
<parameter name="line">3</parameter>
</invoke>
</minimax:tool_call>"""
STEP = (
    "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>"
    '<steptml:invoke name="edit"><steptml:parameter name="path">a.py</steptml:parameter>'
    '<steptml:parameter name="line">3</steptml:parameter></steptml:invoke><｜tool_call_end｜>'
    "<｜tool_calls_end｜>"
)
V3 = (
    f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>edit\n```json\n{ARGUMENTS}\n```"
    "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
)
V31 = (
    f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>edit<｜tool▁sep｜>{ARGUMENTS}<｜tool▁call▁end｜>"
    "<｜tool▁calls▁end｜>"
)
KIMI = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.edit:0<|tool_call_argument_begin|>"
    f"{ARGUMENTS}<|tool_call_end|><|tool_calls_section_end|>"
)
HARMONY = f"<|channel|>commentary to=functions.edit <|constrain|>json<|message|>{ARGUMENTS}<|call|>"
LFM2 = "<|tool_call_start|>[edit(path='a.py', line=3)]<|tool_call_end|>"
COHERE = (
    f'<|START_ACTION|>[{{"tool_call_id": "0", "tool_name": "edit", "parameters": {ARGUMENTS}}}]'
    "<|END_ACTION|>"
)
OPENAI = (
    '{"role": "assistant", "content": "", "tool_calls": [{"id": "call00000", "type": "function", '
    '"function": {"name": "edit", "arguments": "{\\"path\\": \\"a.py\\", \\"line\\": 3}"}}]}'
)


ROWS: dict[str, tuple[str, ...]] = {
    "qwen3_coder": (
        *(QWEN, f"{QWEN}<|im_end|>", QWEN.removeprefix("<tool_call>\n"), QWEN.replace("\n", "")),
        "<function=edit>\n<parameter=path>a.py</parameter>\n<parameter=line>3</parameter>\n"
        "</function>",  # SWE-agent
    ),
    "glm45": (GLM, f"<think></think>\n{GLM}<|observation|>", GLM.replace("\n", "")),
    "deepseek_v32": (
        *(DSML, DSML.replace("｜", "|"), DSML.replace("function_calls", "tool_calls")),
        DSML.replace("function_calls", "calls").replace("DSML｜", "DSML｜ "),
        f'<｜DSML｜invoke name="edit">{ARGUMENTS}</｜DSML｜invoke>',
    ),
    "step3": (STEP, STEP.replace("function<｜tool_sep｜>", "")),
    "minimax_m2": (MINIMAX,),
    "olmo3": (
        "<function_calls>edit(path='a.py', line=3)</function_calls>",
        '<function_calls>\nedit(path="a.py", line=3,)\n</function_calls><|im_end|>',
    ),
    "pythonic": (  # Llama 4
        "[edit(path='a.py', line=3)]",
        "<|python_start|>[edit(path='a.py', line=3)]<|python_end|><|eot|>",
    ),
    "lfm2": (LFM2, LFM2.replace("'a.py'", "r'''a.py'''")),
    "gemma4": ('<|tool_call>call:edit{line:3,path:<|"|>a.py<|"|>}<tool_call|>',),
    "openai": (OPENAI, OPENAI.replace('"{\\"', '{"').replace("\\", "").replace('}"', "}")),
    "json": (OBJECT, f"[{OBJECT}]", f"```json\n{OBJECT}\n```"),
    "llama3": (LLAMA, f"<|python_tag|>{LLAMA}<|eom_id|>"),
    "hermes": (
        f"<tool_call>{OBJECT}</tool_call>",
        f"<tool_call>\n{OBJECT}\n</tool_call><|im_end|>",
        f"<tool_call>{OBJECT}",
        f"<tool_call>[{OBJECT}]</tool_call>",  # NanoAgent
    ),
    "nemotron": (f"<TOOLCALL>[{OBJECT}]</TOOLCALL>",),
    "granite": (
        f"<|tool_call|>[{OBJECT}]",
        f"<|tool_call|>[{OBJECT}]<|end_of_text|>",
        f"<|tool_call|>[{OBJECT}]<|/tool_call|>",  # Phi-4
        f"functools[{OBJECT}]<|end|>",  # Phi-4
    ),
    "jamba": (  # and Hunyuan
        f"<tool_calls>[{OBJECT}]</tool_calls>",
        f"<tool_calls>\n[{OBJECT}]</tool_calls>",
    ),
    "cohere": (COHERE, f"{COHERE}<|END_OF_TURN_TOKEN|>"),
    "mistral": (
        *(f"[TOOL_CALLS]edit[ARGS]{ARGUMENTS}", f"[TOOL_CALLS]edit{ARGUMENTS}</s>"),
        f"[TOOL_CALLS]edit[CALL_ID]call00000[ARGS]{ARGUMENTS}",
        *(f"[TOOL_CALLS] [{OBJECT}]", f"[TOOL_CALLS][{OBJECT}]</s>"),
    ),
    "harmony": (
        HARMONY,
        HARMONY.removesuffix("<|call|>"),
        f"<|channel|>analysis<|message|>R<|end|><|start|>assistant{HARMONY}",
        f" to=functions.edit<|channel|>commentary json<|message|>{ARGUMENTS}<|call|>",
        f"to=functions.edit {ARGUMENTS}",
        f"to=functions.edit\n{ARGUMENTS}",
    ),
    "deepseek_v3": (
        *(V31, V31.replace("｜", "|"), f"{V31}<｜end▁of▁sentence｜>"),
        *(V3, V3.replace("｜", "|")),
    ),
    "kimi_k2": (KIMI, KIMI.replace("functions.edit:0", " edit:0 "), f"{KIMI}<|im_end|>"),
}
"""For each row, a literal reply, then variants of the reply with the same call."""

PYTHON = "edit(path='a.py', line=3)"
PAIRS = (
    (f"[{OBJECT}, {OBJECT}]", "json"),
    (f"<|python_tag|>{LLAMA}; {LLAMA}", "llama3"),
    (f"<tool_call>{OBJECT}\n{OBJECT}</tool_call>", "hermes"),
    (f"[{PYTHON}, {PYTHON}]", "pythonic"),
    (f"<function_calls>{PYTHON}\n{PYTHON}</function_calls>", "olmo3"),
    (f"{HARMONY}<|start|>assistant{HARMONY}", "harmony"),
    (
        V31.replace("<｜tool▁calls▁end｜>", V31.removeprefix("<｜tool▁calls▁begin｜>")),
        "deepseek_v3",
    ),
    (KIMI.replace("edit:0", "edit:1").replace("<|tool_calls_section_end|>", KIMI), "kimi_k2"),
    (DSML.replace("</｜DSML｜function_calls>", DSML.partition("\n")[2]), "deepseek_v32"),
)
EDIT = ToolCall("edit", {"path": "a.py", "line": 3})

THE_ARGUMENTS = re.compile(
    r"""(?s)\\?"path.*3(?=\})|path='a.py', line=3|line:3,path:.*\|>(?=\})"""
    r"|\s*<[^<>]*(?:parameter|arg_key).*(?:parameter|arg_value)>"
)


def parse(text: str, tool_format: str = "auto") -> ParsedAction:
    return ReplyParser(tool_format, SCHEMAS).read(text)


def calls_of(parsed: ParsedAction) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in parsed.calls if not call.error]


def test_every_row_has_a_literal_reply_here() -> None:
    assert {*ROWS, "auto", "bash_block", "template"} == set(TOOL_FORMATS)


@pytest.mark.parametrize("name", ROWS)
def test_literal_replies_are_read(name: str) -> None:
    for text in ROWS[name]:
        for reader in (name, "auto"):
            parsed = parse(text, reader)
            assert calls_of(parsed) == [("edit", EDIT.arguments)], (reader, text)
            assert parsed.error == "", (reader, text)
            assert parsed.text in ("", "<think></think>"), reader
            assert parsed.reasoning == ("R" if "analysis" in text else ""), reader


@pytest.mark.parametrize("name", ROWS)
def test_a_call_without_arguments_is_read(name: str) -> None:
    text = THE_ARGUMENTS.sub("", ROWS[name][0].replace("edit", "submit"))
    for reader in (name, "auto"):
        assert calls_of(parse(text, reader)) == [("submit", {})], text


@pytest.mark.parametrize("name", ROWS)
def test_a_cut_off_reply_never_runs(name: str) -> None:
    for reply in (*ROWS[name], *(pair for pair, reader in PAIRS if reader == name)):
        text = reply[: reply.rindex("a.py") + len("a.")]
        for reader in (name, "auto"):
            parsed = parse(text, reader)
            assert calls_of(parsed) == [], (reader, text)
            assert parsed.error or [call for call in parsed.calls if call.error], (reader, text)


@pytest.mark.parametrize("name", ROWS)
def test_several_calls_are_read_between_prose_and_reasoning(name: str) -> None:
    replies = f"{ROWS[name][0]}\n{ROWS[name][0]}"
    expected = [("edit", EDIT.arguments)] * 2
    for prose in ("", "I fix it:\n", "<think>\nHm, <b> or {x}?\n</think>\n", "Hm.</think>\n\n"):
        for reader in (name, "auto"):
            parsed = parse(f"{prose}{replies}<|im_end|>\n", reader)
            assert (calls_of(parsed), parsed.text) == (expected, prose.strip()), reader


@pytest.mark.parametrize(("text", "name"), PAIRS)
def test_several_calls_are_read_between_marks(text: str, name: str) -> None:
    for reader in (name, "auto"):
        assert calls_of(parse(text, reader)) == [("edit", EDIT.arguments)] * 2


@pytest.mark.parametrize("name", ROWS)
def test_no_call_of_another_format_is_read(name: str) -> None:
    reply = ROWS["lfm2" if name != "lfm2" else "nemotron"][0]
    parsed = parse(f"I look.\n{reply}", name)
    assert calls_of(parsed) == []
    assert parsed.error
