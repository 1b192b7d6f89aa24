"""What a policy is told about the toolset ``thesis``: its schemas and its system prompt."""

from coding_gym.calls import ToolCall
from coding_gym.tools.prompt_parts import (
    FRESH,
    HOW_TO_WORK,
    INTRODUCTION,
    LAST_WORDS,
    calls_as_json,
)
from coding_gym.tools.samples import COMMANDS
from coding_gym.tools.schemas import Schema, function, integer

MAX_COMMAND_CHARS = 8000
MAX_VIEW_LINES = 400
MAX_VIEW_CHARS = 16_000

SCHEMAS: tuple[Schema, ...] = (
    function(
        "bash",
        "Run a bash command in the repository. Standard output and error come back together; of "
        f"more than {MAX_COMMAND_CHARS} characters the middle is left out.",
        command="The command, for example: grep -rn 'def parse' src",
    ),
    function(
        "str_replace",
        "Replace one piece of text in one file. The text to find must occur exactly once.",
        path="The file's path relative to the repository, for example: src/parser.py",
        old_str="The text to find, copied exactly, with its whitespace and indentation",
        new_str="The text to put in its place",
    ),
    function(
        "view_file",
        f"Show lines of a file with their numbers, at most {MAX_VIEW_LINES} at a time.",
        optional=("start_line", "end_line"),
        path="The file's path relative to the repository",
        start_line=integer("The first line to show, from 1; 1 by default"),
        end_line=integer("The last line to show; the end of the file by default"),
    ),
    function(
        "write_file",
        "Write a whole file, new or not. Folders that are missing are made.",
        path="The file's path relative to the repository",
        content="All that the file will hold",
    ),
    function("submit", "Say that the work is done. The repository is then graded as it stands."),
)

SYSTEM_PROMPT = f"""\
{INTRODUCTION}

Tools
- `bash` runs a command; of an output longer than {MAX_COMMAND_CHARS} characters the middle is \
left out.
- `view_file` shows lines of a file with their numbers, {MAX_VIEW_LINES} at most.
- `str_replace` replaces text that occurs exactly once in a file.
- `write_file` writes a whole file.
- `submit` ends the work.

{HOW_TO_WORK}

{calls_as_json('{"name": "bash", "arguments": {"command": "ls"}}')} Each command {FRESH}

{LAST_WORDS}"""

EXPECTED = (
    "No tool call was found in your reply. Call bash, view_file, str_replace or write_file to go "
    "on, or submit when the work is done."
)

EXAMPLES: tuple[ToolCall, ...] = (
    *(ToolCall("bash", {"command": command}) for command in COMMANDS),
    ToolCall("view_file", {"path": "README.md"}),
    ToolCall("view_file", {"path": "README.md", "start_line": 2, "end_line": 6}),
    ToolCall("view_file", {"path": "no-such-file"}),
    ToolCall("str_replace", {"path": "README.md", "old_str": "# ", "new_str": "## "}),
    ToolCall("str_replace", {"path": "notes.txt", "old_str": "a note\n", "new_str": "a word\n"}),
    ToolCall("write_file", {"path": "notes.txt", "content": "a note\n"}),
)
