"""Toolset ``heavy``: a repository map, fault localisation, checked edits, notes.

It stands for the heavyweight scaffolds that light ones are compared with. Answers are numbered; an
answer that is the same as a recent one is replaced by that one's number.
"""

import hashlib
import re
import shlex
from collections.abc import MutableMapping
from pathlib import PurePosixPath
from typing import Any

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.tools import files, prompts
from coding_gym.tools.call_arguments import text, whole_number
from coding_gym.tools.commands import bash_tool, elided
from coding_gym.tools.programs import ask, syntax_errors, text_of
from coding_gym.tools.schemas import array, integer
from coding_gym.tools.toolset import (
    SUBMIT,
    Refusal,
    Tool,
    ToolContext,
    Toolset,
    answer,
    name_of,
    nudge,
    quoted,
)

MAX_COMMAND_CHARS = 8000  # of a command's output
MAX_ANSWER_CHARS = 12_000  # of any answer but a map, which has a budget of its own
_CHARS_PER_TOKEN = 4
_MAP_TOKENS, _MIN_MAP_TOKENS, _MAX_MAP_TOKENS = 1000, 100, 8000
_MAX_MAP_CHARS = _MAX_MAP_TOKENS * _CHARS_PER_TOKEN + 500
_MAX_PATHS = 20
_MAX_NAME_CHARS = 200
_MAX_TEST_CHARS = 2000
_TRACED_SHARE = 0.5  # of the time limit, after which no further test starts

SYSTEM_PROMPT = f"""\
{prompts.INTRODUCTION}

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

Answers are numbered. One that is the same as a recent one says only which. {prompts.LAST_WORDS}
{prompts.calls_as_json('{"name": "repo_map", "arguments": {}}')} Each `bash` \
command {prompts.FRESH_SHELL}
"""


# The repository map and look-ups by name.


def _repo_map(call: ToolCall, context: ToolContext) -> str:
    max_tokens = whole_number(call, "max_tokens", _MAP_TOKENS)
    if not _MIN_MAP_TOKENS <= max_tokens <= _MAX_MAP_TOKENS:
        raise Refusal(
            f"`max_tokens` must be between {_MIN_MAP_TOKENS} and {_MAX_MAP_TOKENS}, "
            f"got {max_tokens}"
        )
    request = {"paths": _paths(call), "max_chars": max_tokens * _CHARS_PER_TOKEN}
    reply = ask(context, "code_map.repo_map", request, "the repository could not be mapped: {}")
    return text_of(reply, _MAX_MAP_CHARS)


def _paths(call: ToolCall) -> list[str]:
    value: Any = call.arguments.get("paths")
    if value is None:
        return []
    paths = [value] if isinstance(value, str) else value
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise Refusal(f"`paths` must be a list of paths, got {quoted(value)}")
    if len(paths) > _MAX_PATHS:
        raise Refusal(f"`paths` must name at most {_MAX_PATHS} paths, got {len(paths)}")
    return paths


def _look_up(call: ToolCall, context: ToolContext) -> str:
    name = text(call, "name").strip().removesuffix("()")
    if not name or len(name) > _MAX_NAME_CHARS or any(c.isspace() for c in name):
        raise Refusal(f"`name` must be the name of one thing, such as parse, got {quoted(name)}")
    request = {"name": name, "quoted": quoted(name), "uses": call.name == "find_references"}
    reply = ask(context, "code_map.look_up", request, "the repository could not be searched: {}")
    return text_of(reply, MAX_ANSWER_CHARS)


# Fault localisation: only tests of the working tree run, in its sandbox.


def _locate_fault(call: ToolCall, context: ToolContext) -> str:
    arguments, named = pytest_arguments(text(call, "test", "").strip())
    request = {
        "arguments": arguments,
        "named": named,
        "quoted": ", ".join(map(quoted, named)),
        "seconds": context.command_timeout_s * _TRACED_SHARE,
    }
    reply = ask(context, "fault.locate", request, "the tests could not be run line by line: {}")
    return text_of(reply, MAX_ANSWER_CHARS)


