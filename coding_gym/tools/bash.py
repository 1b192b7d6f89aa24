"""Toolset ``bash``: the one tool of mini-swe-agent, and its way to submit.

Observations, the submit line and the lengths are those of mini-swe-agent 2 (its config/default.yaml
and environments/local.py); the sentences in them are ours. There is no tool ``submit``: a command
submits whose first line of output is the submit line and that exits with 0.
"""

from typing import TYPE_CHECKING

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.text.truncate import split_ends
from coding_gym.tools import given
from coding_gym.tools.answers import Refusal, answer, name_of, refusal, submitted
from coding_gym.tools.bash_prompt import (
    EXAMPLES,
    GUIDANCE,
    MAX_OUTPUT_CHARS,
    OLD_SUBMIT_LINE,
    SCHEMAS,
    SUBMISSION,
    SUBMIT_LINE,
    SYSTEM_PROMPT,
    TOO_LONG,
)
from coding_gym.tools.commands import CommandEnd, run_command
from coding_gym.tools.prompt_parts import with_kept_shell
from coding_gym.tools.protocol import NoCall, ToolContext
from coding_gym.tools.samples import draw_call

if TYPE_CHECKING:
    from numpy.random import Generator


class BashToolset:
    """The tool ``bash``; a command that prints the submit line first ends the episode."""

    name = "bash"
    system_prompt = SYSTEM_PROMPT
    schemas = SCHEMAS
    text_formats = ("bash_block",)

    def prompt(self, *, keeps_shell: bool) -> str:
        """Returns the system prompt; ``keeps_shell`` says that one shell runs all commands."""
        return with_kept_shell(SYSTEM_PROMPT, keeps_shell=keeps_shell)

    def execute(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Runs a command and returns how it ended, in mini-swe-agent's form."""
        try:
            return _bash(_checked(call), context)
        except Refusal as why:
            said = f"Tool call error:\n\n<error>\n{why}\n</error>\n\n{GUIDANCE}"
            return refusal(call, said)

    def on_no_call(self, context: ToolContext) -> NoCall:  # noqa: ARG002 - as the protocol has it
        """Says what was expected and counts a call."""
        error = "Expected exactly 1 action, found 0."
        reply = f"Format error:\n\n<error>\n{error}\n</error>\n\n{GUIDANCE}"
        return NoCall(reply, ends=False, costs_call=True, is_format_error=True)

    def sample_call(self, rng: "Generator") -> ToolCall:
        """Draws a valid call whose answer does not depend on clock or machine."""
        return draw_call(rng, EXAMPLES, SUBMISSION)


def _checked(call: ToolCall) -> ToolCall:
    if call.error:
        raise Refusal(f"Error parsing tool call arguments: {call.error:.300}.")
    if call.name != "bash":
        raise Refusal(f"Unknown tool '{name_of(call.name)}'.")
    if "command" not in call.arguments:
        raise Refusal("Missing 'command' argument in bash tool call.")
    return call


def _bash(call: ToolCall, context: ToolContext) -> ToolResult:
    end = run_command(given.text(call, "command"), context)
    content = _observation(end)
    lines = end.output.lstrip().split("\n", 1)
    if end.ok and lines[0].strip() in (SUBMIT_LINE, OLD_SUBMIT_LINE):
        return submitted(call)
    return answer(call, content, ok=end.ok, raw=end.raw)


def _observation(end: CommandEnd) -> str:
    """Returns how a command ended as mini-swe-agent shows it, what we add at the end."""
    output, notes = end.output, "".join(f"\n{note}" for note in end.notes)
    head = f"<returncode>{end.exit_code}</returncode>\n"
    if end.timeout_s is not None:
        said = f"the command was killed after {end.timeout_s:g} seconds"
        head = f"<exception>{said}</exception>\n<returncode>-1</returncode>\n"
    if len(output) < MAX_OUTPUT_CHARS:
        return f"{head}<output>\n{output}</output>{notes}"
    first, last = split_ends(output, MAX_OUTPUT_CHARS)
    return (
        f"{head}<warning>\n{TOO_LONG}\n</warning>"
        f"<output_head>\n{first}\n</output_head>\n"
        f"<elided_chars>\n{len(output) - MAX_OUTPUT_CHARS} characters elided\n</elided_chars>\n"
        f"<output_tail>\n{last}\n</output_tail>{notes}"
    )
