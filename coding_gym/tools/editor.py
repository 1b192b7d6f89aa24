"""Toolset ``editor``: ``str_replace_editor`` and ``bash``, as many policies were trained with them.

Names, arguments, the layout of views and the sentences around them are those that SWE-agent (its
tools/edit_anthropic), R2E-Gym and OpenHands share. Mended: paths may be relative; tabs stay tabs;
encodings, line ends and modes stay; what is created can be undone; links are not followed out of
the repository. The shell is called ``bash``, as SWE-agent and the models trained on its data have
it; ``execute_bash`` and ``finish``, as OpenHands and R2E-Gym say, are taken for ``bash`` and
``submit``.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.tools import given
from coding_gym.tools.answers import answer, dispatched, submitted
from coding_gym.tools.commands import run_command, told
from coding_gym.tools.editor_files import create, insert, str_replace, undo_edit, view
from coding_gym.tools.editor_prompt import (
    COMMAND_NAMES,
    EXAMPLES,
    EXPECTED,
    MAX_REPLY_CHARS,
    SCHEMAS,
    SYSTEM_PROMPT,
)
from coding_gym.tools.prompt_parts import with_kept_shell
from coding_gym.tools.protocol import NoCall, ToolContext
from coding_gym.tools.samples import draw_call

if TYPE_CHECKING:
    from numpy.random import Generator

ALIASES: Mapping[str, str] = {"execute_bash": "bash", "finish": "submit"}


class EditorToolset:
    """The tools ``str_replace_editor``, ``bash`` and ``submit``."""

    name = "editor"
    system_prompt = SYSTEM_PROMPT
    schemas = SCHEMAS
    text_formats = ()

    def prompt(self, *, keeps_shell: bool) -> str:
        """Returns the system prompt; ``keeps_shell`` says that one shell runs all commands."""
        return with_kept_shell(SYSTEM_PROMPT, keeps_shell=keeps_shell)

    def meant(self, call: ToolCall) -> ToolCall:
        """Returns a call with the names that the schemas have for its tool and its argument."""
        call = replace(call, name=ALIASES.get(call.name, call.name))
        if call.name == "bash" and "command" not in call.arguments and "cmd" in call.arguments:
            return replace(call, arguments={"command": call.arguments["cmd"]})  # R2E-Gym's name
        return call

    def execute(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Runs one call and returns its answer."""
        return dispatched(_TOOLS, self.meant(call), context, error="ERROR")

    def on_no_call(self, context: ToolContext) -> NoCall:  # noqa: ARG002 - as the protocol has it
        """Says what was expected and counts a call."""
        return NoCall(EXPECTED, ends=False, costs_call=True, is_format_error=True)

    def sample_call(self, rng: "Generator") -> ToolCall:
        """Draws a valid call whose answer does not depend on clock or machine."""
        return draw_call(rng, EXAMPLES, ToolCall("submit"))


_COMMANDS: Mapping[str, Callable[[ToolCall, ToolContext], str]] = {
    "view": view,
    "create": create,
    "str_replace": str_replace,
    "insert": insert,
    "undo_edit": undo_edit,
}


def _editor(call: ToolCall, context: ToolContext) -> ToolResult:
    command = given.one_of(call, "command", COMMAND_NAMES)
    return answer(call, _COMMANDS[command](call, context))


def _bash(call: ToolCall, context: ToolContext) -> ToolResult:
    end = run_command(given.text(call, "command"), context)
    return answer(call, told(end, MAX_REPLY_CHARS), ok=end.ok, raw=end.raw)


def _submit(call: ToolCall, context: ToolContext) -> ToolResult:  # noqa: ARG001 - one signature
    return submitted(call)


_TOOLS: Mapping[str, Callable[[ToolCall, ToolContext], ToolResult]] = {
    "str_replace_editor": _editor,
    "bash": _bash,
    "submit": _submit,
}
