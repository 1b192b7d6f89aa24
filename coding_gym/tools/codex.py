"""Toolset ``codex``: the nine tools of AReno's coding agent, which resemble Codex's tools.

Names, arguments, limits and results are AReno's (areno/agentic/coding). A result is a JSON
object with sorted keys; an error is ``{"error": …}``. Differences: git applies a patch to all files
or to none, including deletions and renames; standard output and error are merged in order; commands
are not filtered by their text; results mark truncations; arguments are not repaired, because
AReno's repair of JSON strings and quotes breaks valid commands.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.sandbox.run_arguments import check_path
from coding_gym.text.truncate import well_formed
from coding_gym.tools import files, prompts
from coding_gym.tools.commands import elided, run_command
from coding_gym.tools.patches import apply_patch
from coding_gym.tools.schemas import boolean, integer
from coding_gym.tools.toolset import Refusal, Tool, ToolContext, Toolset, name_of

MAX_FILES = 200
MAX_ROWS = 200
DEFAULT_DEPTH, MAX_DEPTH = 3, 6
DEFAULT_LINES, MAX_LINES = 80, 200
MAX_MATCHES = 50
MAX_MATCH_CHARS = 240
MAX_READ_CHARS = 6000
MAX_OUTPUT_CHARS = 6000
MIN_TIMEOUT_S, MAX_TIMEOUT_S = 0.1, 10.0
MAX_SUMMARY_CHARS = 500
_STATUSES = ("solved", "blocked")
_INVALID_PATTERN = 2  # exit status of the script
# `cut` bounds the output: 6000 bytes are enough for a path and the displayed part of a line.
_SEARCH = """\
set -f
echo x | grep -q -P x 2>/dev/null && kind=-P || kind=-E
message=$(grep "$kind" $CASE -e "$PATTERN" </dev/null 2>&1)
[ $? -le 1 ] || { printf %s "$message" | head -c 300; exit 2; }
[ -e "$BASE" ] || exit 3
find "$BASE" $TESTS -type f -printf '%p\\0' 2>/dev/null | tr / '\\001' |
    LC_ALL=C sort -z | tr '\\001' / |
    xargs -0 -r grep "$kind" $CASE -nIHZs -e "$PATTERN" -- | cut -b 1-6000 | head -n "$NUM"
exit 0"""

SYSTEM_PROMPT = f"""\
{prompts.INTRODUCTION}

Tools; all results are JSON, errors are {{"error": ...}}
- `list_files` lists the files below `path`; `inspect_tree` also lists folders, to the depth \
`max_depth`. At most {MAX_FILES} rows are shown.
- `read_file` shows numbered lines of `path` from `start_line`: `max_lines`, {DEFAULT_LINES} by \
default, {MAX_LINES} at most.
- `rg` searches the files below `path` for the regular expression `pattern`; without case if \
`case_sensitive` is false. At most {MAX_MATCHES} lines of {MAX_MATCH_CHARS} characters are shown.
- `apply_patch` applies a `patch` completely or not at all: a unified diff, or an envelope from \
`*** Begin Patch` to `*** End Patch`.
- `replace_text` replaces `old_text` by `new_text` in the file `path`, at most `count` times. \
`write_file` writes `content` to the file `path`, or appends it if `append` is true.
- `run_command` runs a `command` with the time limit `timeout_s`, {MAX_TIMEOUT_S:g} seconds at \
most. At most {MAX_OUTPUT_CHARS:,} characters of its output are shown.
- `submit` ends the work, with the `status` `solved` or `blocked` and a `summary`.

