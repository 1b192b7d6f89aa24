"""What a policy is told about the toolset ``codex``: its schemas and its system prompt."""

from coding_gym.calls import ToolCall
from coding_gym.tools.prompt_parts import (
    FRESH,
    HOW_TO_WORK,
    INTRODUCTION,
    LAST_WORDS,
    calls_as_json,
)
from coding_gym.tools.samples import COMMANDS
from coding_gym.tools.schemas import Schema, boolean, function, integer

MAX_FILES = 200
MAX_ROWS = 200
DEFAULT_DEPTH, MAX_DEPTH = 3, 6
DEFAULT_LINES, MAX_LINES = 80, 200
MAX_MATCHES = 50
MAX_MATCH_CHARS = 240
MAX_READ_CHARS = 6000
MAX_OUTPUT_CHARS = 6000
LEAST_SECONDS, MOST_SECONDS = 0.1, 10.0
MAX_SUMMARY_CHARS = 500
STATUSES = ("solved", "blocked")

_PATH = "Relative to the repository; its top by default"

SCHEMAS: tuple[Schema, ...] = (
    function(
        "list_files",
        f"List the files below a folder, at most {MAX_FILES}.",
        optional=("path",),
        path=_PATH,
    ),
    function(
        "inspect_tree",
        f"Show the tree of folders and files below a folder, at most {MAX_ROWS} rows.",
        optional=("path", "max_depth"),
        path=_PATH,
        max_depth=integer(f"How deep to look, 1 to {MAX_DEPTH}; {DEFAULT_DEPTH} by default"),
    ),
    function(
        "read_file",
        "Read numbered lines of a file.",
        optional=("start_line", "max_lines"),
        path="The file's path relative to the repository, for example: src/parser.py",
        start_line=integer("The first line, from 1; 1 by default"),
        max_lines=integer(f"How many lines, at most {MAX_LINES}; {DEFAULT_LINES} by default"),
    ),
    function(
        "rg",
        f"Search files for a regular expression, at most {MAX_MATCHES} lines that match.",
        optional=("path", "case_sensitive"),
        pattern="The expression, in Perl's syntax",
        path="A file or a folder, relative to the repository; its top by default",
        case_sensitive=boolean("Whether case counts; true by default"),
    ),
    function(
        "apply_patch",
        "Change, add, delete or rename files: all that the patch says, or nothing.",
        patch="A unified diff with ---, +++ and @@ lines, or *** Begin Patch … *** End Patch",
    ),
    function(
        "replace_text",
        "Replace a text in a file, wherever it occurs.",
        optional=("count",),
        path="The file's path relative to the repository",
        old_text="The text to find, copied exactly, with its whitespace",
        new_text="The text to put in its place",
        count=integer("At most so many times, from the top; 0, the default, for all"),
    ),
    function(
        "write_file",
        "Write a whole file, new or not, or add to its end. Folders that are missing are made.",
        optional=("append",),
        path="The file's path relative to the repository",
        content="All that the file will hold, or what is added",
        append=boolean("Whether to add to the end; false by default"),
    ),
    function(
        "run_command",
        "Run a bash command in the repository. Standard output and error come back together, at "
        f"most {MAX_OUTPUT_CHARS} characters.",
        optional=("timeout_s",),
        command="The command, for example: python -m pytest -q tests",
        timeout_s={
            "type": "number",
            "description": "Seconds after which it is killed, "
            f"{LEAST_SECONDS:g} to {MOST_SECONDS:g}; {MOST_SECONDS:g} by default",
        },
    ),
    function(
        "submit",
        "End the work. The repository is then graded as it stands.",
        optional=("summary",),
        status={"type": "string", "description": "How it went", "enum": list(STATUSES)},
        summary=f"What was done, at most {MAX_SUMMARY_CHARS} characters",
    ),
)

SYSTEM_PROMPT = f"""\
{INTRODUCTION}

Tools, all of which answer in JSON, errors as {{"error": ...}}
- `list_files` and `inspect_tree` show what there is, {MAX_FILES} rows at most, {MAX_DEPTH} \
folders deep.
- `read_file` shows numbered lines, {DEFAULT_LINES} unless you ask for more, {MAX_LINES} at most.
- `rg` searches: {MAX_MATCHES} matches of {MAX_MATCH_CHARS} characters at most.
- `apply_patch` takes a unified diff, or an envelope from `*** Begin Patch` to `*** End Patch`. \
All of it is applied or nothing.
- `replace_text` and `write_file` change one file.
- `run_command` runs a command for {MOST_SECONDS:g} seconds at most; {MAX_OUTPUT_CHARS:,} \
characters of its output are shown.
- `submit` ends the work, as `solved` or `blocked`.

{HOW_TO_WORK}

{calls_as_json('{"name": "run_command", "arguments": {"command": "ls"}}')} Each command {FRESH}

{LAST_WORDS}"""

EXPECTED = (
    "No tool call was found in your reply. Reply with one call of a tool to go on, or call submit "
    "with the status solved or blocked."
)

_PATCH = "--- a/README.md\n+++ b/README.md\n@@ -1 +1,2 @@\n"

EXAMPLES: tuple[ToolCall, ...] = (
    *(ToolCall("run_command", {"command": command}) for command in COMMANDS),
    ToolCall("list_files"),
    ToolCall("inspect_tree", {"max_depth": 2}),
    ToolCall("read_file", {"path": "README.md"}),
    ToolCall("read_file", {"path": "no-such-file", "start_line": 3, "max_lines": 5}),
    ToolCall("rg", {"pattern": r"def \w+\("}),
    ToolCall("rg", {"pattern": "todo", "path": ".", "case_sensitive": False}),
    ToolCall("apply_patch", {"patch": f"{_PATCH}+A line.\n # no such title\n"}),
    ToolCall(
        "apply_patch", {"patch": "*** Begin Patch\n*** Add File: notes.txt\n+a note\n*** End Patch"}
    ),
    ToolCall("replace_text", {"path": "README.md", "old_text": "the", "new_text": "a", "count": 1}),
    ToolCall("write_file", {"path": "notes.txt", "content": "a note\n", "append": True}),
)
SUBMISSION = ToolCall("submit", {"status": "solved", "summary": "Nothing in particular."})
