"""Toolset ``thesis``: the tools of CodeRepairRL's second scaffold, with other result texts."""

from coding_gym.calls import ToolCall
from coding_gym.tools import files, prompts
from coding_gym.tools.commands import bash_tool, elided
from coding_gym.tools.schemas import integer
from coding_gym.tools.toolset import SUBMIT, Refusal, Tool, ToolContext, Toolset, name_of

MAX_COMMAND_CHARS, MAX_VIEW_LINES, MAX_VIEW_CHARS = 8000, 400, 16_000

SYSTEM_PROMPT = f"""\
{prompts.INTRODUCTION}

Tools: `bash` runs `command` and omits the middle of outputs above {MAX_COMMAND_CHARS} characters. \
`view_file` shows numbered lines of `path`, from `start_line` to `end_line`, {MAX_VIEW_LINES} at \
most. `str_replace` replaces `old_str`, which must occur once in `path`, by `new_str`. \
`write_file` writes the whole `content` of `path`. `submit` ends the work.

{prompts.ending("bash")}"""


def _str_replace(call: ToolCall, context: ToolContext) -> str:
    path, old, new = (call.arguments[name] for name in ("path", "old_str", "new_str"))
    file = files.read_file(context, path)
    new_text, line, _ = files.replace_once(file, old, new)
    files.write_file(context, file, new_text)
    return f"Replaced the text at line {line} of {name_of(path)}."


def _view_file(call: ToolCall, context: ToolContext) -> str:
    path, first = call.arguments["path"], int(call.arguments.get("start_line", 1))
    lines = files.lines_of(files.read_file(context, path).text)
    end = int(call.arguments.get("end_line", -1))
    last = min(len(lines) if end == -1 else end, len(lines), first + MAX_VIEW_LINES - 1)
    if not 1 <= first <= (last if lines else 1):
        raise Refusal(
            f"`start_line` must be a line of {name_of(path)}, 1 to {len(lines)}, and `end_line` "
            f"at least `start_line`, or -1 for the end; got {first} to {end}"
        )
    view = elided(files.numbered(lines[first - 1 : last], first), MAX_VIEW_CHARS)
    return f"Lines {first} to {last} of {len(lines)} in {name_of(path)}:\n{view}"


def _write_file(call: ToolCall, context: ToolContext) -> str:
    path, content = call.arguments["path"], call.arguments["content"]
    is_new, _ = files.overwrite(context, path, content)
    return f"{'Created' if is_new else 'Wrote'} {name_of(path)}."


_TEXTS = {"old_str": "The text to find, copied exactly", "new_str": "The new text"}
_LINES = {"start_line": integer("The first line, from 1"), "end_line": integer("The last line")}

THESIS = Toolset(
    name="thesis",
    system_prompt=SYSTEM_PROMPT,
    tools=(
        bash_tool(MAX_COMMAND_CHARS),
        Tool(
            name="str_replace",
            description="Replace a text that occurs exactly once in a file.",
            parameters={"path": "The file", **_TEXTS},
            run=_str_replace,
        ),
        Tool(
            name="view_file",
            description=f"Show lines of a file with their numbers, at most {MAX_VIEW_LINES}.",
            optional=("start_line", "end_line"),
            parameters={"path": "The file", **_LINES},
            run=_view_file,
        ),
        Tool(
            name="write_file",
            description="Write a whole new or existing file. Missing folders are created.",
            parameters={"path": "The file", "content": "The whole content of the file"},
            run=_write_file,
        ),
        SUBMIT,
    ),
)
