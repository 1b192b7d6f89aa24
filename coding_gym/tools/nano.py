"""Toolset ``nano``: a shell and a literal search-and-replace, as nano-agent 5 has them.

The replies are nano-agent's own, character for character (its tools.py, env.py and agent.py), so
that policies trained there meet nothing new. What is mended: paths are resolved inside the
sandbox and compared as paths; an empty ``search`` is refused; files are edited as bytes, so line
endings and encodings survive; durations of test runs are zeroed; what was killed is mentioned.
New is ``submit``.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from coding_gym.calls import ExecResult, ToolCall, ToolResult
from coding_gym.errors import InvalidArgumentError
from coding_gym.text.truncate import head
from coding_gym.tools.commands import command_end
from coding_gym.tools.files import resolve, with_line_ends_of
from coding_gym.tools.nano_prompt import FRESH, KEPT, SCHEMAS, SYSTEM_PROMPT
from coding_gym.tools.nano_sample import sample_call
from coding_gym.tools.protocol import NoCall, ToolContext

if TYPE_CHECKING:
    from numpy.random import Generator

MAX_REPLY_CHARS = 2000
CUT_SUFFIX = "... output truncated"
NUDGE = "Use shell to explore or apply_patch to make changes. Do not stop working."
INVALID_PATCH = "invalid `apply_patch` arguments"
OUTSIDE = "Path must be inside the repository"


class NanoToolset:
    """The tools ``shell``, ``apply_patch`` and ``submit``, with nano-agent's replies."""

    name = "nano"
    system_prompt = SYSTEM_PROMPT
    schemas = SCHEMAS
    text_formats = ()

    def prompt(self, *, keeps_shell: bool) -> str:
        """Returns the system prompt; ``keeps_shell`` says that one shell runs all commands."""
        return SYSTEM_PROMPT.replace(FRESH, KEPT) if keeps_shell else SYSTEM_PROMPT

    def execute(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Runs one call and returns its answer, cut to 2,000 characters and nano's suffix."""
        if call.error:
            return _answer(call, f"Malformed tool arguments JSON: {call.error}", ok=False)
        if call.name not in _TOOLS:
            return _answer(call, f"unknown tool: {call.name}", ok=False)
        return _TOOLS[call.name](call, context)

    def on_no_call(self, context: ToolContext) -> NoCall:
        """Ends the episode if the tree is changed; otherwise nudges and counts a call."""
        if context.is_changed():
            return NoCall("", ends=True, costs_call=False)
        return NoCall(NUDGE, ends=False, costs_call=True)

    def sample_call(self, rng: "Generator") -> ToolCall:
        """Draws a valid call whose answer does not depend on clock or machine."""
        return sample_call(rng)


def _shell(call: ToolCall, context: ToolContext) -> ToolResult:
    if "cmd" not in call.arguments:
        return _answer(call, "shell tool missing required 'cmd' parameter", ok=False)
    command = call.arguments["cmd"]
    if not isinstance(command, str):
        return _answer(call, "shell tool parameter 'cmd' must be a string", ok=False)
    try:
        command.encode()
        result = context.sandbox.run(command, timeout_s=context.command_timeout_s)
    except (InvalidArgumentError, UnicodeEncodeError) as error:  # a NUL, too long, a surrogate
        result = ExecResult(exit_code=1, output=f"Execution failed: {error}")
    end = command_end(result, context.command_timeout_s)
    if end.timeout_s is not None:  # nano shows nothing of what the command had printed
        output = f"Command timed out after {end.timeout_s:g}s"
    else:
        output = end.output.strip()
    if end.ok:
        reply = output or "command succeeded"
    else:
        reply = f"command failed with exit code {end.exit_code}"
        reply += f". Error output:\n{output}" if output else ""
    # What nano has no words for stands in lines that are never cut off.
    note = "".join(f"\n{line}" for line in end.notes)
    return _answer(call, reply, ok=end.ok, note=note, raw=end.raw)


def _apply_patch(call: ToolCall, context: ToolContext) -> ToolResult:
    arguments = [call.arguments.get(name) for name in ("search", "replace", "file")]
    if not all(isinstance(value, str) for value in arguments) or not arguments[0]:
        return _answer(call, INVALID_PATCH, ok=False)
    search, replace, file = (str(value) for value in arguments)
    try:
        file.encode()
        reply = _edit(context, file, search.encode(), replace.encode())
    except UnicodeEncodeError:
        reply = INVALID_PATCH
    except FileNotFoundError:
        reply = f"file {file} not found"
    except OSError as error:
        reply = f"patch operation failed: {error.strerror or error}"
    except InvalidArgumentError as error:  # too large a file
        reply = f"patch operation failed: {error}"
    return _answer(call, reply or "patch applied successfully", ok=not reply)


def _edit(context: ToolContext, file: str, search: bytes, replace: bytes) -> str:
    """Replaces the only occurrence of ``search``; returns why it did not, or ""."""
    path = resolve(context, file)
    if path is None:
        return OUTSIDE
    data = context.sandbox.read_file(path)
    search, replace = with_line_ends_of(data, search, replace)
    num_matches = data.count(search)
    if num_matches == 0:
        return "search string not found - try using grep to find the exact text"
    if num_matches > 1:
        return f"search ambiguous: {num_matches} matches - add more context to make search unique"
    context.sandbox.write_file(path, data.replace(search, replace, 1))
    return ""


def _submit(call: ToolCall, context: ToolContext) -> ToolResult:  # noqa: ARG001 - one signature
    return ToolResult("submitted", call_id=call.call_id, submitted=True)


def _answer(call: ToolCall, reply: str, *, ok: bool, note: str = "", raw: str = "") -> ToolResult:
    content = head(reply, MAX_REPLY_CHARS, CUT_SUFFIX) + note
    kept = "" if raw.strip() in content else raw
    return ToolResult(content, ok=ok, call_id=call.call_id, raw=kept)


_TOOLS: Mapping[str, Callable[[ToolCall, ToolContext], ToolResult]] = {
    "shell": _shell,
    "apply_patch": _apply_patch,
    "submit": _submit,
}
