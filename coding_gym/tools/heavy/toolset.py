"""The toolset ``heavy``, after the heavyweight scaffold that light ones are compared with."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.tools.answers import Refusal, answer, name_of, submitted
from coding_gym.tools.commands import elided, run_command, told
from coding_gym.tools.given import text
from coding_gym.tools.heavy.code_map import (
    CHARS_PER_TOKEN,
    MAX_TOKENS,
    find_definition,
    find_references,
    repo_map,
)
from coding_gym.tools.heavy.edits import create, edit
from coding_gym.tools.heavy.faults import locate_fault
from coding_gym.tools.heavy.memory import note, notes, remembered
from coding_gym.tools.heavy.prompt import SCHEMAS, SYSTEM_PROMPT
from coding_gym.tools.prompt_parts import with_kept_shell
from coding_gym.tools.protocol import NoCall, ToolContext
from coding_gym.tools.samples import COMMANDS, draw_call

if TYPE_CHECKING:
    from numpy.random import Generator

MAX_REPLY_CHARS = 8000  # of a command's output
MAX_ANSWER_CHARS = 12_000  # of any answer but a map, which has a budget of its own
_MAX_MAP_CHARS = MAX_TOKENS * CHARS_PER_TOKEN + 500
NUDGE = "Call a tool: `repo_map` and `bash` to look, `edit` to change, `submit` when it is done."


class HeavyToolset:
    """A repository map, lookups, fault localisation, checked edits, notes, a shell, ``submit``."""

    name = "heavy"
    system_prompt = SYSTEM_PROMPT
    schemas = SCHEMAS
    text_formats = ()

    def prompt(self, *, keeps_shell: bool) -> str:
        """Returns the system prompt; ``keeps_shell`` says that one shell runs all commands."""
        return with_kept_shell(SYSTEM_PROMPT, keeps_shell=keeps_shell)

    def execute(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Runs one call and returns its answer, which begins with the call's number."""
        if call.name == "submit" and not call.error:
            return submitted(call)
        content, ok, raw = _run(call, context)
        content = elided(content, _MAX_MAP_CHARS if call.name == "repo_map" else MAX_ANSWER_CHARS)
        content = remembered(call, content, context.state, ok=ok)
        return answer(call, content, ok=ok, raw=raw)

    def on_no_call(self, context: ToolContext) -> NoCall:  # noqa: ARG002 - the protocol's signature
        """Says what was expected, and counts a call."""
        return NoCall(NUDGE, ends=False, costs_call=True, is_format_error=True)

    def sample_call(self, rng: "Generator") -> ToolCall:
        """Draws a valid call whose answer does not depend on clock or machine."""
        return draw_call(rng, _EXAMPLES, ToolCall("submit"))


def _run(call: ToolCall, context: ToolContext) -> tuple[str, bool, str]:
    """Returns a call's answer, whether it did what was asked, and what the sandbox gave."""
    if call.error:
        return f"Error: the arguments are no JSON: {call.error}", False, ""
    if call.name not in _TOOLS and call.name != "bash":
        known = ", ".join([*_TOOLS, "bash", "submit"])
        return f"Error: unknown tool: {name_of(call.name)}; there are {known}", False, ""
    try:
        if call.name == "bash":
            end = run_command(text(call, "command"), context)
            return told(end, MAX_REPLY_CHARS), end.ok, end.raw
        return _TOOLS[call.name](call, context), True, ""
    except Refusal as refused:
        return f"Error: {refused}", False, ""


_TOOLS: Mapping[str, Callable[[ToolCall, ToolContext], str]] = {
    "repo_map": repo_map,
    "find_definition": find_definition,
    "find_references": find_references,
    "locate_fault": locate_fault,
    "edit": edit,
    "create": create,
    "note": note,
    "notes": notes,
}

_EXAMPLES = (
    ToolCall("repo_map"),
    ToolCall("repo_map", {"max_tokens": 200}),
    ToolCall("find_definition", {"name": "main"}),
    ToolCall("find_references", {"name": "len"}),
    ToolCall("locate_fault", {"test": "test_nothing.py"}),
    ToolCall("edit", {"path": "README.md", "old": "the", "new": "a"}),
    ToolCall("create", {"path": "check.py", "content": "print('checked')\n"}),
    ToolCall("create", {"path": "broken.py", "content": "def f(:\n"}),
    ToolCall("note", {"text": "The tests are in the folder tests."}),
    ToolCall("notes"),
    *(ToolCall("bash", {"command": command}) for command in COMMANDS),
)
