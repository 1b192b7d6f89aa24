"""What a policy is told about the toolset ``pdb``: its schemas and its system prompt."""

from coding_gym.tools.prompts import FRESH_SHELL, INTRODUCTION, LAST_WORDS, calls_as_json
from coding_gym.tools.schemas import Schema, function, integer

SCHEMAS: tuple[Schema, ...] = (
    function(
        "pdb",
        "Give commands to Python's debugger, one a line, and see what they print. `start FILE.py "
        "ARGUMENTS`, `start -m MODULE ARGUMENTS` or `start tests/test_x.py::test_y` chooses the "
        "program; without that it is `python -m pytest -x -q`. Tests run until one fails and stop "
        "there, a script stops at its first line. `restart` begins again. Breakpoints are kept.",
        command="The commands, for example: b src/parser.py:40, depth > 2",
    ),
    function(
        "bash",
        "Run a bash command in the repository. Of long output the head and the tail are shown.",
        command="The command, for example: grep -rn 'def parse' src",
    ),
    function(
        "view",
        "Show lines of a file with their numbers.",
        optional=("start", "end"),
        path="The file's path relative to the repository",
        start=integer("The first line; 1 if left out"),
        end=integer("The last line; at most 200 lines are shown"),
    ),
    function(
        "rewrite",
        "Replace whole lines of a file.",
        optional=("start", "end"),
        path="The file's path relative to the repository",
        start=integer("The first line to replace; the whole file if left out"),
        end=integer("The last line to replace; the first one if left out"),
        new_code="The lines to put in their place, with their indentation; empty to delete them",
    ),
    function(
        "eval",
        "Run the repository's tests and see how they end.",
        optional=("command",),
        command="Another test command; python -m pytest -q if left out",
    ),
    function("submit", "Say that the work is done. The repository is then graded as it stands."),
)

SYSTEM_PROMPT = f"""\
{INTRODUCTION}

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
its breakpoints. {LAST_WORDS}
{calls_as_json('{"name": "pdb", "arguments": {"command": "w"}}')} Each `bash` command {FRESH_SHELL}
"""
