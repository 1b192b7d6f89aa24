"""What a policy is told about the toolset ``editor``: its schemas and its system prompt."""

from coding_gym.calls import ToolCall
from coding_gym.tools.prompt_parts import (
    FRESH,
    HOW_TO_WORK,
    INTRODUCTION,
    LAST_WORDS,
    calls_as_json,
)
from coding_gym.tools.samples import COMMANDS
from coding_gym.tools.schemas import Schema, array, function, integer

COMMAND_NAMES = ("view", "create", "str_replace", "insert", "undo_edit")
MAX_REPLY_CHARS = 16_000
MAX_LISTED = 400

_DESCRIPTION = f"""\
View, create and edit text files. `view` shows a file with line numbers, or what a folder holds \
two levels deep; `create` makes a file that does not exist yet; `str_replace` replaces a text that \
occurs exactly once; `insert` puts lines behind a line; `undo_edit` takes back the last edit of a \
file. Replies are cut at {MAX_REPLY_CHARS} characters."""

SCHEMAS: tuple[Schema, ...] = (
    function(
        "str_replace_editor",
        _DESCRIPTION,
        optional=("file_text", "old_str", "new_str", "insert_line", "view_range"),
        command={"type": "string", "description": "What to do", "enum": list(COMMAND_NAMES)},
        path="The file or folder, absolute or relative to the repository",
        file_text="For `create`: all that the file will hold",
        old_str="For `str_replace`: the text to find, copied exactly, with its whitespace",
        new_str="For `str_replace`: the text to put in its place, none by default; for `insert`: "
        "the lines to put in",
        insert_line=integer("For `insert`: the line behind which they go; 0 for the top"),
        view_range=array(
            "For `view` of a file: first and last line, from 1; [40, -1] shows line 40 to the end",
            "integer",
        ),
    ),
    function(
        "bash",
        "Run a bash command in the repository. Standard output and error come back together; of "
        f"more than {MAX_REPLY_CHARS} characters the middle is left out.",
        command="The command, for example: grep -rn 'def parse' src",
    ),
    function("submit", "Say that the work is done. The repository is then graded as it stands."),
)

SYSTEM_PROMPT = f"""\
{INTRODUCTION}

Tools
- `str_replace_editor` views, creates and edits text files.
- `bash` runs a command. Replies of both are cut to {MAX_REPLY_CHARS:,} characters.
- `submit` ends the work.

{HOW_TO_WORK}

{calls_as_json('{"name": "bash", "arguments": {"command": "ls"}}')} Each command {FRESH}

{LAST_WORDS}"""

EXPECTED = (
    "No tool call was found in your reply. Call str_replace_editor or bash to go on, or submit "
    "when the work is done."
)

CLIPPED = (
    "<response clipped><NOTE>Only a part is shown. Search with `grep -n`, then view the lines that "
    "you need with `view_range`.</NOTE>"
)


def _edit(command: str, path: str, **rest: object) -> ToolCall:
    return ToolCall("str_replace_editor", {"command": command, "path": path, **rest})


EXAMPLES: tuple[ToolCall, ...] = (
    *(ToolCall("bash", {"command": command}) for command in COMMANDS),
    _edit("view", "."),
    _edit("view", "README.md"),
    _edit("view", "README.md", view_range=[1, 5]),
    _edit("view", "no-such-file"),
    _edit("create", "notes.txt", file_text="a note\n"),
    _edit("str_replace", "README.md", old_str="# ", new_str="## "),
    _edit("insert", "README.md", insert_line=0, new_str="A line."),
    _edit("undo_edit", "README.md"),
)