{prompts.ending("run_command")}"""


def _list_files(call: ToolCall, context: ToolContext) -> dict[str, Any]:
    path = call.arguments.get("path", ".")
    base = files.relative_path(context, path)
    tests = f"{files.SKIP_IGNORED} -type f"
    entries, has_more = files.list_folder(context, path, tests=tests, max_entries=MAX_FILES)
    paths = [entry if base == "." else f"{base}/{entry}" for entry in entries]
    return {"files": paths, "truncated": has_more}


def _inspect_tree(call: ToolCall, context: ToolContext) -> dict[str, Any]:
    path = call.arguments.get("path", ".")
    depth = min(max(int(call.arguments.get("max_depth", DEFAULT_DEPTH)), 1), MAX_DEPTH)
    tests = f"-maxdepth {depth} {files.SKIP_IGNORED}"
    entries, has_more = files.list_folder(context, path, tests=tests, max_entries=MAX_ROWS)
    rows = []
    for entry in entries:
        *parents, name = entry.removesuffix("/").split("/")
        rows.append(f"{'  ' * len(parents)}{name}{'/' if entry.endswith('/') else ''}")
    return {"tree": rows, "truncated": has_more}


def _read_file(call: ToolCall, context: ToolContext) -> dict[str, Any]:
    first = max(int(call.arguments.get("start_line", 1)), 1)
    count = min(max(int(call.arguments.get("max_lines", DEFAULT_LINES)), 1), MAX_LINES)
    file = files.read_file(context, call.arguments["path"])
    lines = files.lines_of(file.text)
    range_lines = lines[first - 1 : first - 1 + count]
    rows = [f"{first + i}: {files.truncated_line(line)}" for i, line in enumerate(range_lines)]
    return {
        "path": files.relative_path(context, file.path),
        "start_line": first,
        "end_line": first + len(range_lines) - 1,
        "total_lines": len(lines),
        "content": elided("\n".join(rows), MAX_READ_CHARS),
    }


def _rg(call: ToolCall, context: ToolContext) -> dict[str, Any]:
    """Returns the matching lines; runs grep, because a sandbox may lack ripgrep."""
    pattern, path = call.arguments["pattern"], call.arguments.get("path", ".")
    case_option = "" if call.arguments.get("case_sensitive", True) else "-i"
    if not pattern or "\0" in pattern or "\n" in pattern or len(pattern) > 1000:
        raise Refusal("`pattern` must be one line of 1 to 1000 characters, without a NUL")
    with files.refusals(path):
        check_path(path)
    base = files.relative_path(context, path)
    env = {
        "BASE": "." if base == "." else f"./{base}",
        "CASE": case_option,
        "NUM": str(MAX_MATCHES + 1),
        "PATTERN": pattern,
        "TESTS": files.SKIP_IGNORED,
    }
    result = files.run_script(context, _SEARCH, env=env)
    if result.timed_out:
        raise Refusal("the search took too long; narrow the path or the pattern")
    if result.exit_code == _INVALID_PATTERN:
        raise Refusal(f"invalid `pattern`: {result.output.removeprefix('grep: ')}")
    if not result.ok:
        raise Refusal(f"{name_of(path)} cannot be searched")
    matches = [match for row in result.output.split("\n") if (match := _parse_match(row))]
    return {"matches": matches[:MAX_MATCHES], "truncated": len(matches) > MAX_MATCHES}


def _parse_match(row: str) -> dict[str, Any] | None:
    """Returns the match in a row of grep's output; None for part of a name with a line feed."""
    path, nul, rest = row.partition("\0")
    number, colon, line = rest.partition(":")
    if not nul or not colon or not number.isdecimal():
        return None
    line = line.rstrip("\r")[:MAX_MATCH_CHARS]
    return {"path": well_formed(path.removeprefix("./")), "line": int(number), "text": line}


def _apply_patch(call: ToolCall, context: ToolContext) -> dict[str, Any]:
    patch = call.arguments["patch"]
    if not patch.strip():
        raise Refusal("`patch` must not be empty")
    return {"applied": True, "files": apply_patch(context, patch)}


def _replace_text(call: ToolCall, context: ToolContext) -> dict[str, Any]:
    path, old, new = (call.arguments[name] for name in ("path", "old_text", "new_text"))
    count = int(call.arguments.get("count", 0))
    if not old:
        raise Refusal("`old_text` must not be empty")
    if count < 0:
        raise Refusal(f"`count` must be at least 0, got {count}")
    file = files.read_file(context, path)
    old, new = files.as_written(file, old, new)
    num_occurrences = file.text.count(old)
    if not num_occurrences:
        raise Refusal(f"`old_text` does not occur in {name_of(path)}")
    num_replaced = min(count, num_occurrences) if count else num_occurrences
    growth = (len(new) - len(old)) * num_replaced
    if len(file.text) + growth > files.MAX_FILE_BYTES:
        raise Refusal(f"{name_of(path)} would be larger than {files.MAX_FILE_BYTES >> 20} MiB")
    files.write_file(context, file, file.text.replace(old, new, num_replaced))
    return {"path": files.relative_path(context, file.path), "replaced": num_replaced}


def _write_file(call: ToolCall, context: ToolContext) -> dict[str, Any]:
    path, content = call.arguments["path"], call.arguments["content"]
    appends = call.arguments.get("append", False)
    is_new, data = files.overwrite(context, path, content, appends=appends)
    return {
        "append": appends,
        "bytes": len(data),
        "created": is_new,
        "path": files.relative_path(context, path),
    }


def _run_command(call: ToolCall, context: ToolContext) -> ToolResult:
    timeout_s = call.arguments.get("timeout_s", MAX_TIMEOUT_S)
    timeout_s = min(max(MIN_TIMEOUT_S, timeout_s), MAX_TIMEOUT_S)
    result = run_command(call.arguments["command"], context, timeout_s=timeout_s)
    fields: dict[str, Any] = {
        "output": elided(result.output, MAX_OUTPUT_CHARS),
        "returncode": result.exit_code,
        "timed_out": result.timed_out,
    }
    if result.notes:
        fields["notes"] = list(result.notes)
    return ToolResult(_json(fields), ok=result.ok)


