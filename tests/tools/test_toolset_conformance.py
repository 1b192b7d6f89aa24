"""Every registered toolset is held to the one suite, and the suite finds what is wrong."""

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from checks import toolset_checks
from checks.debug import restored_registries
from checks.tool_schemas import check_schema
from checks.toolset_scene import OUTSIDE

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.tools import (
    SUBMIT,
    NoCall,
    Refusal,
    Tool,
    ToolContext,
    Toolset,
    get_toolset,
    nudge,
    toolset_names,
)

CHECKS = {check.name: check for check in toolset_checks()}


def of_the_docs() -> Toolset:
    """Returns the toolset that the page about toolsets registers."""
    page = (Path(__file__).parents[2] / "docs" / "toolsets.md").read_text(encoding="utf-8")
    (code,) = (c for c in re.findall(r"(?ms)^```python\n(.*?)^```", page) if "count_bash" in c)
    namespace: dict[str, Any] = {}
    with restored_registries():
        exec(compile(code, "docs/toolsets.md", "exec"), namespace)  # noqa: S102 - our own
    toolset: Toolset = namespace["counting"]
    return toolset


@pytest.mark.parametrize("name", [*toolset_names(), "of the docs"])
@pytest.mark.parametrize("check", CHECKS)
def test_toolset_keeps_the_contract(check: str, name: str) -> None:
    CHECKS[check](of_the_docs() if name == "of the docs" else get_toolset(name))


def read(call: ToolCall, context: ToolContext) -> ToolResult | str:
    path = call.arguments.get("path")
    if path not in ("README.md", "area.py"):
        raise Refusal("read: path is not one of the two files")
    return context.sandbox.read_file(path).decode()


READ = Tool(
    name="read",
    description="Read a file.",
    parameters={"path": "One of the two files."},
    run=read,
)
READER = Toolset(
    name="reader",
    system_prompt="Read files.",
    tools=(READ, SUBMIT),
    examples=(ToolCall("read", {"path": "README.md"}),),
)
SILENT = NoCall("", ends=False, costs_call=True, is_format_error=True)


def having(**attributes: Any) -> Toolset:
    """Returns the small toolset with other attributes."""
    return replace(READER, **attributes)


def drawing(calls: Iterator[ToolCall]) -> Toolset:
    return having(draw=lambda _: next(calls))


def answering(**changes: Any) -> Toolset:
    """Returns one whose answers are changed; functions are called for each answer."""

    def finish(_: ToolCall, result: ToolResult, __: ToolContext) -> ToolResult:
        return replace(result, **{name: v() if callable(v) else v for name, v in changes.items()})

    return having(finish=finish)


def reading(before: Callable[[ToolCall, ToolContext], ToolResult | None]) -> Toolset:
    """Returns one whose tool does something else first."""

    def run(call: ToolCall, context: ToolContext) -> ToolResult | str:
        return before(call, context) or read(call, context)

    return having(tools=(replace(READ, run=run), SUBMIT))


def writes_outside(call: ToolCall, context: ToolContext) -> None:
    path = str(call.arguments.get("path"))
    if "no_such_argument" in call.arguments or path.endswith("/new"):
        context.sandbox.write_file(f"{OUTSIDE}/new", b"new")


def tells_secrets(call: ToolCall, context: ToolContext) -> ToolResult | None:
    if not str(call.arguments.get("path")).endswith("/secret"):
        return None
    return ToolResult(context.sandbox.read_file(f"{OUTSIDE}/secret").decode(), ok=False)


def raises(call: ToolCall, _: ToolContext) -> None:
    if call.arguments.get("path", "") is None:
        raise KeyError(call.name)


NUMBERS = map(str, itertools.count())
NAMELESS = replace(READ, parameters={"path": ""})

# By check: toolsets with one defect, and words of the check about it.
DEFECTS: dict[str, list[tuple[Toolset, str]]] = {
    "it_says_what_it_is": [
        (having(name=" "), "it has a name"),
        (having(system_prompt=" "), "a system prompt says something"),
        (having(text_formats=(3,)), "text_formats"),
    ],
    "its_schemas_are_openai_functions": [
        (having(tools=()), "there are tools"),
        (having(tools=(READ, READ)), "names are there once"),
        (having(tools=(NAMELESS,)), "path of read has a description"),
    ],
    "drawn_calls_fit_the_schemas_and_follow_the_seed": [
        (drawing(itertools.repeat(ToolCall("write"))), "write is a tool"),
        (drawing(itertools.repeat(ToolCall("read", {"path": 3}))), "misfit of"),
        (drawing(ToolCall("read", {"path": n}) for n in NUMBERS), "drawn again"),
    ],
    "drawn_calls_have_the_same_answers_in_another_sandbox": [
        (answering(content=lambda: next(NUMBERS)), "the answer to"),
    ],
    "one_of_the_drawn_calls_submits": [
        (answering(submitted=False), "there is a call that submits"),
    ],
    "invalid_calls_get_a_reply": [
        (answering(ok=True), "is refused"),
        (answering(content="no"), "the tool that there is not is named"),
        (answering(call_id="another"), "call_id"),
    ],
    "a_missing_argument_is_named": [
        (answering(ok=True), "read without path is refused"),
        (answering(content="no"), "is told what is wrong"),
    ],
    "garbage_for_arguments_raises_nothing_and_stays_inside": [
        (reading(writes_outside), "what is outside"),
        (answering(content=""), "wanted 1 to"),
        (reading(raises), "read"),
    ],
    "paths_outside_the_workspace_are_refused": [
        (answering(ok=True), "is refused"),
        (reading(tells_secrets), "tells no secret"),
        (reading(writes_outside), "what is outside"),
    ],
    "a_message_without_a_call_gets_a_reply": [
        (having(on_no_call=nudge("")), "it says something, or ends"),
        (
            having(on_no_call=lambda _: replace(SILENT, reply="Go on.", is_format_error=False)),
            "going on after it is a format error",
        ),
    ],
}


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_passes_a_small_toolset_and_names_each_defect(check: str) -> None:
    CHECKS[check](READER)
    assert DEFECTS[check]
    for toolset, words in DEFECTS[check]:
        kind = KeyError if words == "read" else AssertionError
        with pytest.raises(kind, match=re.escape(words)):
            CHECKS[check](toolset)


@pytest.mark.parametrize("part", ["function", "name", "parameters"])
def test_a_schema_without_a_part_is_no_function(part: str) -> None:
    whole: dict[str, Any] = {"type": "function", "function": dict(READ.schema["function"])}
    (whole if part == "function" else whole["function"]).pop(part)
    with pytest.raises(AssertionError, match=part):
        check_schema(whole)
