"""The gold patch as an episode to imitate: read each location, edit it, submit."""

import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from io import StringIO
from shlex import quote
from typing import Any, NamedTuple

from coding_gym.agents.tool_use import ToolUse
from coding_gym.calls import ToolCall
from coding_gym.episode import Episode
from coding_gym.errors import InfrastructureError, PatchError
from coding_gym.patch import FileChange, Patch
from coding_gym.tools.files import absolute_path
from coding_gym.tools.schemas import Schema

_PATHS, _OLD, _NEW = ("path", "file"), ("old", "old_str", "search"), ("new", "new_str", "replace")
_TOKEN = re.compile(r"\w+|[^\w\s]+|\s")
_CONTEXT_LINES = 10  # lines read on each side of an edit
_MAX_HUNKS = 10
_EDITOR_COMMAND = "str_replace"


class Edit(NamedTuple):
    """The replacement of whole lines of a file.

    Attributes:
        line: The number of the first replaced line, from 1.
        old: The replaced text.
        new: The new text.
    """

    line: int
    old: str
    new: str

    def apply(self, text: str) -> str:
        """Returns the file's text with the replacement."""
        lines, start = _lines(text), self.line - 1
        end = start + len(_lines(self.old))
        return "".join([*lines[:start], self.new, *lines[end:]])


def demonstrate(episode: Episode) -> Iterator[str]:
    """Yields the actions that repair a task by its gold patch.

    A shell command reads each changed location, and the toolset's tool for replacements changes
    it. ``git apply`` makes the other changes: new, deleted, renamed and binary files,
    files with other encodings or line endings, and patches of more than ten hunks, which would need
    more turns than episodes have.

    Raises:
        InvalidArgumentError: No tool of the toolset runs a shell command.
    """
    tools = ToolUse(episode)
    tools.applying("")  # raises before the first action
    try:
        changes = Patch(episode.task.gold_patch).files
        is_long = sum(1 for change in changes for _ in change.hunks()) > _MAX_HUNKS
    except PatchError:  # git may be able to read it
        is_long = True
    if is_long:
        yield tools.applying(episode.task.gold_patch)
    else:
        for change in changes:
            yield from _changing(episode, tools, change)
    yield from tools.submission()


def _changing(episode: Episode, tools: ToolUse, change: FileChange) -> Iterator[str]:
    """Yields the actions that change one file."""
    text, path = _text(episode, change.old_path), change.path
    try:
        after = None if text is None or change.is_binary else change.apply(text)
    except PatchError:  # git can also apply a hunk at other lines
        after = None
    if text is None or after is None or change.old_path != change.new_path:
        yield tools.applying(change.text)
        return
    tool = next((schema for schema in tools.schemas if all(_names(schema))), None)
    is_numbered = tool is not None and "line" in _properties(tool)
    while text != after:
        edit = next_edit(text, after, is_unique=not is_numbered)
        first, last = max(1, edit.line - _CONTEXT_LINES), edit.line + _CONTEXT_LINES
        lines, file = f"sed -n '{first},{last}p'", quote(path)
        yield tools.shell(f"cat -n {file} | {lines}" if is_numbered else f"{lines} {file}")
        if tool is not None and edit.old:
            yield tools.action(_edit_call(episode, tool, path, edit))
        if episode.ended:
            return
        text = edit.apply(text)
        now = _text(episode, path)
        if now != text:
            yield tools.applying(Patch.between({path: now or ""}, {path: after}).text)
            return


def next_edit(before: str, after: str, *, is_unique: bool = True) -> Edit:
    r"""Returns the first edit that changes a file's text towards another, different text.

    Args:
        before: The text.
        after: The other text.
        is_unique: Whether to include lines around the change until the replaced text occurs only
            once in the file.

    >>> next_edit("a\nb\na\n", "a\nb\nc\n")
    Edit(line=2, old='b\na\n', new='b\nc\n')
    >>> next_edit("a\nb\na\n", "a\nb\nc\n", is_unique=False)
    Edit(line=3, old='a\n', new='c\n')
    """
    old, new = _lines(before), _lines(after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    code = next(code for code in matcher.get_opcodes() if code[0] != "equal")
    _, start, end, new_start, new_end = code
    middle = "".join(new[new_start:new_end])
    above, below = start, end
    while above > 0 or below < len(old):
        text = "".join(old[above:below])
        is_only = before.find(text, before.find(text) + 1) < 0  # str.count skips overlaps
        if text and (is_only or not is_unique):
            break
        above, below = max(0, above - 1), below + (above == 0)
    head, tail = "".join(old[above:start]), "".join(old[end:below])
    return Edit(above + 1, "".join(old[above:below]), f"{head}{middle}{tail}")


def in_line(path: str, edit: Edit) -> dict[str, Any]:
    r"""Returns an edit as arguments of a tool that replaces text in a line.

    >>> in_line("a.py", Edit(3, "    a = b + b\n", "    a = b + c\n"))
    {'path': 'a.py', 'line': 3, 'old': '+ b', 'new': '+ c'}
    """
    old, new = _TOKEN.findall(edit.old), _TOKEN.findall(edit.new)
    shorter = min(len(old), len(new))
    start = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    rest = range(shorter - start)
    num_after = next((n for n in rest if old[-1 - n] != new[-1 - n]), len(rest))
    end, new_end = len(old) - num_after, len(new) - num_after
    while True:
        before, text = "".join(old[:start]), "".join(old[start:end])
        column = len(before) - before.rfind("\n") - 1
        if text.strip() and edit.old.find(text, len(before) - column) == len(before):
            break
        if start:
            start -= 1
        elif end < len(old):
            end, new_end = end + 1, new_end + 1
        else:
            break  # blank lines
    line = edit.line + before.count("\n")
    return {"path": path, "line": line, "old": text, "new": "".join(new[start:new_end])}


def _edit_call(episode: Episode, tool: Schema, path: str, edit: Edit) -> ToolCall:
    """Returns the call of a tool that makes an edit."""
    function = tool["function"]
    if "line" in _properties(tool):
        return ToolCall(function["name"], in_line(path, edit))
    values = dict(zip(_names(tool), (path, edit.old, edit.new), strict=True))
    if "command" in function["parameters"]["required"]:  # one tool for several edits
        with episode.access() as context:
            values[_names(tool)[0]] = absolute_path(context, path)
        values = {"command": _EDITOR_COMMAND, **values}
    return ToolCall(function["name"], values)


def _names(schema: Schema) -> list[str]:
    """Returns a tool's arguments for the path, the replaced text and the new text; else ""."""
    known = _properties(schema)
    return [next((name for name in group if name in known), "") for group in (_PATHS, _OLD, _NEW)]


def _properties(schema: Schema) -> Mapping[str, object]:
    properties: Mapping[str, object] = schema["function"]["parameters"]["properties"]
    return properties


def _text(episode: Episode, path: str | None) -> str | None:
    """Returns a file's text; None if it is missing, is not UTF-8, or has carriage returns."""
    if path is None:
        return None
    try:
        with episode.access() as context:
            text = context.sandbox.read_file(path).decode("utf-8")
    except (OSError, UnicodeDecodeError, InfrastructureError):
        return None
    return None if "\r" in text else text


def _lines(text: str) -> list[str]:
    return StringIO(text, newline="\n").readlines()
