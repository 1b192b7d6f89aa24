"""Explanations of formats in prompts, response templates, written calls, random replies."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from model_server import TEMPLATE, save_tokenizer

from coding_gym.envs import CodingRepairEnv
from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.tools import SUBMIT, Tool, Toolset
from coding_gym.tools.commands import bash_tool
from coding_gym.tools.formats import (
    TOOL_FORMATS,
    ReplyParser,
    explains_format,
    system_prompt,
)
from coding_gym.tools.formats.table import FORMATS, row_of
from coding_gym.tools.schemas import function, integer

SCHEMAS = (
    function("bash", "Runs a command.", {"command": "The command"}),
    function("submit", "Ends the work.", {}),
)
WRITTEN = sorted({*TOOL_FORMATS} - {"template", "bash_block"})
MARKS = (
    *("<tool_call>", "</tool_call>", *'{}[]:,"\\ \n', '"name"', '"arguments"', '"bash"', "x", "'"),
    *("```json\n", "\n```", "<think>", "</think>", "1e999", "NaN", "\ud800", "\x85", "\u2028"),
    *("<function=bash>", "<function=", "</function>", "<parameter=command>", "</parameter>"),
    *("<|python_tag|>", "[TOOL_CALLS]", "bash[ARGS]", "\n```bash\n", '"tool_calls"', "null", ";"),
    *("<|channel|>", "commentary to=functions.bash", "to=functions.bash {", "<|message|>"),
    *("<|tool_call_begin|>", "functions.bash:0<|tool_call_argument_begin|>", "<|tool_call_end|>"),
    *("bash(command=", '<invoke name="bash">', '<parameter name="command">', "</invoke>"),
    *("<arg_key>command", "</arg_key>", "<arg_value>", '<|"|>', "command:"),
    *("<|tool_call>call:bash{", "<|tool_call_start|>", "<function_calls>", "<TOOLCALL>"),
    *("functools[", "[bash(command='", "<｜tool▁call▁begin｜>", "<|START_ACTION|>"),
    '{"name": "bash", "arguments": {"command": "ls"}}',
)
LISTS = (("[", "]"), ("<|tool_call_start|>[", "]<|tool_call_end|>"), ('{"tool_calls": [', "]}"))
ITEMS = (
    *("bash(command='ls')", '{"arguments": 2}', '{"name": 3, "arguments": 2}', "{}", "[]", "2"),
    *('{"name": "bash", "arguments": 2}', '{"id": {}, "function": {"name": "bash"}}', "None"),
    *('{"function": 2}', '{"function": [{}], "name": []}', "call:bash{}", '"name"', "(2, {})"),
)
SUBMITS = (
    *('<tool_call>{"name": "submit", "arguments": {}}</tool_call>', "[TOOL_CALLS]submit[ARGS]{}"),
    *("<function=submit>\n</function>", "\n```bash\nsubmit\n```\n"),
    '\n```json\n{"name": "submit", "arguments": {}}\n```\n',
)
HARD = [
    *(mark for mark in MARKS if mark != "\ud800"),
    *SUBMITS,
    *('print("a")\n\tif x:\n', "'''\"\"\"\\", "é🙂", " leading and trailing "),
    *("\n\n", "\x00", "\r\n"),
]
# -- Instructions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*filter(explains_format, WRITTEN), "bash_block"])
def test_the_example_calls_a_listed_tool_in_the_format(name: str) -> None:
    parameters = {"how": {"type": "string", "enum": ["up"]}, "n": integer("How")}
    view = Tool(name="view", description="Shows.", run=lambda *_: "", parameters=parameters)
    for tools in ((bash_tool(100), view, SUBMIT), (view, bash_tool(100))):
        toolset = Toolset(name="viewing", system_prompt="Repair.", tools=tools)
        prompt = system_prompt(toolset, name)
        lines = prompt.split("<tools>\n")[1].split("\n</tools>")[0].splitlines()
        names = [json.loads(line)["function"]["name"] for line in lines]
        assert ("view" in names) == (name != "bash_block")
        (call,) = ReplyParser(name, toolset.schemas).read(prompt.split("For example:\n")[1]).calls
        assert (call.name, call.arguments) == ("bash", {"command": "ls -la"})


def test_the_system_prompt_explains_only_a_named_format(tiny_row: dict[str, Any]) -> None:
    for name in ("auto", "openai", "qwen3_coder"):
        env = CodingRepairEnv(tasks=[tiny_row], tool_format=name)
        _, info = env.reset()
        base_prompt = env.toolset.system_prompt
        prompt = info["messages"][0]["content"]
        assert prompt == system_prompt(env.toolset, name)
        assert (prompt == base_prompt) == (not explains_format(name)) == (name != "qwen3_coder")
        env.close()
    for name, error in (("qwen3_code", UnknownNameError), ("template", InvalidArgumentError)):
        with pytest.raises(error):
            CodingRepairEnv(tasks=[tiny_row], tool_format=name)


# -- The tokenizer's own template -----------------------------------------------------------------

RESPONSES: dict[str, Any] = {
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "thinking": {"open": "<think>", "close": "</think>"},
        "tool_calls": {
            "open_pattern": r"<fn (?P<name>\w+)>",
            "close": "</fn>",
            "repeats": True,
            "content": "json",
            "transform": {
                "type": "function",
                "function": {"name": "{name}", "arguments": "{content}"},
            },
        },
        "content": {"close": "<|im_end|>"},
    },
}
TAGGED = {
    "content": "xml-inline",
    "content_args": {"tag_pattern": r"<(?P<key>\w+)>(?P<value>.*?)</\w+>"},
}


@pytest.mark.parametrize(
    ("fields", "body"),
    [({}, '{"command": "ls -la"}'), (TAGGED, "<command>ls -la</command><n>1</n>")],
)
def test_a_tokenizer_reads_calls_by_its_response_template(
    tmp_path: Path, fields: dict[str, Any], body: str
) -> None:
    pytest.importorskip("transformers.utils.chat_parsing")
    calls = RESPONSES["fields"]["tool_calls"] | fields
    template = RESPONSES | {"fields": RESPONSES["fields"] | {"tool_calls": calls}}
    name = save_tokenizer(tmp_path, TEMPLATE, response_template=template)

    def read(text: str) -> Any:
        return ReplyParser("template", SCHEMAS, tokenizer=get_tokenizer(name)).read(text)

    whole = f"<fn bash>{body}</fn>"
    parsed = read(f"<think>Hm. {whole}</think>I look. {whole}")
    assert [(call.name, call.arguments["command"]) for call in parsed.calls] == [("bash", "ls -la")]
    assert (parsed.text, parsed.reasoning) == ("I look.", f"Hm. {whole}")
    for end in range(len("<fn bash>") + 1, len(whole) - len("</fn>")):
        parsed = read(f"I look. {whole[:end]}")
        assert (parsed.calls, bool(parsed.error)) == ((), True), whole[:end]
    assert read("All tests pass.").text == "All tests pass."
    assert bool(read(f"<fn bash>{'[' * 10_000}</fn>").error) == (fields == {})


# -- Written calls --------------------------------------------------------------------------------


def write_call(command: str, tool_format: str) -> str:
    """Returns a call of ``bash`` in the form of the format's example in the table."""
    row = row_of(tool_format)
    example = row.example.replace("TOOL_NAME", "bash").replace("ARGUMENT", "command")
    if row.body in ("tags", "gemma", "block"):  # values are written without escapes
        return example.replace("VALUE", command)
    if row.body == "python":
        return example.replace('"VALUE"', repr(command))
    text = json.dumps(command, ensure_ascii=False)
    in_string = json.dumps(text, ensure_ascii=False)[1:-1]  # for an object in a JSON string
    return example.replace('\\"VALUE\\"', in_string).replace('"VALUE"', text)


