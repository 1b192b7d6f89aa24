"""Checks that anyone can run on a toolset of their own.

    import pytest
    from checks import toolset_checks

    @pytest.mark.parametrize("check", toolset_checks(), ids=lambda check: check.name)
    def test_my_toolset_conforms(check):
        check(MyToolset())

A check is a claim about `coding_gym.tools.Toolset`; it raises ``AssertionError`` where the claim
does not hold. It needs a sandbox that this machine can open.
"""

# The names of the checks say what others say in docstrings.

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from checks.claims import expect
from checks.tool_schemas import check_schema, plain_arguments
from checks.toolset_scene import OUTSIDE, SECRET, ToolScene, result_of, tool_scene
from coding_gym.calls import ToolCall
from coding_gym.tools import NoCall, Toolset, tool_names
from coding_gym.tools.schemas import argument_errors

PATH_NAMES = ("path", "file", "file_path", "filename", "folder", "directory")
_NUM_DRAWS = 300
_NUDGING = ("nano",)  # by nano-agent's own rule a reply without a call is nudged, no error
_GARBAGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    10**30,
    1.5,
    "",
    " ",
    "\0",
    "\ud800",
    "é\r\n\x1b[31m☂",
    "x" * 300_000,
    [],
    ["a", 1],
    {"a": {}},
)


@dataclass(frozen=True, slots=True)
class ToolsetCheck:
    """One claim about every toolset; calling it raises AssertionError where it does not hold.

    Attributes:
        name: The claim.
        run: Tries it.
    """

    name: str
    run: Callable[[Toolset], None]

    def __call__(self, toolset: Toolset) -> None:
        """Raises AssertionError unless the claim holds for the toolset."""
        self.run(toolset)


def toolset_checks() -> tuple[ToolsetCheck, ...]:
    """Returns the checks of the contract in `coding_gym.tools.Toolset`."""
    return tuple(value for value in globals().values() if isinstance(value, ToolsetCheck))


def _claim(function: Callable[[Toolset], None]) -> ToolsetCheck:
    return ToolsetCheck(function.__name__, function)


def _drawn(toolset: Toolset) -> list[ToolCall]:
    """Returns calls that a random agent makes, each once."""
    rng = np.random.default_rng(0)
    calls = [toolset.sample_call(rng) for _ in range(_NUM_DRAWS)]
    return list({json.dumps(call.to_json(), sort_keys=True): call for call in calls}.values())


@_claim
def it_says_what_it_is(toolset: Toolset) -> None:
    expect("it has a name", bool(toolset.name.strip()), True)
    for keeps_shell in (True, False):
        prompt = toolset.prompt(keeps_shell=keeps_shell)
        expect("a system prompt says something", bool(prompt.strip()), True)
    expect("text_formats", all(isinstance(name, str) for name in toolset.text_formats), True)


@_claim
def its_schemas_are_openai_functions(toolset: Toolset) -> None:
    expect("there are tools", bool(toolset.schemas), True)
    for schema in toolset.schemas:
        check_schema(schema)
    names = tool_names(toolset)
    expect("names are there once", len(set(names)), len(names))


@_claim
def drawn_calls_fit_the_schemas_and_follow_the_seed(toolset: Toolset) -> None:
    schemas = dict(zip(tool_names(toolset), toolset.schemas, strict=True))
    for call in _drawn(toolset):
        expect(f"{call.name} is a tool", call.name in schemas, True)
        errors = argument_errors(schemas[call.name], call.arguments)
        expect(f"misfit of {call.to_json()}", errors, [])
    expect("drawn again", _drawn(toolset), _drawn(toolset))


@_claim
def drawn_calls_have_the_same_answers_in_another_sandbox(toolset: Toolset) -> None:
    def answers() -> Iterator[str]:
        with tool_scene() as scene:
            for call in _drawn(toolset):
                yield result_of(toolset, call, scene).content
            expect("state as JSON", json.loads(json.dumps(scene.state)), scene.state)

    for call, first, second in zip(_drawn(toolset), answers(), answers(), strict=True):
        expect(f"the answer to {call.to_json()}", second, first)


