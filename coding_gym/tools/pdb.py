"""Toolset ``pdb``: Python's debugger on the program inside the sandbox, after debug-gym's idea."""

from collections.abc import Callable, Mapping

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.text.truncate import scrub_runner_times
from coding_gym.tools.call_arguments import is_given, text, whole_number
from coding_gym.tools.commands import elided, report, run_command
from coding_gym.tools.files import lines_of, numbered, open_file, save
from coding_gym.tools.pdb_prompt import SCHEMAS, SYSTEM_PROMPT
from coding_gym.tools.pdb_session import pdb_answer
from coding_gym.tools.programs import ask, int_of, rows_of, text_of
from coding_gym.tools.prompts import EXAMPLE_COMMANDS
from coding_gym.tools.toolset import (
    SUBMIT,
    Refusal,
    ToolContext,
    Toolset,
    answer,
    name_of,
    nudge,
    tools_of,
)

MAX_REPLY_CHARS = 8000
NUDGE = (
    "Call a tool: `pdb`, `bash` or `view` to look, `rewrite` to change, `submit` when it is done."
)
_MAX_LINES = 200
_TESTS = "python -m pytest -q"


def _pdb(call: ToolCall, context: ToolContext) -> ToolResult:
    said = scrub_runner_times(pdb_answer(text(call, "command"), context))
    return answer(call, elided(said, MAX_REPLY_CHARS))


def _bash(call: ToolCall, context: ToolContext) -> ToolResult:
    return _run(call, text(call, "command"), context)


def _eval(call: ToolCall, context: ToolContext) -> ToolResult:
    return _run(call, text(call, "command", _TESTS), context)


def _run(call: ToolCall, command: str, context: ToolContext) -> ToolResult:
    end = run_command(command, context)
    return answer(call, report(end, MAX_REPLY_CHARS), ok=end.ok, raw=end.raw)


def _view(call: ToolCall, context: ToolContext) -> ToolResult:
    path = text(call, "path")
    lines = lines_of(open_file(context, path).text)
    first, last = whole_number(call, "start", 1), whole_number(call, "end", len(lines))
    if not lines:
        return answer(call, f"{name_of(path)} is empty")
    first, last = max(1, first), min(last, len(lines))
    if first > last:
        raise Refusal(f"{name_of(path)} has {len(lines)} lines, and none from {first} to {last}")
    end = min(last, first + _MAX_LINES - 1)
    said = elided(numbered(lines[first - 1 : end], first), 2 * MAX_REPLY_CHARS)
    if end < len(lines):
        said += f"\n({len(lines) - end} more lines)"
    return answer(call, said)


def _rewrite(call: ToolCall, context: ToolContext) -> ToolResult:
    path, new_code = text(call, "path"), text(call, "new_code").replace("\r\n", "\n")
    file = open_file(context, path)
    lines = lines_of(file.text)
    first, last = 1, len(lines)
    if is_given(call, "start"):
        first = whole_number(call, "start")
        last = whole_number(call, "end", first)
        if not 1 <= first <= last <= len(lines):
            raise Refusal(
                f"`start` and `end` must be lines of {name_of(path)}, from 1 to {len(lines)}, got "
                f"{first} and {last}"
            )
    new_lines = lines_of(new_code)
    if any(line.endswith("\r") for line in lines[first - 1 : last]):  # line ends are mixed
        new_lines = [f"{line}\r" for line in new_lines]
    ends_line = file.text.endswith("\n") or last == len(lines)  # its end stays as it is, elsewhere
    lines[first - 1 : last] = new_lines
    changed = "\n".join(lines) + ("\n" if lines and ends_line else "")
    save(context, file, changed)
    now = elided(numbered(new_lines, first), MAX_REPLY_CHARS) if new_lines else "(deleted)"
    said = f"{name_of(path)}: lines {first} to {last} are now\n{now}"
    return answer(call, said + _complaint(file.place, changed, context))


def _complaint(place: str, code: str, context: ToolContext) -> str:
    """Returns a line that says that a Python file does not parse, or ""."""
    if not place.endswith(".py"):
        return ""
    reply = ask(context, "syntax", {"texts": [code], "language": "python"})
    found = rows_of(reply.value.get("errors"))
    if not found:
        return ""
    return f"\n[{text_of(found[0].get('message'))}, line {int_of(found[0].get('line'))}]"


_TOOLS: Mapping[str, Callable[[ToolCall, ToolContext], ToolResult | str]] = {
    "pdb": _pdb,
    "bash": _bash,
    "view": _view,
    "rewrite": _rewrite,
    "eval": _eval,
    "submit": SUBMIT.run,
}

_EXAMPLES = (
    ToolCall("pdb", {"command": "w"}),
    ToolCall("pdb", {"command": "start notes.py"}),
    ToolCall("pdb", {"command": "start -m no_such_module"}),
    ToolCall("view", {"path": "README.md"}),
    ToolCall("view", {"path": "README.md", "start": 1, "end": 5}),
    ToolCall("rewrite", {"path": "README.md", "start": 1, "end": 1, "new_code": "# Notes"}),
    ToolCall("eval", {"command": "python -m pytest -q no_such_test.py"}),
    *(ToolCall("bash", {"command": command}) for command in EXAMPLE_COMMANDS),
)

PDB = Toolset(
    name="pdb",
    system_prompt=SYSTEM_PROMPT,
    tools=tools_of(SCHEMAS, _TOOLS),
    on_no_call=nudge(NUDGE),
    examples=_EXAMPLES,
)
