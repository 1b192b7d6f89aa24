"""Shell commands of a policy, as every toolset with a shell runs them."""

from dataclasses import dataclass

from coding_gym.calls import ExecResult
from coding_gym.errors import InvalidArgumentError
from coding_gym.text.truncate import ends, scrub_runner_times
from coding_gym.tools.answers import Refusal
from coding_gym.tools.protocol import ToolContext


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended, as a policy may be told.

    Attributes:
        exit_code: The shell's exit status; 124 after a timeout.
        output: What it printed, durations of test runs zeroed, not yet cut.
        notes: What has to be said beside it, one line each: processes killed, a shell lost.
        timeout_s: The seconds after which it was killed, or None where it ended by itself.
        raw: What the sandbox gave.
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
        Refusal: No shell can be given this text.
        SandboxError: The sandbox is closed or died.
    """
    limit_s = min(timeout_s or context.command_timeout_s, context.command_timeout_s)
    try:
        command.encode()
        result = context.sandbox.run(command, timeout_s=limit_s)
    except (InvalidArgumentError, UnicodeEncodeError) as error:  # a NUL, too long, a surrogate
        raise Refusal(f"the command cannot be run: {error!s:.300}") from error
    return command_end(result, limit_s)


def command_end(result: ExecResult, limit_s: float) -> CommandEnd:
    """Returns how a command that was given so many seconds ended."""
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
        output=scrub_runner_times(output),
        notes=tuple(notes),
        timeout_s=limit_s if result.timed_out else None,
        raw=result.output,
    )


def told(end: CommandEnd, max_chars: int) -> str:
    """Returns a command's end as text: its output, cut, and below it how it ended."""
    lines = [elided(end.output.strip("\n"), max_chars) or "(no output)"]
    if end.timeout_s is not None:
        lines.append(f"[killed after {end.timeout_s:g} s]")
    elif end.exit_code:
        lines.append(f"[exit code {end.exit_code}]")
    return "\n".join((*lines, *end.notes))


def elided(text: str, max_chars: int) -> str:
    r"""Returns the head and the tail of a text, and between them how much is left out.

    >>> elided("abcdefgh", 4)
    'ab\n[... 4 characters left out ...]\ngh'
    """
    return ends(text, max_chars, "\n[... {left_out} characters left out ...]\n")
