"""What is rendered is read back as the same calls; what would not be is refused."""

import random
import re
from typing import Any

import pytest

from coding_gym.calls import ToolCall
from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.tools.formats import TOOL_FORMATS, parse_action, render_calls
from coding_gym.tools.schemas import array, boolean, function, integer

JSON_FORMATS = (
    *("auto", "openai", "anthropic", "responses", "json", "hermes", "nanoagent", "llama3"),
    "mistral",
)
TAG_FORMATS = ("qwen3_coder", "swe_agent")
TYPES = ("integer", "number", "boolean", "array", "object", "null")
SCHEMAS = (
    function("bash", "", command=""),
    function("naïve-tool.x", "", **{"a b": "", "ключ": "", "n": integer(""), "b": boolean("")}),
    function("typed", "", xs=array("", "string"), o={"type": "object"}, f={"type": "number"}),
    function("loose", "", optional=("any",), any={"type": list(TYPES)}),
    function("apply_patch", "", patch=""),
    function("submit", ""),
)
PIECES = (
    *"a \n\té🙂\u2028\x85\x00\"\\'7",
    *("\r\n", "true", "null", "{}", "[1]", "ls -la", "```", "```bash", "<think>", "</think>"),
    *("<tool_call>", "</tool_call>", "<function=bash>", "<function=other>", "</function>", "; "),
    *("<parameter=command>", "<parameter=zzz>", "</parameter>", "[TOOL_CALLS]", "[ARGS]"),
    *("<|python_tag|>", "*** Begin Patch", "*** End Patch", "submit"),
    '{"name": "submit", "arguments": {}}',
)

# What ends a value, the last two only at the start of a line.
OWN_TAGS = ("</parameter>", "<parameter=command>", "<function=bash>")


def text_of(rng: random.Random) -> str:
    return "".join(rng.choices(PIECES, k=rng.randrange(7)))


def value_of(kind: str, rng: random.Random, depth: int = 0) -> Any:
    kinds = [*TYPES, "string"] if depth < 3 else ["string", "integer"]
    match kind:
        case "integer":
            return rng.choice((0, -7, 2**70))
        case "number":
            return rng.choice((0.5, -1e300, 1.0, 3))
        case "boolean":
            return rng.random() < 0.5
        case "array":
            return [value_of(rng.choice(kinds), rng, depth + 1) for _ in range(rng.randrange(3))]
        case "object":
            return {
                text_of(rng): value_of(rng.choice(kinds), rng, depth + 1)
                for _ in range(rng.randrange(3))
            }
        case "null":
            return None
    return text_of(rng)


def call_of(rng: random.Random, call_id: str) -> ToolCall:
    spec = rng.choice(SCHEMAS)["function"]
    arguments = {}
    for key, schema in spec["parameters"]["properties"].items():
        kinds = schema["type"]
        arguments[key] = value_of(kinds if isinstance(kinds, str) else rng.choice(kinds), rng)
    return ToolCall(spec["name"], arguments, call_id)


def same(calls: tuple[ToolCall, ...]) -> str:
    """Tells 1 from 1.0 and True, which are equal."""
    return repr([(c.name, sorted(c.arguments.items()), c.call_id, c.error) for c in calls])


def test_calls_as_json_are_read_back_whatever_is_in_them() -> None:
    rng = random.Random(5)
    for _ in range(150):
        ids = [rng.choice((f"call_{i}", f"id {i}")) for i in range(rng.randrange(4))]
        calls = tuple(call_of(rng, call_id) for call_id in ids)
        for name in JSON_FORMATS:
            text = render_calls(calls, name, SCHEMAS)
            for reader in (name, f"{name}[strict]", "auto"):
                assert same(parse_action(text, reader, SCHEMAS).calls) == same(calls)


def assert_read_back_or_refused(
    name: str, draws: list[tuple[ToolCall, ...]], *own_marks: str
) -> None:
    """Only calls that hold the format's own marks may be refused."""
    num_refused = 0
    for calls in draws:
        try:
            text = render_calls(calls, name, SCHEMAS)
        except InvalidArgumentError:
            num_refused += 1
            held = "\n".join(str(v) for call in calls for v in call.arguments.values())
            assert any(mark in repr(held) for mark in own_marks), held
        else:
            for reader in (name, f"{name}[strict]", *["auto"] * (name in TAG_FORMATS)):
                assert same(parse_action(text, reader, SCHEMAS).calls) == same(calls), text
    assert 0 < num_refused < len(draws) / 3


