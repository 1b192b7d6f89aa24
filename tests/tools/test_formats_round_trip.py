"""What is rendered is read back as the same calls; what would not be is refused."""

import random
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


@pytest.mark.parametrize("name", TAG_FORMATS)
def test_calls_in_tags_are_read_back_or_refused(name: str) -> None:
    rng = random.Random(6)
    num_carried = num_refused = 0
    for _ in range(600):
        calls = tuple(call_of(rng, f"call_{i}") for i in range(rng.randrange(3)))
        try:
            text = render_calls(calls, name, SCHEMAS)
        except InvalidArgumentError:
            num_refused += 1
            held = repr([call.arguments for call in calls])
            assert any(tag in held for tag in OWN_TAGS)
        else:
            num_carried += 1
            for reader in (name, f"{name}[strict]", "auto"):
                parsed = parse_action(text, reader, SCHEMAS)
                assert (same(parsed.calls), parsed.text) == (same(calls), "")
    assert num_carried > 400
    assert num_refused > 5


def test_a_block_of_bash_is_read_back_or_refused() -> None:
    rng = random.Random(7)
    num_carried = 0
    for _ in range(600):
        calls = (ToolCall("bash", {"command": text_of(rng)}, "call_0"),)
        try:
            text = render_calls(calls, "bash_block", SCHEMAS)
        except InvalidArgumentError:
            held = calls[0].arguments["command"]
            assert "\n```" in f"\n{held}" or held.strip() == "submit"
        else:
            num_carried += 1
            for reader in ("bash_block", "bash_block[strict]"):
                assert same(parse_action(text, reader, SCHEMAS).calls) == same(calls)
    assert num_carried > 400


def test_a_patch_is_read_back_or_refused() -> None:
    rng = random.Random(8)
    num_carried = 0
    for _ in range(300):
        patches = [f"*** Begin Patch\n{text_of(rng)}\n*** End Patch" for _ in range(2)]
        calls = tuple(
            ToolCall("apply_patch", {"patch": patch}, f"call_{i}")
            for i, patch in enumerate(patches)
        )
        try:
            text = render_calls(calls, "apply_patch", SCHEMAS)
        except InvalidArgumentError:
            assert any("\n*** End Patch" in patch[:-14] for patch in patches)
        else:
            num_carried += 1
            assert same(parse_action(text, "apply_patch", SCHEMAS).calls) == same(calls)
    assert num_carried > 200


@pytest.mark.parametrize(
    ("name", "call", "said"),
    [
        ("qwen3_coder", ToolCall("bash", {"command": "</parameter></function>"}), "call of 'bash'"),
        ("swe_agent", ToolCall("bash", {"command": "\n<parameter=command>"}), "cannot carry this"),
        ("swe_agent", ToolCall("bash", {"command": 7}), "carry command=7 of 'bash'"),
        ("swe_agent", ToolCall("typed", {"f": "0.5"}), "carry f='0.5' of 'typed'"),
        ("swe_agent", ToolCall("other", {"f": 0.5}), "carry f=0.5 of 'other'"),
        ("swe_agent", ToolCall("other", {"f": "\ud800"}), "cannot carry f="),
        ("swe_agent", ToolCall("a>b"), "cannot carry this call of 'a>b'"),
        ("swe_agent", ToolCall(""), "cannot carry this call of ''"),
        ("swe_agent", ToolCall("bash", {"a ": "b"}), "cannot carry this call"),
        ("bash_block", ToolCall("bash", {"command": "a\n```"}), "carry command='a\\n```'"),
        ("bash_block", ToolCall("bash", {"command": "submit"}), "cannot carry this call of 'bash'"),
        ("bash_block", ToolCall("bash", {"command": 7}), "calls of bash, loose, submit, got one"),
        ("bash_block", ToolCall("typed"), "calls of bash, loose, submit, got one of 'typed'"),
        ("bash_block", ToolCall("bash", {"command": "a", "b": 1}), "cannot carry this call"),
        ("apply_patch", ToolCall("bash", {"command": "ls"}), "carries calls of apply_patch, got"),
        ("apply_patch", ToolCall("apply_patch", {"patch": "--- a"}), "cannot carry this call"),
    ],
)
def test_what_a_format_cannot_carry_is_refused(name: str, call: ToolCall, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match="carr") as caught:
        render_calls([call], name, SCHEMAS)
    assert said in str(caught.value)


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


def test_a_block_takes_exactly_one_call_and_needs_the_schemas() -> None:
    submit = ToolCall("submit")
    assert render_calls([submit], "bash_block", SCHEMAS) == "```bash\nsubmit\n```"
    for calls in ((), (submit, submit)):
        with pytest.raises(InvalidArgumentError, match="carries exactly one call, got"):
            render_calls(calls, "bash_block", SCHEMAS)
    with pytest.raises(InvalidArgumentError, match="calls of none: give the tools' schemas"):
        render_calls([submit], "bash_block")


def test_strict_is_a_name_of_a_format_too_and_typos_are_named() -> None:
    assert render_calls([ToolCall("submit")], "hermes[strict]").startswith("<tool_call>")
    for name in ("hermess", "hermes[lax]", "[strict]", "hermes [strict]"):
        for use in (lambda: parse_action("", name), lambda: render_calls((), name)):  # noqa: B023
            with pytest.raises(
                UnknownNameError, match=r"no tool format is called .*; there are an|did you"
            ):
                use()
