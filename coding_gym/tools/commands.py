"""Shell commands of a policy, as every toolset with a shell runs them."""

from dataclasses import dataclass

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.errors import InvalidArgumentError
from coding_gym.text.truncate import ends
from coding_gym.tools.call_arguments import text
from coding_gym.tools.toolset import Refusal, Tool, ToolContext, answer

SHELLS = ("shell", "bash", "run_command", "execute_bash")
"""Names of tools that run a shell command, here and in other projects, the preferred one first."""

COMMANDS = ("cmd", "command")
"""The names of the argument that holds the command."""

_EXAMPLE = "grep -rn 'def parse' src"


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended.

    Attributes:
        exit_code: The shell's exit status; 124 after a timeout.
        output: Its output, not yet cut.
        notes: Notices beside it, one line each: processes killed, a shell lost.
        timeout_s: The seconds after which it was killed, or None where it ended by itself.
        raw: The sandbox's output.
    """

    exit_code: int
    output: str
    notes: tuple[str, ...]
    timeout_s: float | None
    raw: str

    @property
    def ok(self) -> bool:
        """Whether the command exited with 0 inside its time limit."""
        return self.exit_code == 0 and self.timeout_s is None


def run_command(
    command: str, context: ToolContext, *, timeout_s: float | None = None
) -> CommandEnd:
    """Runs a command in the workspace.

    Args:
        command: Any text.
        context: The episode.
        timeout_s: A time limit below the episode's own.

    Raises:
        Refusal: No shell takes this text.
        SandboxError: The sandbox is closed or died.
    """
    limit_s = min(timeout_s or context.command_timeout_s, context.command_timeout_s)
    try:
        command.encode()
        result = context.sandbox.run(command, timeout_s=limit_s)
    except (InvalidArgumentError, UnicodeEncodeError) as error:  # a NUL, too long, a surrogate
        raise Refusal(f"the command cannot be run: {error!s:.300}") from error
    output, notes = result.output, []
    if result.num_leftovers and not result.timed_out:
        what = "process was" if result.num_leftovers == 1 else "processes were"
        notes.append(f"({result.num_leftovers} background {what} killed when the command returned)")
    if result.out_of_memory:
        notes.append("(killed: it used more memory than there is)")
    if result.shell_lost:
        output, _, notice = output.removesuffix("\n").rpartition("\n")
        notes.append(notice)
    return CommandEnd(
        exit_code=result.exit_code,
        output=output,
        notes=tuple(notes),
        timeout_s=limit_s if result.timed_out else None,
        raw=result.output,
    )


def bash_tool(max_chars: int, description: str = "", example: str = _EXAMPLE) -> Tool:
    """Returns a tool ``bash`` that runs the argument ``command`` and reports how it ended.

    Args:
        max_chars: The most characters of output in an answer.
        description: The tool's description where it is not the usual one.
        example: An example of a command, for the policy.
    """

    def run(call: ToolCall, context: ToolContext) -> ToolResult:
        end = run_command(text(call, "command"), context)
        return answer(call, report(end, max_chars), ok=end.ok, raw=end.raw)

    usual = (
        "Run a bash command in the repository. Standard output and error come back together; of "
        f"more than {max_chars} characters the middle is left out."
    )
    parameters = {"command": f"The command, for example: {example}"}
    return Tool(name="bash", description=description or usual, parameters=parameters, run=run)


def report(end: CommandEnd, max_chars: int) -> str:
    """Returns a command's end as text: its output, cut, and below it how it ended."""
    lines = [elided(end.output.strip("\n"), max_chars) or "(no output)"]
    if end.timeout_s is not None:
        lines.append(f"[killed after {end.timeout_s:g} s]")
    elif end.exit_code:
        lines.append(f"[exit code {end.exit_code}]")
    return "\n".join((*lines, *end.notes))


def elided(output: str, max_chars: int) -> str:
    r"""Returns the head and the tail of a text, and between them how much is left out.

    >>> elided("abcdefgh", 4)
    'ab\n[... 4 characters left out ...]\ngh'
    """
    return ends(output, max_chars, "\n[... {left_out} characters left out ...]\n")