def _submit(call: ToolCall, _: ToolContext) -> ToolResult:
    status = call.arguments["status"]
    summary = call.arguments.get("summary", "")[:MAX_SUMMARY_CHARS]
    result = {"submitted": {"status": status, "summary": summary}}
    return ToolResult(_json(result), submitted=True)


def _json(result: Mapping[str, Any]) -> str:
    return json.dumps(result, ensure_ascii=False, sort_keys=True)


def _in_json(
    run: Callable[[ToolCall, ToolContext], dict[str, Any]],
) -> Callable[[ToolCall, ToolContext], str]:
    return lambda call, context: _json(run(call, context))


_PATH = "The file's path relative to the repository"
_FOLDER = "The folder, relative to the repository; its root by default"

CODEX = Toolset(
    name="codex",
    system_prompt=SYSTEM_PROMPT,
    tools=(
        Tool(
            name="list_files",
            description=f"List the files below a folder, at most {MAX_FILES}.",
            optional=("path",),
            parameters={"path": _FOLDER},
            run=_in_json(_list_files),
        ),
        Tool(
            name="inspect_tree",
            description=f"Show the tree of folders and files below a folder, at most {MAX_ROWS} "
            "rows.",
            optional=("path", "max_depth"),
            parameters={
                "path": _FOLDER,
                "max_depth": integer(
                    f"The depth of the tree, 1 to {MAX_DEPTH}; {DEFAULT_DEPTH} by default"
                ),
            },
            run=_in_json(_inspect_tree),
        ),
        Tool(
            name="read_file",
            description="Read numbered lines of a file.",
            optional=("start_line", "max_lines"),
            parameters={
                "path": f"{_PATH}, for example: src/parser.py",
                "start_line": integer("The number of the first line; 1 by default"),
                "max_lines": integer(
                    f"The number of lines, at most {MAX_LINES}; {DEFAULT_LINES} by default"
                ),
            },
            run=_in_json(_read_file),
        ),
        Tool(
            name="rg",
            description="Search files for a regular expression; shows at most "
            f"{MAX_MATCHES} matching lines.",
            optional=("path", "case_sensitive"),
            parameters={
                "pattern": "The regular expression: Perl's syntax, or extended if grep lacks -P",
                "path": "A file or a folder, relative to the repository; its root by default",
                "case_sensitive": boolean("Whether the search is case-sensitive; true by default"),
            },
            run=_in_json(_rg),
        ),
        Tool(
            name="apply_patch",
            description="Change, add, delete or rename files by a patch, completely or not at all.",
            parameters={
                "patch": "A unified diff with ---, +++ and @@ lines, or *** Begin Patch … *** End "
                "Patch"
            },
            run=_in_json(_apply_patch),
        ),
        Tool(
            name="replace_text",
            description="Replace occurrences of a text in a file.",
            optional=("count",),
            parameters={
                "path": _PATH,
                "old_text": "The text to find, copied exactly, with its whitespace",
                "new_text": "The new text",
                "count": integer(
                    "The maximum number of replacements, from the top; 0, the default, for all"
                ),
            },
            run=_in_json(_replace_text),
        ),
        Tool(
            name="write_file",
            description="Write a whole new or existing file, or append to it. Missing folders "
            "are created.",
            optional=("append",),
            parameters={
                "path": _PATH,
                "content": "The whole content of the file, or the text to append",
                "append": boolean("Whether to append to the file; false by default"),
            },
            run=_in_json(_write_file),
        ),
        Tool(
            name="run_command",
            description="Run a bash command in the repository. Returns standard output and error "
            f"together, at most {MAX_OUTPUT_CHARS} characters.",
            optional=("timeout_s",),
            parameters={
                "command": "The command, for example: python -m pytest -q tests",
                "timeout_s": {
                    "type": "number",
                    "description": "Time limit in seconds, "
                    f"{MIN_TIMEOUT_S:g} to {MAX_TIMEOUT_S:g}; {MAX_TIMEOUT_S:g} by default",
                },
            },
            run=_run_command,
        ),
        Tool(
            name="submit",
            description="End the work. The current state of the repository is then graded.",
            optional=("summary",),
            parameters={
                "status": {
                    "type": "string",
                    "description": "Whether the problem is solved",
                    "enum": list(_STATUSES),
                },
                "summary": f"A summary of the work, at most {MAX_SUMMARY_CHARS} characters",
            },
            run=_submit,
        ),
    ),
    submission=ToolCall("submit", {"status": "solved", "summary": "Nothing in particular."}),
    refuse=lambda reason: _json({"error": reason}),
    unreadable="invalid JSON arguments: {call.error:.300}",
)
