"""Every registered toolset is held to the one suite, and the suite finds what is wrong."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.testing import toolset_checks
from coding_gym.testing.toolset_scene import OUTSIDE
from coding_gym.tools import NoCall, ToolContext, Toolset, get_toolset, toolset_names
from coding_gym.tools.schemas import function

GOOD = {"path": "README.md"}
CHECKS = {check.name: check for check in toolset_checks()}


@pytest.mark.parametrize("name", toolset_names())
@pytest.mark.parametrize("check", CHECKS)
def test_toolset_keeps_the_contract(check: str, name: str) -> None:
    CHECKS[check](get_toolset(name))


class Reader:
    """A toolset that keeps the contract: it reads two files, and submits."""

    name = "reader"
    system_prompt = "Read files."
    schemas: tuple[dict[str, Any], ...] = (
        function("read", "Read a file.", path="One of the two files."),
        function("submit", "End."),
    )
    text_formats = ()
    no_call = NoCall("Call a tool.", ends=False, costs_call=True, is_format_error=True)
    draws: Iterator[ToolCall] = itertools.cycle([ToolCall("submit"), ToolCall("read", GOOD)])

    def prompt(self, **_: bool) -> str:
        return self.system_prompt

    def execute(self, call: ToolCall, context: ToolContext) -> ToolResult:
        return replace(self.answer(call, context), call_id=call.call_id)

    def answer(self, call: ToolCall, context: ToolContext) -> ToolResult:
        if call.error or call.name not in ("read", "submit"):
            return ToolResult(f"cannot run {call.name!r:.100}", ok=False)
        if call.name == "submit":
            return ToolResult("submitted", submitted=True)
        path = call.arguments.get("path")
        if path not in ("README.md", "area.py"):
            return ToolResult("read: path is not one of the two files", ok=False)
        return ToolResult(context.sandbox.read_file(path).decode())

    def on_no_call(self, _: ToolContext) -> NoCall:
        return self.no_call

    def sample_call(self, _: Any) -> ToolCall:
        return next(self.draws)


def having(**attributes: Any) -> Toolset:
    """Returns a Reader with other attributes."""
    toolset: Toolset = type("Changed", (Reader,), attributes)()
    return toolset


def answering(**changes: Any) -> Toolset:
    """Returns a Reader whose answers are changed; functions are called for each answer."""

    class Changed(Reader):
        def execute(self, call: ToolCall, context: ToolContext) -> ToolResult:
            values = {name: v() if callable(v) else v for name, v in changes.items()}
            return replace(super().execute(call, context), **values)

    return Changed()


class WritesOutside(Reader):
    def answer(self, call: ToolCall, context: ToolContext) -> ToolResult:
        path = str(call.arguments.get("path"))
        if "no_such_argument" in call.arguments or path.endswith("/new"):
            context.sandbox.write_file(f"{OUTSIDE}/new", b"new")
        return super().answer(call, context)


class TellsSecrets(Reader):
    def answer(self, call: ToolCall, context: ToolContext) -> ToolResult:
        if str(call.arguments.get("path")).endswith("/secret"):
            secret = context.sandbox.read_file(f"{OUTSIDE}/secret").decode()
            return ToolResult(secret, ok=False)
        return super().answer(call, context)


class Raises(Reader):
    def answer(self, call: ToolCall, context: ToolContext) -> ToolResult:
        if call.arguments.get("path", "") is None:
            raise KeyError(call.name)
        return super().answer(call, context)


NUMBERS = map(str, itertools.count())

# By check: toolsets with one defect, and words of the check about it.
DEFECTS: dict[str, list[tuple[Toolset, str]]] = {
    "it_says_what_it_is": [
        (having(name=" "), "it has a name"),
        (having(system_prompt=" "), "a system prompt says something"),
        (having(text_formats=(3,)), "text_formats"),
    ],
    "its_schemas_are_openai_functions": [
        (having(schemas=()), "there are tools"),
        (having(schemas=Reader.schemas * 2), "names are there once"),
        (having(schemas=(function("read", "R", path=""),)), "path of read has a description"),
    ],
    "drawn_calls_fit_the_schemas_and_follow_the_seed": [
        (having(draws=itertools.repeat(ToolCall("write"))), "write is a tool"),
        (having(draws=itertools.repeat(ToolCall("read", {"path": 3}))), "misfit of"),
        (having(draws=(ToolCall("read", {"path": n}) for n in NUMBERS)), "drawn again"),
    ],
    "drawn_calls_have_the_same_answers_in_another_sandbox": [
        (answering(content=lambda: next(NUMBERS)), "the answer to"),
    ],
    "one_of_the_drawn_calls_submits": [
        (answering(submitted=False), "there is a call that submits"),
    ],
    "what_is_no_call_of_a_tool_is_answered": [
        (answering(ok=True), "is refused"),
        (answering(content="no"), "the tool that there is not is named"),
        (answering(call_id="another"), "call_id"),
    ],
    "a_missing_argument_is_named": [
        (answering(ok=True), "read without path is refused"),
        (answering(content="no"), "is told what is wrong"),
    ],
    "garbage_for_arguments_raises_nothing_and_stays_inside": [
        (WritesOutside(), "what is outside"),
        (answering(content=""), "wanted 1 to"),
        (Raises(), "read"),
    ],
    "paths_outside_the_workspace_are_refused": [
        (answering(ok=True), "is refused"),
        (TellsSecrets(), "tells no secret"),
        (WritesOutside(), "what is outside"),
    ],
    "a_reply_without_a_call_is_answered": [
        (having(no_call=replace(Reader.no_call, reply="")), "it says something, or ends"),
        (
            having(no_call=replace(Reader.no_call, is_format_error=False)),
            "going on after it is a format error",
        ),
    ],
}


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_passes_a_small_toolset_and_names_each_defect(check: str) -> None:
    CHECKS[check](Reader())
    assert DEFECTS[check]
    for toolset, words in DEFECTS[check]:
        kind = KeyError if isinstance(toolset, Raises) else AssertionError
        with pytest.raises(kind, match=re.escape(words)):
            CHECKS[check](toolset)
