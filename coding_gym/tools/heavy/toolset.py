"""The toolset ``heavy``, after the heavyweight scaffold that light ones are compared with."""

from collections.abc import Callable, Mapping

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.tools.call_arguments import text
from coding_gym.tools.commands import elided, report, run_command
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
from coding_gym.tools.prompts import EXAMPLE_COMMANDS
from coding_gym.tools.toolset import SUBMIT, ToolContext, Toolset, answer, nudge, tools_of

MAX_REPLY_CHARS = 8000  # of a command's output
MAX_ANSWER_CHARS = 12_000  # of any answer but a map, which has a budget of its own
_MAX_MAP_CHARS = MAX_TOKENS * CHARS_PER_TOKEN + 500
NUDGE = "Call a tool: `repo_map` and `bash` to look, `edit` to change, `submit` when it is done."


def _bash(call: ToolCall, context: ToolContext) -> ToolResult:
    end = run_command(text(call, "command"), context)
    return ToolResult(report(end, MAX_REPLY_CHARS), ok=end.ok, raw=end.raw)


def _finish(call: ToolCall, result: ToolResult, context: ToolContext) -> ToolResult:
    if result.submitted:
        return result
    most = _MAX_MAP_CHARS if call.name == "repo_map" else MAX_ANSWER_CHARS
    content = elided(result.content, most)
    content = remembered(call, content, context.state, ok=result.ok)
    return answer(call, content, ok=result.ok, raw=result.raw)


_TOOLS: Mapping[str, Callable[[ToolCall, ToolContext], ToolResult | str]] = {
    "repo_map": repo_map,
    "find_definition": find_definition,
    "find_references": find_references,
    "locate_fault": locate_fault,
    "edit": edit,
    "create": create,
    "note": note,
    "notes": notes,
    "bash": _bash,
    "submit": SUBMIT.run,
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
    *(ToolCall("bash", {"command": command}) for command in EXAMPLE_COMMANDS),
)


HEAVY = Toolset(
    name="heavy",
    system_prompt=SYSTEM_PROMPT,
    tools=tools_of(SCHEMAS, _TOOLS),
    on_no_call=nudge(NUDGE),
    examples=_EXAMPLES,
    unreadable="the arguments are no JSON: {call.error}",
    finish=_finish,
)