def pytest_arguments(test: str) -> tuple[list[str], list[str]]:
    """Returns pytest's arguments, whole files where tests were named, and the names of these tests.

    Raises:
        Refusal: It is a command other than pytest.

    >>> pytest_arguments("python -m pytest -q tests/test_a.py::test_b")
    (['-q', 'tests/test_a.py'], ['tests/test_a.py::test_b'])
    """
    if len(test) > _MAX_TEST_CHARS or "\0" in test:
        raise Refusal("`test` is no test's id and no command")
    file, colons, _ = test.partition("::")
    if colons and " " not in file:
        return [file], [test]  # what is behind the file may hold spaces and quotes
    try:
        words = shlex.split(test)
    except ValueError as error:
        raise Refusal(f"`test` cannot be read as a command: {error}") from error
    while words and re.match(r"[A-Za-z_]\w*=", words[0]):
        del words[0]
    is_module = words[:1] in (["python"], ["python3"]) and words[1:3] == ["-m", "pytest"]
    if is_module or words[:1] in (["pytest"], ["py.test"]):
        words = words[3 if is_module else 1 :]
    elif any(not word.endswith(".py") and "/" not in word for word in words):
        raise Refusal(
            f"`test` must be a test's id, a test file or a pytest command, got {quoted(test)}"
        )
    named = [word for word in words if "::" in word and not word.startswith("-")]
    arguments = [word.partition("::")[0] if word in named else word for word in words]
    return list(dict.fromkeys(arguments)) if named else arguments, named


# Edits, which leave no new syntax error behind.

_MAX_EDIT_VIEW_LINES = 40
_NEIGHBOURS = 2  # lines displayed on each side of an edit
_ERROR_NEIGHBOURS = 3  # and of a syntax error
_CHECKED_BY_PYTHON = {".py": "python", ".pyi": "python", ".json": "json"}
# Each only parses the text, which is in a file; the name of the program is its first word.
_CHECKED_BY_COMMAND = {  # a .js file may be a script or a module
    ".js": 'node --check - <"$TEXT" || node --check --input-type=module - <"$TEXT"',
    ".cjs": 'node --check - <"$TEXT"',
    ".mjs": 'node --check --input-type=module - <"$TEXT"',
    ".sh": 'bash -n <"$TEXT"',
    ".rb": 'ruby -c <"$TEXT"',
    ".php": 'php -l <"$TEXT"',
    ".go": 'gofmt -e <"$TEXT"',
}
_NO_PROGRAM = 127
_MAX_MESSAGE_CHARS = 500


def _edit(call: ToolCall, context: ToolContext) -> str:
    path, old, new = (text(call, name) for name in ("path", "old", "new"))
    if not old:
        raise Refusal("`old` must not be empty; a new file is made with `create`")
    if old == new:
        raise Refusal("`old` and `new` are the same")
    file = files.open_file(context, path)
    changed, start, end = files.replace_once(
        file,
        old,
        new,
        missing="`old` does not occur in {name}{similar}",
        several="`old` occurs {num} times in {name}, at lines {lines}; include more of the lines "
        "around it",
    )
    error, remark = _syntax_error(context, file.place, file.text, changed)
    if error:
        raise Refusal(f"not edited: it would leave a syntax error in {name_of(path)}\n{error}")
    files.save(context, file, changed)
    view = _view_of_edit(changed, start, end)
    return "\n".join(part for part in (f"{name_of(path)} was edited:", view, remark) if part)


def _create(call: ToolCall, context: ToolContext) -> str:
    path, content = text(call, "path"), text(call, "content")
    place = files.find_place(context, path, may_be_new=True)
    if files.is_a(context, "-e", place):
        raise Refusal(f"{name_of(path)} exists already; change it with `edit`")
    error, remark = _syntax_error(context, place, None, content)
    if error:
        raise Refusal(f"not created: there is a syntax error in it\n{error}")
    files.write_bytes(context, path, place, content.encode())
    num_lines = len(files.lines_of(content))
    done = f"{name_of(path)} was created, {num_lines} line{'' if num_lines == 1 else 's'}."
    return f"{done}\n{remark}" if remark else done


def _view_of_edit(content: str, start: int, end: int) -> str:
    """Returns the lines between two positions, and some around them, with their numbers."""
    lines = files.lines_of(content)
    first = max(1, files.line_of(content, start) - _NEIGHBOURS)
    last = min(len(lines), files.line_of(content, end) + _NEIGHBOURS)
    view = files.numbered(lines[first - 1 : min(last, first + _MAX_EDIT_VIEW_LINES - 1)], first)
    left_out = last - first + 1 - _MAX_EDIT_VIEW_LINES
    return f"{view}\n({left_out} more lines)" if left_out > 0 else view


