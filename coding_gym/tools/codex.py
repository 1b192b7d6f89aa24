"""Toolset ``codex``: the nine tools of AReno's coding agent, after Codex.

Names, arguments, caps and results are AReno's (its areno/agentic/coding); results are JSON with
sorted keys, and errors ``{"error": …}``. Mended: patches are applied to all files or to none,
deletions delete, renames work; standard output and error come in the order they were written; no
command is refused by its text; results say where something was cut.
"""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.tools import given
from coding_gym.tools.answers import Refusal, answer, name_of, refusal, submitted
from coding_gym.tools.codex_files import (
    apply_patch,
    inspect_tree,
    list_files,
    read_file,
    replace_text,
    write_file,
)
from coding_gym.tools.codex_prompt import (
    EXAMPLES,
    EXPECTED,
    LEAST_SECONDS,
    MAX_OUTPUT_CHARS,
    MAX_SUMMARY_CHARS,
    MOST_SECONDS,
    SCHEMAS,
    STATUSES,
    SUBMISSION,
    SYSTEM_PROMPT,
)
from coding_gym.tools.codex_repair import mended
from coding_gym.tools.codex_search import rg
from coding_gym.tools.commands import elided, run_command
from coding_gym.tools.prompt_parts import with_kept_shell
from coding_gym.tools.protocol import NoCall, ToolContext
from coding_gym.tools.samples import draw_call

if TYPE_CHECKING:
    from numpy.random import Generator


class CodexToolset:
    """Nine tools to list, read, search, patch, write, run and submit, which answer in JSON."""

    name = "codex"
    system_prompt = SYSTEM_PROMPT
    schemas = SCHEMAS
    text_formats = ("apply_patch",)

    def prompt(self, *, keeps_shell: bool) -> str:
        """Returns the system prompt; ``keeps_shell`` says that one shell runs all commands."""
        return with_kept_shell(SYSTEM_PROMPT, keeps_shell=keeps_shell)

    def meant(self, call: ToolCall) -> ToolCall:
        """Returns a call with its arguments mended."""
        return mended(call)

    def execute(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Runs one call and returns its answer, a JSON object."""
        call = self.meant(call)
        if call.error:
            return _failed(call, f"invalid JSON arguments: {call.error:.300}")
        try:
            if call.name == "submit":
                return submitted(call, _json(_submission(call)))
            if call.name == "run_command":
                return _run_command(call, context)
            if call.name not in _TOOLS:
                known = ", ".join((*_TOOLS, "run_command", "submit"))
                raise Refusal(f"unknown tool: {name_of(call.name)}; there are {known}")
            return answer(call, _json(_TOOLS[call.name](call, context)))
        except Refusal as why:
            return _failed(call, str(why))

    def on_no_call(self, context: ToolContext) -> NoCall:  # noqa: ARG002 - as the protocol has it
        """Says what was expected and counts a call."""
        return NoCall(EXPECTED, ends=False, costs_call=True, is_format_error=True)

    def sample_call(self, rng: "Generator") -> ToolCall:
        """Draws a valid call whose answer does not depend on clock or machine."""
        return draw_call(rng, EXAMPLES, SUBMISSION)


def _run_command(call: ToolCall, context: ToolContext) -> ToolResult:
    timeout_s = given.seconds(
        call, "timeout_s", MOST_SECONDS, least=LEAST_SECONDS, most=MOST_SECONDS
    )
    end = run_command(given.text(call, "command"), context, timeout_s=timeout_s)
    result: dict[str, Any] = {
        "output": elided(end.output, MAX_OUTPUT_CHARS),
        "returncode": end.exit_code,
        "timed_out": end.timeout_s is not None,
    }
    if end.notes:
        result["notes"] = list(end.notes)
    raw = end.raw if result["output"] != end.raw else ""
    return answer(call, _json(result), ok=end.ok, raw=raw)


def _submission(call: ToolCall) -> dict[str, Any]:
    status = given.one_of(call, "status", STATUSES)
    summary = given.text(call, "summary", "")[:MAX_SUMMARY_CHARS]
    return {"submitted": {"status": status, "summary": summary}}


def _failed(call: ToolCall, why: str) -> ToolResult:
    return refusal(call, _json({"error": why}))


def _json(result: Mapping[str, Any]) -> str:
    return json.dumps(result, ensure_ascii=False, sort_keys=True)


_TOOLS: Mapping[str, Callable[[ToolCall, ToolContext], dict[str, Any]]] = {
    "list_files": list_files,
    "inspect_tree": inspect_tree,
    "read_file": read_file,
    "rg": rg,
    "apply_patch": apply_patch,
    "replace_text": replace_text,
    "write_file": write_file,
}
