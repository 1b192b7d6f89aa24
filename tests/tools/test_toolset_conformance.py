"""Every registered toolset is held to the one suite, and the suite finds what is wrong."""

from dataclasses import dataclass
from typing import Any

import pytest

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.testing import ToolsetCheck, toolset_checks
from coding_gym.tools import NoCall, ToolContext, get_toolset, toolset_names
from coding_gym.tools.schemas import function


@pytest.mark.parametrize("name", toolset_names())
@pytest.mark.parametrize("check", toolset_checks(), ids=lambda check: check.name)
def test_toolset_keeps_the_contract(check: ToolsetCheck, name: str) -> None:
    check(get_toolset(name))


@dataclass
class Careless:
    """A toolset that reads whatever path it is given, and raises on what is no text."""

    name: str = "careless"
    system_prompt: str = "Read files."
    schemas: tuple[dict[str, Any], ...] = (function("read", "Read a file.", path=""),)
    text_formats: tuple[str, ...] = ()

    def prompt(self, *, keeps_shell: bool) -> str:
        return self.system_prompt if keeps_shell else ""

    def execute(self, call: ToolCall, context: ToolContext) -> ToolResult:
        content = context.sandbox.read_file(str(call.arguments.get("path", "README.md")))
        return ToolResult(content.decode(), call_id=call.call_id)

    def on_no_call(self, context: ToolContext) -> NoCall:
        return NoCall(f"{context.state}"[:0], ends=False, costs_call=True)

    def sample_call(self, rng: Any) -> ToolCall:
        return ToolCall("read", {"path": int(rng.integers(10))})


def test_each_check_but_those_of_names_finds_a_careless_toolset() -> None:
    for check in toolset_checks():
        with pytest.raises((AssertionError, OSError, ValueError)):
            check(Careless())
