"""Toolset ``thesis``: bash, a literal replacement, a view by lines, whole files.

The tools of CodeRepairRL's second scaffold, by their names and arguments. The replies are ours.
"""

from coding_gym.calls import ToolCall
from coding_gym.tools import files, prompts
from coding_gym.tools.call_arguments import has_argument, text, whole_number
from coding_gym.tools.commands import bash_tool, elided
from coding_gym.tools.schemas import integer
from coding_gym.tools.toolset import SUBMIT, Refusal, Tool, ToolContext, Toolset, name_of, nudge

MAX_COMMAND_CHARS = 8000
MAX_VIEW_LINES = 400
MAX_VIEW_CHARS = 16_000

SYSTEM_PROMPT = f"""\
{prompts.INTRODUCTION}

Tools
- `bash` runs a command, `command`; of an output longer than {MAX_COMMAND_CHARS} characters the \
middle is left out.
- `view_file` shows lines of the file `path` with their numbers, from `start_line` to `end_line` \
where they are given, {MAX_VIEW_LINES} at most.
- `str_replace` replaces the text `old_str`, which occurs exactly once in the file `path`, by \
`new_str`.
- `write_file` writes the whole file `path`: its `content`.
- `submit` ends the work.

{prompts.HOW_TO_WORK}

{prompts.calls_as_json('{"name": "bash", "arguments": {"command": "ls"}}')} Each command \
{prompts.FRESH_SHELL}

{prompts.LAST_WORDS}"""


def _str_replace(call: ToolCall, context: ToolContext) -> str:
    path, old, new = (text(call, name) for name in ("path", "old_str", "new_str"))
    if not old:
        raise Refusal("`old_str` must not be empty; write_file makes new files")
    file = files.open_file(context, path)
    changed, start, _ = files.replace_once(
        file,
        old,
        new,
        missing="`old_str` does not occur in {name}; view the file and copy it exactly",
        several="`old_str` occurs {num} times in {name}, at lines {lines}; give more of the text "
        "around the one that is meant",
    )
    files.save(context, file, changed)
    return f"Replaced the text at line {files.line_of(changed, start)} of {name_of(path)}."


def _view_file(call: ToolCall, context: ToolContext) -> str:
    path, first = text(call, "path"), whole_number(call, "start_line", 1)
    last = whole_number(call, "end_line") if has_argument(call, "end_line") else None
    if first < 1:
        raise Refusal(f"`start_line` must be at least 1, got {first}")
    if last is not None and last < first:
        raise Refusal(f"`end_line` must be at least `start_line`, got {last} and {first}")
    lines = files.lines_of(files.open_file(context, path).text)
    if not lines:
        return f"{name_of(path)} is empty."
    if first > len(lines):
        raise Refusal(f"{name_of(path)} has {len(lines)} lines, got `start_line` {first}")
    end = min(last or len(lines), len(lines), first + MAX_VIEW_LINES - 1)
    view = elided(files.numbered(lines[first - 1 : end], first), MAX_VIEW_CHARS)
    return f"Lines {first} to {end} of {len(lines)} in {name_of(path)}:\n{view}"


def _write_file(call: ToolCall, context: ToolContext) -> str:
    path, content = text(call, "path"), text(call, "content")
    _, before, _ = files.write_text(context, path, content)
    num_lines = len(files.lines_of(content))
    done = "Created" if before is None else "Wrote"
    return f"{done} {name_of(path)}, {num_lines} line{'s' * (num_lines != 1)}."


_PATH = "The file's path relative to the repository"

THESIS = Toolset(
    name="thesis",
    system_prompt=SYSTEM_PROMPT,
    tools=(
        bash_tool(MAX_COMMAND_CHARS),
        Tool(
            name="str_replace",
            description="Replace one piece of text in one file. The text to find must occur "
            "exactly once.",
            parameters={
                "path": f"{_PATH}, for example: src/parser.py",
                "old_str": "The text to find, copied exactly, with its whitespace and indentation",
                "new_str": "The text to put in its place",
            },
            run=_str_replace,
        ),
        Tool(
            name="view_file",
            description=f"Show lines of a file with their numbers, at most {MAX_VIEW_LINES} at a "
            "time.",
            optional=("start_line", "end_line"),
            parameters={
                "path": _PATH,
                "start_line": integer("The first line to show, from 1; 1 by default"),
                "end_line": integer("The last line to show; the end of the file by default"),
            },
            run=_view_file,
        ),
        Tool(
            name="write_file",
            description="Write a whole file, new or not. Folders that are missing are made.",
            parameters={"path": _PATH, "content": "All that the file will hold"},
            run=_write_file,
        ),
        SUBMIT,
    ),
    on_no_call=nudge(
        "No tool call was found in your reply. Call bash, view_file, str_replace or write_file to "
        "go on, or submit when the work is done."
    ),
    examples=(
        *(ToolCall("bash", {"command": command}) for command in prompts.EXAMPLE_COMMANDS),
        ToolCall("view_file", {"path": "README.md"}),
        ToolCall("view_file", {"path": "README.md", "start_line": 2, "end_line": 6}),
        ToolCall("view_file", {"path": "no-such-file"}),
        ToolCall("str_replace", {"path": "README.md", "old_str": "# ", "new_str": "## "}),
        ToolCall(
            "str_replace", {"path": "notes.txt", "old_str": "a note\n", "new_str": "a word\n"}
        ),
        ToolCall("write_file", {"path": "notes.txt", "content": "a note\n"}),
    ),
)