def _syntax_error(context: ToolContext, path: str, old: str | None, new: str) -> tuple[str, str]:
    """Returns why a file's new text must not be written, or "", and a remark on the check, or "".

    Args:
        context: The episode.
        path: The file; its suffix says how it is checked.
        old: Its text so far, or None where it is new. A file that had an error may keep one.
        new: The text that is to be written.
    """
    suffix = PurePosixPath(path).suffix.lower()
    texts = [new] if old is None else [new, old]
    if suffix in _CHECKED_BY_PYTHON:
        errors, problem = syntax_errors(context, texts, _CHECKED_BY_PYTHON[suffix])
    elif suffix in _CHECKED_BY_COMMAND:
        errors, problem = _complaints(context, _CHECKED_BY_COMMAND[suffix], texts)
    else:
        return "", ""
    (message, line), *before = errors
    if problem:
        return "", f"(its syntax was not checked: {problem})"
    if not message:
        return "", ""
    if line:
        message += f" (line {line})"
    if any(error for error, _ in before):
        first_line = message.splitlines()[0]
        return "", f"(the file has a syntax error, as before the edit: {first_line})"
    return message + _view_of_error(new, line), ""


def _view_of_error(content: str, number: int) -> str:
    if number < 1:
        return ""
    lines = content.split("\n")
    first = max(1, number - _ERROR_NEIGHBOURS)
    return "".join(
        f"\n{'>' if n == number else ' '}{n:6}  {lines[n - 1][:200]}"
        for n in range(first, min(number + _ERROR_NEIGHBOURS, len(lines)) + 1)
    )


def _complaints(
    context: ToolContext, command: str, texts: list[str]
) -> tuple[list[tuple[str, int]], str]:
    """Returns what `syntax_errors` does, by asking a program; it names no lines."""
    program = command.partition(" ")[0]
    script = (
        f"command -v {program} >/dev/null || exit {_NO_PROGRAM}; TEXT=$(mktemp) && "
        f'trap \'rm -f "$TEXT"\' EXIT && cat >"$TEXT" && {{ {command}; }} 2>&1 >/dev/null'
    )
    said = []
    for content in texts:
        data = content.encode("utf-8", "surrogateescape")
        done = files.run_own(context, script, stdin=data)
        if done.exit_code == _NO_PROGRAM:
            return [("", 0)], f"there is no {program} here"
        is_fine = done.ok or done.timed_out
        message = done.output.strip()[:_MAX_MESSAGE_CHARS] or "it does not parse"
        said.append(("" if is_fine else message, 0))
        if is_fine:
            break
    return said, ""


# Memory, as JSON in `ToolContext.state`: calls, recent answers, notes, failures in a row.

_MIN_REPEAT_CHARS = 200  # a shorter answer is as short as a reference to it
_RECENT = 20  # calls; an older answer may have left the policy's context
_NOTES_EVERY = 10  # calls
_MAX_NOTES = 20
_MAX_NOTE_CHARS = 500
_GREP_FOR_PART = (2, "look for a part of the name with `bash` (grep -rn PART src)")
# By tool, how many failures in a row bring a hint, and which.
_HINTS = {
    "edit": (
        2,
        "show the lines with `bash` (sed -n), copy `old` exactly from there, and replace a whole "
        "statement or function at once",
    ),
    "create": (2, "`create` is for new files only; look with `bash` (ls) at what there is"),
    "bash": (
        3,
        "read the first error again, try something smaller, and check names with `repo_map`",
    ),
    "find_definition": _GREP_FOR_PART,
    "find_references": _GREP_FOR_PART,
    "locate_fault": (
        2,
        "run the tests with `bash` first and name one that fails, or write a test that shows the "
        "problem",
    ),
    "": (2, 'a call looks like {"name": "bash", "arguments": {"command": "ls"}}'),
}


def _note(call: ToolCall, context: ToolContext) -> str:
    words = " ".join(text(call, "text").split())
    notes = context.state.setdefault("notes", [])
    if not words:
        raise Refusal("`text` must not be empty")
    if len(words) > _MAX_NOTE_CHARS:
        raise Refusal(f"a note has at most {_MAX_NOTE_CHARS} characters, got {len(words)}")
    notes[:] = [*notes, words][-_MAX_NOTES:]
    return f"noted ({len(notes)})"


def _notes(_: ToolCall, context: ToolContext) -> str:
    notes = context.state.get("notes")
    return (
        "\n".join(["Your notes:", *(f"- {n}" for n in notes)]) if notes else "There are no notes."
    )


