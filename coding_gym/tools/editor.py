"""Toolset ``editor``: ``str_replace_editor`` and ``bash``, with which many policies are trained.

Names, arguments, the form of views and the sentences around views are those of SWE-agent
(tools/edit_anthropic), R2E-Gym and OpenHands; the shell is called ``bash``, as in SWE-agent.
Differences: paths can be relative; an edit keeps tabs, line ends and the file mode; there is no
``undo_edit``.
"""

from collections.abc import Callable, Mapping
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.text.truncate import head
from coding_gym.tools import files, prompts
from coding_gym.tools.commands import bash_tool
from coding_gym.tools.schemas import array, integer
from coding_gym.tools.toolset import SUBMIT, Refusal, Tool, ToolContext, Toolset, name_of, quoted

MAX_REPLY_CHARS = 16_000
MAX_ENTRIES = 400

_NUM_CONTEXT_LINES = 4

TOOLS = f"""\
- `str_replace_editor` views, creates and edits the text file `path`. Its `command` is `view` \
(with `view_range`), `create` (with `file_text`), `str_replace` (of `old_str` by `new_str`) or \
`insert` (of `new_str` after the line `insert_line`).
- `bash` runs the command `command`. Results are truncated to {MAX_REPLY_CHARS:,} characters.
- `submit` ends the work."""

SYSTEM_PROMPT = f"""\
{prompts.INTRODUCTION}

Tools
{TOOLS}

{prompts.ending("bash")}"""

_REVIEW = "Review the changes and make sure they are as expected. Edit the file again if necessary."
_CLIPPED_NOTE = (
    "<response clipped><NOTE>Only a part is shown. Search with `grep -n`, then view the lines that "
    "you need with `view_range`.</NOTE>"
)


def _view(path: str, call: ToolCall, context: ToolContext) -> str:
    """Returns a file's numbered lines, or the content of a folder two levels deep."""
    view_range = call.arguments.get("view_range")
    if view_range and len(view_range) != 2:
        raise Refusal(f"`view_range` must be a list of two line numbers, got {quoted(view_range)}")
    try:
        lines = files.lines_of(files.read_file(context, path).text)
    except Refusal as refusal:
        if view_range or not isinstance(refusal.__cause__, IsADirectoryError):
            raise
        return _list_folder(path, context)
    if not view_range:
        return _cat(lines, path, 1)
    first, last = map(int, view_range)
    last = len(lines) if last == -1 else last
    if not 1 <= first <= max(len(lines), 1) or last < first:
        raise Refusal(
            f"Invalid `view_range`: {view_range}. Its first element must be a line of the file, 1 "
            f"to {len(lines)}, and its second at least the first, or -1 for the end"
        )
    return _cat(lines[first - 1 : last], path, first)


def _list_folder(path: str, context: ToolContext) -> str:
    tests = f"-maxdepth 2 {files.SKIP_HIDDEN}"
    entries, has_more = files.list_folder(context, path, tests=tests, max_entries=MAX_ENTRIES)
    base = files.absolute_path(context, path).rstrip("/")
    rows = [f"{base}/{entry}" for entry in entries]
    notice = f"\n[only the first {MAX_ENTRIES} are listed]" if has_more else ""
    title = (
        f"Here's the files and directories up to 2 levels deep in {name_of(path)}, "
        "excluding hidden items:"
    )
    return head("\n".join([title, f"{base}/", *rows]) + notice, MAX_REPLY_CHARS, _CLIPPED_NOTE)


def _create(path: str, call: ToolCall, context: ToolContext) -> str:
    content = _argument(call, "file_text")
    if files.read_if_exists(context, path) is not None:
        raise Refusal(
            f"File already exists at: {name_of(path)}. Cannot overwrite files using command "
            "`create`; use `str_replace` or `insert`"
        )
    files.write_file(context, files.TextFile(path), content)
    return f"File created successfully at: {name_of(path)}"


def _str_replace(path: str, call: ToolCall, context: ToolContext) -> str:
    old, new = _argument(call, "old_str"), call.arguments.get("new_str", "")
    if old == new:
        raise Refusal("No replacement was performed. `new_str` and `old_str` must be different.")
    file = files.read_file(context, path)
    new_text, first, last = files.replace_once(
        file,
        old,
        new,
        missing="No replacement was performed, old_str did not appear verbatim in {name}.",
        several="No replacement was performed. Multiple occurrences of old_str in lines "
        "[{lines}]. Please ensure it is unique.",
    )
    return _write(file, new_text, first, last, context)


