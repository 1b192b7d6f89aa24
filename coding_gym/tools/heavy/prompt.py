"""What a policy is told about the toolset ``heavy``: its schemas and its system prompt."""

from coding_gym.tools.prompts import FRESH_SHELL, INTRODUCTION, LAST_WORDS, calls_as_json
from coding_gym.tools.schemas import Schema, array, function, integer

SCHEMAS: tuple[Schema, ...] = (
    function(
        "repo_map",
        "Show the definitions of the repository that are used most, with their lines.",
        optional=("paths", "max_tokens"),
        paths=array("Show only what is in these files or folders", "string"),
        max_tokens=integer("Room for the map, 100 to 8000 tokens; 1000 if left out"),
    ),
    function(
        "find_definition",
        "Find where a class, function, method, variable or attribute is defined.",
        name="Its name, for example: parse, or Parser.parse",
    ),
    function(
        "find_references",
        "Find the lines that use a name.",
        name="The name, for example: parse",
    ),
    function(
        "locate_fault",
        "Run tests of the repository line by line and rank the lines that failing tests run and "
        "passing tests do not. Python with pytest only.",
        optional=("test",),
        test="A failing test's id, such as tests/test_a.py::test_empty, which is compared with the "
        "other tests of its file; or a test file; or a pytest command. All tests if left out",
    ),
    function(
        "bash",
        "Run a bash command in the repository. Of long output the head and the tail are shown.",
        command="The command, for example: sed -n 1,80p src/parser.py",
    ),
    function(
        "edit",
        "Replace one piece of text in a file. It must occur exactly once. An edit that would leave "
        "a syntax error in the file is not made.",
        path="The file's path relative to the repository",
        old="The text to replace, copied exactly, with its whitespace and indentation",
        new="The text to put in its place",
    ),
    function(
        "create",
        "Create a new file. One with a syntax error is not created.",
        path="The file's path relative to the repository",
        content="The whole content of the file",
    ),
    function(
        "note",
        "Keep a note. Notes are shown again at the head of every tenth answer.",
        text="What to remember, in a sentence or two",
    ),
    function("notes", "Show all notes."),
    function("submit", "Say that the work is done. The repository is then graded as it stands."),
)

SYSTEM_PROMPT = f"""\
{INTRODUCTION}

Work in these steps, and go back a step when something does not fit.
1. Understand: read the report. Call `repo_map`, then `find_definition` and `find_references` for \
the names that the report mentions, and read that code with `bash`.
2. Reproduce: run a short command or a test that shows the problem. If there is none, write one.
3. Localise: `locate_fault` with the failing test ranks suspicious lines. Keep what you learn with \
`note`.
4. Fix: make the smallest `edit` that repairs the cause, in the style of the code around it. Look \
at `find_references` when you change what a function takes or gives.
5. Verify: run what failed, then the tests around it. Remove what you wrote only to reproduce.
6. Submit: call `submit`.

Answers are numbered. One that is the same as a recent one says only which. {LAST_WORDS}
{calls_as_json('{"name": "repo_map", "arguments": {}}')} Each `bash` command {FRESH_SHELL}
"""
