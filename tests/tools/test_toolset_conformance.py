"""Every registered toolset is held to the one suite, and the suite finds what is wrong."""

import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.testing import toolset_checks
from coding_gym.testing.toolset_scene import OUTSIDE
from coding_gym.tools import NoCall, Toolset, ToolContext, get_toolset, toolset_names
from coding_gym.tools.schemas import function


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

    def prompt(self, *, keeps_shell: bool) -> str:
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

    def on_no_call(self, context: ToolContext) -> NoCall:
        return NoCall("Call a tool.", ends=False, costs_call=True, is_format_error=True)

    def sample_call(self, rng: Any) -> ToolCall:
        if rng.random() < 0.5:
            return ToolCall("submit", {})
        return ToolCall("read", {"path": "README.md"})


def answers(answer: Callable[[ToolCall, ToolContext, ToolResult], ToolResult]) -> Toolset:
    """Returns a Reader whose answers are replaced."""

    class Changed(Reader):
        def execute(self, call: ToolCall, context: ToolContext) -> ToolResult:
            return answer(call, context, super().execute(call, context))

    return Changed()


def having(**attributes: Any) -> Toolset:
    """Returns a Reader with other attributes."""
    return type("Changed", (Reader,), attributes)()  # type: ignore[no-any-return]


def draws(call: Callable[[], ToolCall]) -> Toolset:
    return having(sample_call=lambda self, rng: call())


def replies(*reply: Any, **options: Any) -> Toolset:
    return having(on_no_call=lambda self, context: NoCall(*reply, **options))


def writing_outside(call: ToolCall, context: ToolContext, result: ToolResult) -> ToolResult:
    if "no_such_argument" in call.arguments or str(call.arguments.get("path")).endswith("/new"):
        context.sandbox.write_file(f"{OUTSIDE}/new", b"new")
    return result


def telling_secrets(call: ToolCall, context: ToolContext, result: ToolResult) -> ToolResult:
    if str(call.arguments.get("path")).endswith("/secret"):
        return replace(result, content=context.sandbox.read_file(f"{OUTSIDE}/secret").decode())
    return result


COUNT = itertools.count()

# (check, a toolset with one defect, words of the check about it)
DEFECTS = [
    ("it_says_what_it_is", having(name=" "), "it has a name"),
    ("it_says_what_it_is", having(prompt=lambda self, keeps_shell: ""), "a system prompt"),
    ("it_says_what_it_is", having(text_formats=(3,)), "text_formats"),
    ("its_schemas_are_openai_functions", having(schemas=()), "there are tools"),
    (
        "its_schemas_are_openai_functions",
        having(schemas=Reader.schemas * 2),
        "names are there once",
    ),
    (
        "its_schemas_are_openai_functions",
        having(schemas=(function("read", "Read a file.", path=""),)),
        "path of read has a description",
    ),
    (
        "drawn_calls_fit_the_schemas_and_follow_the_seed",
        draws(lambda: ToolCall("write", {})),
        "write is a tool",
    ),
    (
        "drawn_calls_fit_the_schemas_and_follow_the_seed",
        draws(lambda: ToolCall("read", {"path": 3})),
        "misfit of",
    ),
    (
        "drawn_calls_fit_the_schemas_and_follow_the_seed",
        draws(lambda: ToolCall("read", {"path": str(next(COUNT))})),
        "drawn again",
    ),
    (
        "drawn_calls_have_the_same_answers_in_another_sandbox",
        answers(lambda call, _, result: replace(result, content=f"{next(COUNT)}")),
        "the answer to",
    ),
    (
        "one_of_the_drawn_calls_submits",
        answers(lambda call, _, result: replace(result, submitted=False)),
        "there is a call that submits",
    ),
    (
        "what_is_no_call_of_a_tool_is_answered",
        answers(lambda call, _, result: replace(result, ok=True)),
        "is refused",
    ),
    (
        "what_is_no_call_of_a_tool_is_answered",
        answers(lambda call, _, result: replace(result, content="no")),
        "the tool that there is not is named",
    ),
    (
        "what_is_no_call_of_a_tool_is_answered",
        answers(lambda call, _, result: replace(result, call_id="another")),
        "call_id",
    ),
    (
        "a_missing_argument_is_named",
        answers(lambda call, _, result: replace(result, ok=True)),
        "read without path is refused",
    ),
    (
        "a_missing_argument_is_named",
        answers(lambda call, _, result: replace(result, content="no")),
        "is told what is wrong",
    ),
    (
        "garbage_for_arguments_raises_nothing_and_stays_inside",
        answers(writing_outside),
        "what is outside",
    ),
    (
        "garbage_for_arguments_raises_nothing_and_stays_inside",
        answers(lambda call, _, result: replace(result, content="")),
        "wanted 1 to",
    ),
    (
        "paths_outside_the_workspace_are_refused",
        answers(lambda call, _, result: replace(result, ok=True)),
        "is refused",
    ),
    ("paths_outside_the_workspace_are_refused", answers(telling_secrets), "tells no secret"),
    ("paths_outside_the_workspace_are_refused", answers(writing_outside), "what is outside"),
    (
        "a_reply_without_a_call_is_answered",
        replies("", ends=False, costs_call=True, is_format_error=True),
        "it says something, or ends",
    ),
    (
        "a_reply_without_a_call_is_answered",
        replies("Go on.", ends=False, costs_call=True),
        "going on after it is a format error",
    ),
]


def test_every_check_has_a_defect_that_it_finds() -> None:
    assert {check for check, *_ in DEFECTS} == CHECKS.keys()


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_passes_a_small_toolset_and_names_each_defect(check: str) -> None:
    CHECKS[check](Reader())
    for name, toolset, words in DEFECTS:
        if name == check:
            with pytest.raises(AssertionError, match=re.escape(words)):
                CHECKS[check](toolset)


def test_a_tool_that_raises_on_garbage_is_not_hidden() -> None:
    def lookup(call: ToolCall, context: ToolContext, result: ToolResult) -> ToolResult:
        return result if isinstance(call.arguments.get("path"), str) else {}[call.name]

    with pytest.raises(KeyError, match="read"):
        CHECKS["garbage_for_arguments_raises_nothing_and_stays_inside"](answers(lookup))