@_claim
def one_of_the_drawn_calls_submits(toolset: Toolset) -> None:
    with tool_scene() as scene:
        # Those that look like it first: nothing else need be run then.
        calls = sorted(_drawn(toolset), key=lambda call: "submit" not in str(call).lower())
        submits = any(result_of(toolset, call, scene).submitted for call in calls)
    expect("there is a call that submits", submits, True)


@_claim
def invalid_calls_get_a_reply(toolset: Toolset) -> None:
    name = tool_names(toolset)[0]
    with tool_scene() as scene:
        for call in (
            ToolCall("no_such_tool", {}, "id"),
            ToolCall("", {}, "id"),
            ToolCall("x\0☂" * 1000, {"a": 1}, "id"),
            ToolCall(name, {}, "id", error="Expecting value: line 1 column 1 (char 0)"),
        ):
            result = result_of(toolset, call, scene)
            expect(f"{call!r:.80} is refused", (result.ok, result.submitted), (False, False))
        unknown = result_of(toolset, ToolCall("no_such_tool"), scene)
        expect("the tool that there is not is named", "no_such_tool" in unknown.content, True)


@_claim
def a_missing_argument_is_named(toolset: Toolset) -> None:
    with tool_scene() as scene:
        for schema in toolset.schemas:
            tool = schema["function"]["name"]
            for missing in schema["function"]["parameters"].get("required", ()):
                for plain in plain_arguments(schema):
                    rest = {name: value for name, value in plain.items() if name != missing}
                    result = result_of(toolset, ToolCall(tool, rest), scene)
                    what = f"{tool} without {missing}"
                    expect(f"{what} is refused", (result.ok, result.submitted), (False, False))
                    named = missing in result.content or tool in result.content
                    expect(f"{what} is told what is wrong, got {result.content!r}", named, True)


@_claim
def garbage_for_arguments_raises_nothing_and_stays_inside(toolset: Toolset) -> None:
    with tool_scene() as scene:
        before = scene.outside()
        for schema in toolset.schemas:
            tool = schema["function"]["name"]
            plain = plain_arguments(schema)[0]
            for name in plain:
                for value in _GARBAGE:
                    result_of(toolset, ToolCall(tool, plain | {name: value}, "id"), scene)
            result_of(toolset, ToolCall(tool, plain | {"no_such_argument": 1}, "id"), scene)
            result_of(toolset, ToolCall(tool, {"\ud800": "\0", "": None}, "id"), scene)
        expect("what is outside", scene.outside(), before)
        json.dumps(scene.state)


@_claim
def paths_outside_the_workspace_are_refused(toolset: Toolset) -> None:
    with tool_scene() as scene:
        before = scene.outside()
        for call in _calls_outside(toolset, scene):
            result = result_of(toolset, call, scene)
            expect(f"{call.to_json()} is refused, got {result.content!r:.200}", result.ok, False)
            expect(f"{call.to_json()} tells no secret", SECRET in result.content, False)
        expect("what is outside", scene.outside(), before)


def _calls_outside(toolset: Toolset, scene: ToolScene) -> Iterator[ToolCall]:
    root = scene.sandbox.workdir
    climb = "../" * root.count("/")
    paths = [f"{OUTSIDE}/secret", f"{climb}..{OUTSIDE}/secret", f"tests/../{climb}{OUTSIDE}/new"]
    paths += ["link", "folder/secret", "folder/new", f"{OUTSIDE}/new", f"{root}-evil/new", "/etc"]
    for schema in toolset.schemas:
        properties = schema["function"]["parameters"].get("properties", {})
        for name in properties.keys() & set(PATH_NAMES):
            for plain in plain_arguments(schema):
                for path in paths:
                    yield ToolCall(schema["function"]["name"], plain | {name: path})


@_claim
def a_message_without_a_call_gets_a_reply(toolset: Toolset) -> None:
    with tool_scene() as scene:
        for scene_now in (scene, replace(scene, changed=True)):
            answer = toolset.on_no_call(scene_now)
            expect("type", type(answer), NoCall)
            expect("it says something, or ends", bool(answer.reply.strip()) or answer.ends, True)
            counts = answer.ends or answer.is_format_error or _kind(toolset) in _NUDGING
            expect("going on after it is a format error", counts, True)


def _kind(toolset: Toolset) -> str:
    return toolset.name.partition("[")[0]
