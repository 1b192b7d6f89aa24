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


def parse(text: str, tool_format: str = "auto") -> ParsedAction:
    return parse_action(text, tool_format, SCHEMAS, text_formats=TEXT_FORMATS)


def plain(parsed: ParsedAction) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in parsed.calls if not call.error]


def wanted(*calls: ToolCall) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in calls]


def test_every_format_has_a_literal_example_here() -> None:
    assert {*FAMILIES, *TEXT_FORMATS, "auto"} == set(TOOL_FORMATS)


@pytest.mark.parametrize("name", LITERALS)
def test_literal_replies_are_written_and_read(name: str) -> None:
    assert render_calls([EDIT], name, SCHEMAS) == LITERALS[name][0]
    for text in LITERALS[name]:
        for reader in (name, "auto"):
            parsed = parse(text, reader)
            assert (plain(parsed), parsed.error, parsed.text) == (wanted(EDIT), "", ""), reader
            assert parsed.reasoning == ("R" if "analysis" in text else ""), (reader, text)


@pytest.mark.parametrize("name", FAMILIES)
def test_calls_are_read_amid_thoughts_and_stop_tokens(name: str) -> None:
    both = render_calls([EDIT, SUBMIT], name, SCHEMAS)
    texts = [both, f"<think>\nHm, <b> or {{x}}?\n</think>\n{both}", f"Hm.\n</think>\n\n{both}"]
    texts += [f"{both}<|im_end|>\n", f"{both}</s><|endoftext|>"]
    if name not in ("openai", "anthropic", "responses"):
        texts.append(f"I fix it now:\n{both}")
    for text in texts:
        for reader in (name, "auto"):
            assert plain(parse(text, reader)) == wanted(EDIT, SUBMIT), (reader, text)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_cut_off_call_never_runs(name: str) -> None:
    calls = [EDIT, ToolCall("run", {"cmd": "rm -rf build/a b; echo 12"})]
    alone, second = (render_calls(each, name, SCHEMAS) for each in (calls[1:], calls))
    for whole, complete in ((alone, []), (second, wanted(EDIT))):
        text = whole[: whole.index("build/a") + len("build")]
        for reader in (name, "auto"):
            parsed = parse(text, reader)
            assert plain(parsed) in ([], complete), (reader, text)
            assert parsed.error or any(call.error for call in parsed.calls), (reader, text)


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


def test_ids_of_a_family_are_kept() -> None:
    for text, call_id in {
        LITERALS["kimi_k2"][0].replace(":0", ":7"): "functions.edit:7",
        LITERALS["mistral_v11"][1]: "abcdefghi",
        LITERALS["anthropic"][0].replace("call_0", "toolu_1"): "toolu_1",
    }.items():
        assert [call.call_id for call in parse(text).calls] == [call_id], text


def test_server_messages_split_into_text_reasoning_and_calls() -> None:
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


def test_half_a_bare_object_after_prose_is_an_error() -> None:
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