def _remember(call: ToolCall, result: ToolResult, context: ToolContext) -> ToolResult:
    """Returns a result with its number, the notes when they are due, and a hint."""
    if result.submitted:
        return result
    state = context.state
    number = state["calls"] = state.get("calls", 0) + 1
    heading = f"[call {number}]\n"
    if number % _NOTES_EVERY == 0 and state.get("notes"):
        heading += f"{_notes(call, context)}\n\n"
    limit = _MAX_MAP_CHARS if call.name == "repo_map" else MAX_ANSWER_CHARS
    content = _condensed(call, elided(result.content, limit), number, state)
    content = heading + content + _hint(call, state, ok=result.ok)
    return answer(call, content, ok=result.ok, raw=result.raw)


def _condensed(call: ToolCall, content: str, number: int, state: MutableMapping[str, Any]) -> str:
    if len(content) < _MIN_REPEAT_CHARS:
        return content
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    seen = {k: v for k, v in state.get("seen", {}).items() if number - v <= _RECENT}
    state["seen"] = seen
    if digest in seen:
        return f"({call.name}: the same as the answer to call {seen[digest]})"
    seen[digest] = number
    return content


def _hint(call: ToolCall, state: MutableMapping[str, Any], *, ok: bool) -> str:
    failures = state.setdefault("failures", {})
    tool = call.name if call.name in _HINTS and not call.error else ""
    if ok:
        failures.pop(tool, None)
        return ""
    failures[tool] = failures.get(tool, 0) + 1
    every, hint = _HINTS[tool]
    return f"\nHint: {hint}." if failures[tool] % every == 0 else ""


_PATH = "The file's path relative to the repository"

HEAVY = Toolset(
    name="heavy",
    system_prompt=SYSTEM_PROMPT,
    tools=(
        Tool(
            name="repo_map",
            description="Show the definitions of the repository that are used most, with their "
            "lines.",
            optional=("paths", "max_tokens"),
            parameters={
                "paths": array("Show only what is in these files or folders", "string"),
                "max_tokens": integer("Room for the map, 100 to 8000 tokens; 1000 if left out"),
            },
            run=_repo_map,
        ),
        Tool(
            name="find_definition",
            description="Find where a class, function, method, variable or attribute is defined.",
            parameters={"name": "Its name, for example: parse, or Parser.parse"},
            run=_look_up,
        ),
        Tool(
            name="find_references",
            description="Find the lines that use a name.",
            parameters={"name": "The name, for example: parse"},
            run=_look_up,
        ),
        Tool(
            name="locate_fault",
            description="Run tests of the repository line by line and rank the lines that failing "
            "tests run and passing tests do not. Python with pytest only.",
            optional=("test",),
            parameters={
                "test": "A failing test's id, such as tests/test_a.py::test_empty, which is "
                "compared with the other tests of its file; or a test file; or a pytest command. "
                "All tests if left out"
            },
            run=_locate_fault,
        ),
        bash_tool(
            MAX_COMMAND_CHARS,
            "Run a bash command in the repository. Of long output the head and the tail are shown.",
            "sed -n 1,80p src/parser.py",
        ),
        Tool(
            name="edit",
            description="Replace one piece of text in a file. It must occur exactly once. An edit "
            "that would leave a syntax error in the file is not made.",
            parameters={
                "path": _PATH,
                "old": "The text to replace, copied exactly, with its whitespace and indentation",
                "new": "The text to put in its place",
            },
            run=_edit,
        ),
        Tool(
            name="create",
            description="Create a new file. One with a syntax error is not created.",
            parameters={"path": _PATH, "content": "The whole content of the file"},
            run=_create,
        ),
        Tool(
            name="note",
            description="Keep a note. Notes are shown again at the head of every tenth answer.",
            parameters={"text": "What to remember, in a sentence or two"},
            run=_note,
        ),
        Tool(name="notes", description="Show all notes.", run=_notes),
        SUBMIT,
    ),
    on_no_call=nudge(
        "Call a tool: `repo_map` and `bash` to look, `edit` to change, `submit` when it is done."
    ),
    examples=(
        ToolCall("repo_map"),
        ToolCall("repo_map", {"max_tokens": 200}),
        ToolCall("find_definition", {"name": "main"}),
        ToolCall("find_references", {"name": "len"}),
        ToolCall("locate_fault", {"test": "test_nothing.py"}),
        ToolCall("edit", {"path": "README.md", "old": "the", "new": "a"}),
        ToolCall("create", {"path": "check.py", "content": "print('checked')\n"}),
        ToolCall("create", {"path": "broken.py", "content": "def f(:\n"}),
        ToolCall("note", {"text": "The tests are in the folder tests."}),
        ToolCall("notes"),
        *(ToolCall("bash", {"command": command}) for command in prompts.EXAMPLE_COMMANDS),
    ),
    unreadable="the arguments are no JSON: {call.error}",
    finish=_remember,
)
