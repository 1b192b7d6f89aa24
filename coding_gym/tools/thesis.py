"""Toolset ``thesis``: bash, a literal replacement, a view by lines, whole files.

The tools of CodeRepairRL's second scaffold, by their names and arguments. The replies are ours.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.tools import editing, given
from coding_gym.tools.answers import Refusal, answer, dispatched, name_of, submitted
from coding_gym.tools.commands import elided, run_command, told
from coding_gym.tools.prompt_parts import with_kept_shell
from coding_gym.tools.protocol import NoCall, ToolContext
from coding_gym.tools.samples import draw_call
from coding_gym.tools.thesis_prompt import (
    EXAMPLES,
    EXPECTED,
    MAX_COMMAND_CHARS,
    MAX_VIEW_CHARS,
    MAX_VIEW_LINES,
    SCHEMAS,
    SYSTEM_PROMPT,
)

if TYPE_CHECKING:
    from numpy.random import Generator


class ThesisToolset:
    """The tools ``bash``, ``str_replace``, ``view_file``, ``write_file`` and ``submit``."""

    name = "thesis"
    system_prompt = SYSTEM_PROMPT
    schemas = SCHEMAS
    text_formats = ()

    def prompt(self, *, keeps_shell: bool) -> str:
        """Returns the system prompt; ``keeps_shell`` says that one shell runs all commands."""
        return with_kept_shell(SYSTEM_PROMPT, keeps_shell=keeps_shell)

    def execute(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Runs one call and returns its answer."""
        return dispatched(_TOOLS, call, context)

    def on_no_call(self, context: ToolContext) -> NoCall:  # noqa: ARG002 - as the protocol has it
        """Says what was expected and counts a call."""
        return NoCall(EXPECTED, ends=False, costs_call=True, is_format_error=True)

    def sample_call(self, rng: "Generator") -> ToolCall:
        """Draws a valid call whose answer does not depend on clock or machine."""
        return draw_call(rng, EXAMPLES, ToolCall("submit"))


def _bash(call: ToolCall, context: ToolContext) -> ToolResult:
    end = run_command(given.text(call, "command"), context)
    content = told(end, MAX_COMMAND_CHARS)
    return answer(call, content, ok=end.ok, raw=end.raw)


def _str_replace(call: ToolCall, context: ToolContext) -> ToolResult:
    path, old, new = (given.text(call, name) for name in ("path", "old_str", "new_str"))
    if not old:
        raise Refusal("`old_str` must not be empty; write_file makes new files")
    file = editing.open_file(context, path)
    old, found = editing.occurrences(file, old)
    if not found:
        raise Refusal(
            f"`old_str` does not occur in {name_of(path)}; view the file and copy it exactly"
        )
    if len(found) > 1:
        lines = ", ".join(str(editing.line_of(file.text, at)) for at in found[:10])
        raise Refusal(
            f"`old_str` occurs {file.text.count(old)} times in {name_of(path)}, at lines {lines}; "
            "give more of the text around the one that is meant"
        )
    new = editing.in_place_of(file, old, new)
    editing.save(context.sandbox, file, file.text.replace(old, new, 1))
    line = editing.line_of(file.text, found[0])
    return answer(call, f"Replaced the text at line {line} of {name_of(path)}.")


def _view_file(call: ToolCall, context: ToolContext) -> ToolResult:
    path = given.text(call, "path")
    first = given.whole_number(call, "start_line", 1)
    last = given.whole_number(call, "end_line", None)
    if first < 1:
        raise Refusal(f"`start_line` must be at least 1, got {first}")
    if last is not None and last < first:
        raise Refusal(f"`end_line` must be at least `start_line`, got {last} and {first}")
    file = editing.open_file(context, path)
    lines = editing.lines_of(file.text)
    if not lines:
        return answer(call, f"{name_of(path)} is empty.")
    if first > len(lines):
        raise Refusal(f"{name_of(path)} has {len(lines)} lines, got `start_line` {first}")
    end = min(last or len(lines), len(lines), first + MAX_VIEW_LINES - 1)
    shown = elided(editing.numbered(lines[first - 1 : end], first), MAX_VIEW_CHARS)
    where = f"Lines {first} to {end} of {len(lines)} in {name_of(path)}"
    return answer(call, f"{where}:\n{shown}")


def _write_file(call: ToolCall, context: ToolContext) -> ToolResult:
    path, content = given.text(call, "path"), given.text(call, "content")
    place = editing.find_place(context, path, may_be_new=True)
    before = editing.read_if_there(context.sandbox, path, place)
    data = editing.written_as(before, content)
    editing.write_bytes(context.sandbox, path, place, data)
    num_lines = len(editing.lines_of(content))
    done = "Created" if before is None else "Wrote"
    return answer(call, f"{done} {name_of(path)}, {num_lines} line{'s' * (num_lines != 1)}.")


def _submit(call: ToolCall, context: ToolContext) -> ToolResult:  # noqa: ARG001 - one signature
    return submitted(call)


_TOOLS: Mapping[str, Callable[[ToolCall, ToolContext], ToolResult]] = {
    "bash": _bash,
    "str_replace": _str_replace,
    "view_file": _view_file,
    "write_file": _write_file,
    "submit": _submit,
}