def _insert(path: str, call: ToolCall, context: ToolContext) -> str:
    """Inserts lines after line ``insert_line``, or at the top if it is 0."""
    num_before, new = int(_argument(call, "insert_line")), _argument(call, "new_str")
    file = files.read_file(context, path)
    lines = file.text.split("\n")
    num_lines = len(files.lines_of(file.text))
    if not 0 <= num_before <= num_lines:
        raise Refusal(
            f"Invalid `insert_line` parameter: {num_before}. It must be from 0 to {num_lines}, "
            "the number of lines of the file"
        )
    if file.newline == "\n" and lines[0].endswith("\r"):
        new = new.replace("\r\n", "\n").replace("\n", "\r\n") + "\r"
    # Whole lines are inserted; a trailing line feed adds no empty line.
    new_lines = new.removesuffix("\n").split("\n")
    new_text = "\n".join(lines[:num_before] + new_lines + lines[num_before:])
    return _write(file, new_text, num_before + 1, num_before + len(new_lines), context)


def _write(file: files.TextFile, text: str, first: int, last: int, context: ToolContext) -> str:
    """Writes a file's new text; returns lines ``first`` to ``last`` with the lines around them."""
    files.write_file(context, file, text)
    begin = max(first - _NUM_CONTEXT_LINES, 1)
    snippet = files.lines_of(text)[begin - 1 : last + _NUM_CONTEXT_LINES]
    name = name_of(file.path)
    return (
        f"The file {name} has been edited. {_cat(snippet, f'a snippet of {name}', begin)}{_REVIEW}"
    )


def _cat(lines: list[str], name: str, first: int) -> str:
    # A numbered line has at least seven characters, which bounds the number of lines that fit.
    rows = files.numbered(lines[: MAX_REPLY_CHARS // 7], first)
    view = head(rows, MAX_REPLY_CHARS, _CLIPPED_NOTE)
    return f"Here's the result of running `cat -n` on {name_of(name)}:\n{view}\n"


_COMMANDS: Mapping[str, Callable[[str, ToolCall, ToolContext], str]] = {
    "view": _view,
    "create": _create,
    "str_replace": _str_replace,
    "insert": _insert,
}


def _edit(call: ToolCall, context: ToolContext) -> str:
    return _COMMANDS[call.arguments["command"]](call.arguments["path"], call, context)


def _argument(call: ToolCall, name: str) -> Any:
    """Returns an argument that the schema leaves optional and this command requires."""
    if name not in call.arguments:
        raise Refusal(f"`{call.arguments['command']}` needs the argument `{name}`")
    return call.arguments[name]


EDITOR = Toolset(
    name="editor",
    system_prompt=SYSTEM_PROMPT,
    tools=(
        Tool(
            name="str_replace_editor",
            description="View, create and edit text files. `view` shows a file with line numbers, "
            "or the content of a folder two levels deep; `create` writes a file that does not "
            "exist yet; `str_replace` replaces a text that occurs exactly once; `insert` inserts "
            "lines after a line. Results are truncated to "
            f"{MAX_REPLY_CHARS} characters.",
            optional=("file_text", "old_str", "new_str", "insert_line", "view_range"),
            parameters={
                "command": {
                    "type": "string",
                    "description": "The operation",
                    "enum": list(_COMMANDS),
                },
                "path": "The file or folder, absolute or relative to the repository",
                "file_text": "For `create`: the whole content of the file",
                "old_str": "For `str_replace`: the text to find, copied exactly, with its "
                "whitespace",
                "new_str": "For `str_replace`: the new text, empty by default; for `insert`: the "
                "lines to insert",
                "insert_line": integer(
                    "For `insert`: the line after which to insert; 0 for the top"
                ),
                "view_range": array(
                    "For `view` of a file: first and last line, from 1; [40, -1] shows line 40 to "
                    "the end",
                    "integer",
                ),
            },
            run=_edit,
        ),
        bash_tool(MAX_REPLY_CHARS),
        SUBMIT,
    ),
    refuse="ERROR: {}".format,
)
