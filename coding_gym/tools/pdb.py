"""Toolset ``pdb``: Python's debugger on the program inside the sandbox, after debug-gym's idea.

The debugger itself, and the session that goes on from call to call, are in `inside/debugging.py`.
"""

import json

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.tools import prompts
from coding_gym.tools.call_arguments import has_argument, text, whole_number
from coding_gym.tools.commands import bash_tool, command_report, elided, run_command
from coding_gym.tools.files import lines_of, numbered, open_file, save
from coding_gym.tools.programs import ask, syntax_errors, text_of
from coding_gym.tools.schemas import integer
from coding_gym.tools.toolset import (
    SUBMIT,
    Refusal,
    Tool,
    ToolContext,
    Toolset,
    answer,
    name_of,
    nudge,
)

MAX_COMMAND_CHARS = 8000
_MAX_LINES = 200
_MAX_SESSION_CHARS = 60_000  # as JSON
_MAX_PLAYED_CHARS = 200_000  # before it is cut for the policy
_RESERVE_S = 5.0  # or half of the time limit: for what is done before and after the program
_TESTS = "python -m pytest -q"

SYSTEM_PROMPT = f"""\
{prompts.INTRODUCTION}

Work with the debugger: look at what the program does before you change it.
1. Read the report, then the code, with `bash` and `view`.
2. `eval` runs the tests. If none fails, write a small script that shows the problem.
3. `pdb` with `w`, after `start` where it is a script, stops where it fails. Go with `up` and \
`down`, print with `p`, set `b FILE:LINE` or `b FILE:LINE, CONDITION`, then `restart`; `n`, `s`, \
`r` and `c` go on.
4. Find where a value is first wrong, and `rewrite` that code, as little as possible.
5. `eval` again, then `submit`.

The debugger runs the program again from its start for each call and plays your earlier commands \
again, so they should have no effects that last. When code changes, the session begins anew with \
its breakpoints. {prompts.LAST_WORDS}
{prompts.calls_as_json('{"name": "pdb", "arguments": {"command": "w"}}')} Each `bash` \
command {prompts.FRESH_SHELL}
"""


def _pdb(call: ToolCall, context: ToolContext) -> str:
    limit_s = context.command_timeout_s
    request = {
        "session": context.state.get("pdb"),
        "command": text(call, "command"),
        "seconds": max(limit_s - _RESERVE_S, limit_s / 2),
    }
    trouble = "the program could not be debugged: {}; the session is as before"
    reply = ask(context, "debugging.play", request, trouble)
    played = text_of(reply, _MAX_PLAYED_CHARS)
    context.state["pdb"] = _session(reply.get("session"))
    return elided(played, MAX_COMMAND_CHARS)


def _session(session: object) -> object:
    """Returns a session, which the program may have forged: some JSON, bounded."""
    try:
        if len(json.dumps(session, allow_nan=False)) <= _MAX_SESSION_CHARS:
            return session
    except (ValueError, RecursionError):
        pass
    raise Refusal("the session became too large; begin anew with `restart`")


def _eval(call: ToolCall, context: ToolContext) -> ToolResult:
    end = run_command(text(call, "command", _TESTS), context)
    report = command_report(end, context, MAX_COMMAND_CHARS)
    return answer(call, report, ok=end.ok, raw=end.output)


def _view(call: ToolCall, context: ToolContext) -> str:
    path = text(call, "path")
    lines = lines_of(open_file(context, path).text)
    first, last = whole_number(call, "start", 1), whole_number(call, "end", len(lines))
    if not lines:
        return f"{name_of(path)} is empty"
    first, last = max(1, first), min(last, len(lines))
    if first > last:
        raise Refusal(f"{name_of(path)} has {len(lines)} lines, and none from {first} to {last}")
    end = min(last, first + _MAX_LINES - 1)
    view = elided(numbered(lines[first - 1 : end], first), 2 * MAX_COMMAND_CHARS)
    return f"{view}\n({len(lines) - end} more lines)" if end < len(lines) else view


def _rewrite(call: ToolCall, context: ToolContext) -> str:
    path, new_code = text(call, "path"), text(call, "new_code").replace("\r\n", "\n")
    file = open_file(context, path)
    lines = lines_of(file.text)
    first, last = 1, len(lines)
    if has_argument(call, "start"):
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
    now = elided(numbered(new_lines, first), MAX_COMMAND_CHARS) if new_lines else "(deleted)"
    done = f"{name_of(path)}: lines {first} to {last} are now\n{now}"
    if file.place.endswith(".py"):
        [(message, line)], _ = syntax_errors(context, [changed])
        done += f"\n[{message}, line {line}]" if message else ""
    return done


_PATH = "The file's path relative to the repository"
_BASH = "Run a bash command in the repository. Of long output the head and the tail are shown."

PDB = Toolset(
    name="pdb",
    system_prompt=SYSTEM_PROMPT,
    tools=(
        Tool(
            name="pdb",
            description="Give commands to Python's debugger, one a line, and see what they print. "
            "`start FILE.py ARGUMENTS`, `start -m MODULE ARGUMENTS` or `start "
            "tests/test_x.py::test_y` chooses the program; without that it is `python -m pytest "
            "-x -q`. Tests run until one fails and stop there, a script stops at its first line. "
            "`restart` begins again. Breakpoints are kept.",
            parameters={"command": "The commands, for example: b src/parser.py:40, depth > 2"},
            run=_pdb,
        ),
        bash_tool(MAX_COMMAND_CHARS, _BASH),
        Tool(
            name="view",
            description="Show lines of a file with their numbers.",
            optional=("start", "end"),
            parameters={
                "path": _PATH,
                "start": integer("The first line; 1 if left out"),
                "end": integer("The last line; at most 200 lines are shown"),
            },
            run=_view,
        ),
        Tool(
            name="rewrite",
            description="Replace whole lines of a file.",
            optional=("start", "end"),
            parameters={
                "path": _PATH,
                "start": integer("The first line to replace; the whole file if left out"),
                "end": integer("The last line to replace; the first one if left out"),
                "new_code": "The lines to put in their place, with their indentation; empty to "
                "delete them",
            },
            run=_rewrite,
        ),
        Tool(
            name="eval",
            description="Run the repository's tests and see how they end.",
            optional=("command",),
            parameters={"command": "Another test command; python -m pytest -q if left out"},
            run=_eval,
        ),
        SUBMIT,
    ),
    on_no_call=nudge(
        "Call a tool: `pdb`, `bash` or `view` to look, `rewrite` to change, `submit` when it is "
        "done."
    ),
    examples=(
        ToolCall("pdb", {"command": "w"}),
        ToolCall("pdb", {"command": "start notes.py"}),
        ToolCall("pdb", {"command": "start -m no_such_module"}),
        ToolCall("view", {"path": "README.md"}),
        ToolCall("view", {"path": "README.md", "start": 1, "end": 5}),
        ToolCall("rewrite", {"path": "README.md", "start": 1, "end": 1, "new_code": "# Notes"}),
        ToolCall("eval", {"command": "python -m pytest -q no_such_test.py"}),
        *(ToolCall("bash", {"command": command}) for command in prompts.EXAMPLE_COMMANDS),
    ),
)