@pytest.mark.parametrize("tool_format", [*WRITTEN, "bash_block"])
def test_a_written_call_can_be_read(tool_format: str) -> None:
    row = FORMATS.get(tool_format, FORMATS["json"])
    for text in HARD:
        is_end = text in row.example and row.body in ("tags", "gemma", "block")
        if is_end or (row.body == "block" and "```" in text):
            continue  # ends the value
        command = f"cat{text}x{text}"
        for reader in {tool_format, "auto"}:
            parser = ReplyParser(reader, SCHEMAS, text_formats=("bash_block",))
            parsed = parser.read(write_call(command, tool_format))
            assert [c.arguments for c in parsed.calls] == [{"command": command}], (text, parsed)


@pytest.mark.parametrize("submit", SUBMITS)
def test_a_call_inside_a_cut_off_call_never_runs(submit: str) -> None:
    for text in (
        f'{{"name": "bash", "arguments": {{"command": "{submit}',
        f'[TOOL_CALLS]bash[ARGS]{{"command": "{submit}',
        f"<function=bash>\n<parameter=command>a {submit}",
    ):
        assert ReplyParser("auto", SCHEMAS, text_formats=("bash_block",)).read(text).calls == ()


# -- Random replies, long replies -----------------------------------------------------------------


def random_reply(rng: random.Random) -> str:
    """Returns random marks, a repeated mark, a list of mixed items, or a call with changes."""
    if rng.random() < 0.4:
        return "".join(rng.choices(MARKS, k=rng.randrange(25)))
    if rng.random() < 0.1:
        return rng.choice(MARKS) + rng.choice(MARKS) * rng.randrange(5000)
    if rng.random() < 0.2:
        opening, closing = rng.choice(LISTS)
        return opening + ", ".join(rng.choices(ITEMS, k=rng.randrange(1, 4))) + closing
    text = write_call("ls -la", rng.choice(WRITTEN))
    for _ in range(rng.randrange(1, 4)):
        start = rng.randrange(len(text) + 1)
        end = start + rng.randrange(4)
        text = text[:start] + rng.choice([*MARKS, "", text[start:end] * 2]) + text[end:]
    return text


@pytest.mark.parametrize(
    "num_replies", [400, pytest.param(20_000, marks=pytest.mark.nightly)], ids=str
)
def test_no_reply_makes_the_parser_raise(num_replies: int) -> None:
    rng, num_read = random.Random(4), 0
    for _ in range(num_replies):
        text, name = random_reply(rng), rng.choice(["auto", rng.choice([*WRITTEN, "bash_block"])])
        parsed = ReplyParser(name, SCHEMAS, text_formats=("bash_block",)).read(text)
        assert len(parsed.error.splitlines()) <= 1, (name, text)
        json.dumps([dict(call.arguments) for call in parsed.calls], allow_nan=False)
        assert all(call.name for call in parsed.calls)
        (parsed.text + parsed.error).encode()
        num_read += bool(parsed.calls)
    assert num_read > num_replies / 100
