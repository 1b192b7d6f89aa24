"""What is written is read back, what a prompt explains, random replies, and live episodes."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from episodes import played_by
from model_server import TEMPLATE, save_tokenizer

from coding_gym.calls import ToolCall
from coding_gym.envs import CodingRepairEnv
from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.tools.formats import (
    TOOL_FORMATS,
    ReplyParser,
    format_instructions,
    parse_action,
    render_calls,
    tells_format,
    with_instructions,
)
from coding_gym.tools.schemas import array, function, integer

SCHEMAS = (
    function("bash", "Runs a command.", command="The command"),
    function("typed", "", xs=array("", "string"), o={"type": "object"}, f={"type": "number"}),
    function("loose", "", optional=("any",), any={"type": ["object", "null"]}),
    function("submit", "Ends the work."),
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
    *(
        "<arg_key>command",
        "</arg_key>",
        "<arg_value>",
        '<|"|>',
        "command:",
        "<|tool_call>call:bash{",
    ),
    *("<|tool_call_start|>", "<function_calls>", "<TOOLCALL>", "functools[", "[bash(command='"),
    *(
        "<｜tool▁call▁begin｜>",
        "<|START_ACTION|>",
        '{"name": "bash", "arguments": {"command": "ls"}}',
    ),
)


HARD = [mark for mark in MARKS if mark != "\ud800"] + [
    *(
        'print("a")\n\tif x:\n',
        "'''\"\"\"\\",
        "é🙂",
        " leading and trailing ",
        "\n\n",
        "\x00",
        "\r\n",
    ),
]
TYPED = ToolCall("typed", {"xs": ["a", "b c"], "o": {"k": [1, None, True]}, "f": -1e300}, "call_1")
LOOSE = ToolCall("loose", {"any": {"a b": 2**70, "c": [{}, []]}}, "call_2")


@pytest.mark.parametrize("name", WRITTEN)
def test_calls_are_read_back_or_refused(name: str) -> None:
    num_refused = 0
    for text in HARD:
        calls = (ToolCall("bash", {"command": f"cat{text}x{text}"}, "call_0"), TYPED, LOOSE)
        try:
            written = render_calls(calls, name, SCHEMAS)
        except InvalidArgumentError:
            num_refused += 1
            continue
        for reader in (name, "auto"):
            read = parse_action(written, reader, SCHEMAS).calls
            # As text, which tells 1 from 1.0 and from True.
            assert [repr((c.name, sorted(c.arguments.items()))) for c in read] == [
                repr((c.name, sorted(c.arguments.items()))) for c in calls
            ], written
    assert num_refused < 4


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("qwen3_coder", ToolCall("bash", {"command": "</parameter></function>"})),
        ("qwen3_coder", ToolCall("bash", {"command": "\n<parameter=command>"})),
        ("gemma4", ToolCall("bash", {"command": '<|"|>'})),
        ("bash_block", ToolCall("bash", {"command": "a\n```"})),
        ("bash_block", ToolCall("loose", {"any": None})),
        ("bash_block", ToolCall("bash", {"command": "a", "b": 1})),
        ("openai", ToolCall("bash", {"command": float("nan")})),
        ("json", ToolCall("bash", {"command": {1, 2}})),
        ("template", ToolCall("bash", {"command": "ls"})),
    ],
)
def test_a_call_that_a_format_cannot_carry_is_refused(name: str, call: ToolCall) -> None:
    with pytest.raises(InvalidArgumentError):
        render_calls([call], name, SCHEMAS)


def test_openai_messages_keep_ids() -> None:
    text = render_calls([ToolCall("submit", {}, "x")], "openai", SCHEMAS)
    assert [call.call_id for call in parse_action(text, "openai", SCHEMAS).calls] == ["x"]


@pytest.mark.parametrize("name", ["hermess", "hermes[strict]", "anthropic", ""])
def test_an_unknown_format_is_refused(name: str) -> None:
    for use in (parse_action, lambda _, name: render_calls((), name)):
        with pytest.raises(UnknownNameError):
            use("", name)


# -- Instructions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*WRITTEN, "bash_block"])
def test_the_example_calls_a_listed_tool_in_the_format(name: str) -> None:
    view = function("view", "Shows.", how={"type": "string", "enum": ["up"]}, n=integer("How"))
    for schemas in ([SCHEMAS[0], view, SCHEMAS[-1]], [view, SCHEMAS[0]]):
        prompt = format_instructions(name, schemas)
        lines = prompt.split("<tools>\n")[1].split("\n</tools>")[0].splitlines()
        listed = [json.loads(line)["function"] for line in lines]
        (call,) = parse_action(prompt.split("For example:\n")[1], name, schemas).calls
        assert call.name == listed[0]["name"]
        assert sorted(call.arguments) == sorted(listed[0]["parameters"]["required"])
        if name == "bash_block":
            assert "view" not in [one["name"] for one in listed]
        else:
            assert len(listed) == len(schemas)


def test_the_system_prompt_explains_only_a_format_chosen_by_name(tiny_row: dict[str, Any]) -> None:
    for name in ("auto", "openai", "qwen3_coder"):
        env = CodingRepairEnv(tasks=[tiny_row], tool_format=name)
        _, info = env.reset()
        plain = env.toolset.prompt(keeps_shell=False)
        prompt = info["messages"][0]["content"]
        assert prompt == with_instructions(plain, name, env.toolset.schemas)
        assert (prompt == plain) == (not tells_format(name)) == (name != "qwen3_coder")
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
        cut = read(f"I look. {whole[:end]}")
        assert (cut.calls, bool(cut.error)) == ((), True), whole[:end]
    assert read("All tests pass.").text == "All tests pass."


# -- Random replies, long replies -----------------------------------------------------------------


def random_reply(rng: random.Random) -> str:
    """Returns marks in any order, a rendered call with changes, or one mark over and over."""
    if rng.random() < 0.4:
        return "".join(rng.choices(MARKS, k=rng.randrange(25)))
    if rng.random() < 0.1:
        return rng.choice(MARKS) + rng.choice(MARKS) * rng.randrange(5000)
    text = render_calls([ToolCall("bash", {"command": "ls -la"})], rng.choice(WRITTEN), SCHEMAS)
    for _ in range(rng.randrange(1, 4)):
        start, end = sorted(rng.choices(range(len(text) + 1), k=2))
        text = text[:start] + rng.choice([*MARKS, "", text[start:end] * 2]) + text[end:]
    return text


@pytest.mark.parametrize(
    "num_replies", [400, pytest.param(20_000, marks=pytest.mark.nightly)], ids=str
)
def test_no_reply_makes_the_parser_raise(num_replies: int) -> None:
    rng = random.Random(4)
    for _ in range(num_replies):
        text, name = random_reply(rng), rng.choice([*WRITTEN, "bash_block", "auto", "auto"])
        parsed = ReplyParser(name, SCHEMAS, text_formats=("bash_block",)).read(text)
        assert len(parsed.error.splitlines()) <= 1, (name, text)
        json.dumps([call.to_json() for call in parsed.calls], allow_nan=False)
        (parsed.text + parsed.error).encode()


@pytest.mark.slow
@pytest.mark.parametrize("unit", [*MARKS, "x</think>", "```bash\n", "<parameter=a>x</parameter>"])
def test_work_does_not_grow_with_the_square_of_a_reply(unit: str) -> None:
    for start in ("", "{", '{"name": "bash", "arguments": {"command": "', "<tool_call>"):
        parse_action(start + unit * (300_000 // len(unit)), "auto", SCHEMAS)


# -- Live -----------------------------------------------------------------------------------------

TASKS = ["cronwise-working-days", "bourse-ten-and-a-half", "braid-empty-side"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*WRITTEN, "bash_block"])
def test_the_gold_patch_resolves_bundled_tasks_in_every_format(name: str) -> None:
    env = CodingRepairEnv(task_ids=TASKS, tool_format=name)
    for seed in range(len(TASKS)):
        assert played_by(env, "gold", seed=seed).total_reward == 1.0
    env.close()
