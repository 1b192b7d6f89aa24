"""Runs a policy's shell commands, for all toolsets with a shell."""

from dataclasses import replace

from coding_gym.calls import ExecResult, ToolCall, ToolResult
from coding_gym.errors import InvalidArgumentError
from coding_gym.text.truncate import ends
from coding_gym.tools.toolset import Refusal, Tool, ToolContext


def run_command(
    command: str, context: ToolContext, *, timeout_s: float | None = None
) -> ExecResult:
    """Runs a command in the workspace.

    Args:
        command: Any text.
        context: The episode's sandbox and time limit.
        timeout_s: A shorter time limit in seconds; None for the episode's limit.

    Returns:
        The result; its notes report killed background processes and exceeded memory.

    Raises:
        Refusal: The text has a NUL or a lone surrogate, or is too long.
        SandboxError: The sandbox is closed or died.
    """
    limit_s = min(timeout_s or context.command_timeout_s, context.command_timeout_s)
    try:
        command.encode()
        result = context.sandbox.run(command, timeout_s=limit_s)
    except (InvalidArgumentError, UnicodeEncodeError) as error:
        raise Refusal(f"the command cannot be run: {error!s:.300}") from error
    notes = []
    if result.num_leftovers and not result.timed_out:
        noun = "process was" if result.num_leftovers == 1 else "processes were"
        notes.append(f"({result.num_leftovers} background {noun} killed when the command returned)")
    if result.out_of_memory:
        notes.append("(killed: it exceeded the memory limit)")
    return replace(result, notes=tuple(notes)) if notes else result


def bash_tool(max_chars: int) -> Tool:
    """Returns a tool ``bash`` that runs its argument ``command``.

    Args:
        max_chars: Maximum number of characters of output in a result.
    """

    def run(call: ToolCall, context: ToolContext) -> ToolResult:
        result = run_command(call.arguments["command"], context)
        return ToolResult(command_report(result, context, max_chars), ok=result.ok)

    description = (
        "Run a bash command in the repository. Returns standard output and error together; the "
        f"middle of an output above {max_chars} characters is omitted."
    )
    parameters = {"command": "The command, for example: grep -rn 'def parse' src"}
    return Tool(name="bash", description=description, parameters=parameters, run=run)


def command_report(result: ExecResult, context: ToolContext, max_chars: int) -> str:
    """Returns a command's truncated output, with a nonzero exit code and notes below it."""
    lines = [elided(result.output.strip("\n"), max_chars) or "(no output)"]
    if result.timed_out:
        lines.append(f"[killed after {context.command_timeout_s:g} s]")
    elif result.exit_code:
        lines.append(f"[exit code {result.exit_code}]")
    return "\n".join((*lines, *result.notes))


def elided(output: str, max_chars: int) -> str:
    r"""Returns the head and the tail of a text that is longer than ``max_chars``.

    Between them is the number of omitted characters.

    >>> elided("abcdefgh", 4)
    'ab\n[... 4 characters omitted ...]\ngh'
    """
    return ends(output, max_chars, "\n[... {omitted} characters omitted ...]\n")