@pytest.mark.parametrize("name", TAG_FORMATS)
def test_calls_in_tags_are_read_back_or_refused(name: str) -> None:
    rng = random.Random(6)
    draws = [tuple(call_of(rng, f"call_{i}") for i in range(rng.randrange(3))) for _ in range(600)]
    assert_read_back_or_refused(name, draws, *OWN_TAGS)


def test_a_block_of_bash_is_read_back_or_refused() -> None:
    rng = random.Random(7)
    draws = [(ToolCall("bash", {"command": text_of(rng)}, "call_0"),) for _ in range(600)]
    assert_read_back_or_refused("bash_block", draws, "```", "submit")


def test_a_patch_is_read_back_or_refused() -> None:
    rng = random.Random(8)
    patches = [f"*** Begin Patch\n{text_of(rng)}\n*** End Patch" for _ in range(1200)]
    draws = [(ToolCall("apply_patch", {"patch": patch}, "call_0"),) for patch in patches]
    assert_read_back_or_refused("apply_patch", draws, "*** End Patch\\n", "*** End Patch\\r")


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("qwen3_coder", ToolCall("bash", {"command": "</parameter></function>"})),
        ("swe_agent", ToolCall("bash", {"command": "\n<parameter=command>"})),
        ("swe_agent", ToolCall("bash", {"command": 7})),
        ("swe_agent", ToolCall("typed", {"f": "0.5"})),
        ("swe_agent", ToolCall("other", {"f": "\ud800"})),
        ("swe_agent", ToolCall("a>b")),
        ("swe_agent", ToolCall("bash", {"a ": "b"})),
        ("bash_block", ToolCall("bash", {"command": "a\n```"})),
        ("bash_block", ToolCall("typed")),
        ("bash_block", ToolCall("bash", {"command": "a", "b": 1})),
        ("apply_patch", ToolCall("bash", {"command": "ls"})),
        ("apply_patch", ToolCall("apply_patch", {"patch": "--- a"})),
        ("openai", ToolCall("bash", {"command": float("nan")})),
        ("json", ToolCall("bash", {"command": {1, 2}})),
    ],
)
def test_a_call_that_a_format_cannot_carry_is_refused(name: str, call: ToolCall) -> None:
    with pytest.raises(InvalidArgumentError):
        render_calls([call], name, SCHEMAS)


def test_ids_are_written_where_the_format_has_them() -> None:
    calls = [ToolCall("submit", {}, "x"), ToolCall("submit", {}, "y")]
    for name in set(TOOL_FORMATS) - {"bash_block", "apply_patch"}:
        read = parse_action(render_calls(calls, name, SCHEMAS), name, SCHEMAS).calls
        ids = ["x", "y"] if name in JSON_FORMATS else ["call_0", "call_1"]
        ids = {
            "kimi_k2": ["functions.submit:0", "functions.submit:1"],
            "mistral_v11": ["call00000", "call00001"],
        }.get(name, ids)
        assert [call.call_id for call in read] == ids


def test_a_block_takes_exactly_one_call() -> None:
    submit = ToolCall("submit")
    assert render_calls([submit], "bash_block", SCHEMAS) == "```bash\nsubmit\n```"
    for calls in ((), (submit, submit)):
        with pytest.raises(InvalidArgumentError):
            render_calls(calls, "bash_block", SCHEMAS)
    with pytest.raises(InvalidArgumentError):
        render_calls([submit], "bash_block")


@pytest.mark.parametrize("name", ["hermess", "hermes[lax]", "[strict]", "hermes [strict]"])
def test_an_unknown_format_is_refused(name: str) -> None:
    with pytest.raises(UnknownNameError, match=re.escape(name)):
        parse_action("", name)
    with pytest.raises(UnknownNameError, match=re.escape(name)):
        render_calls((), name)
