"""Shell commands in a grading sandbox."""

import re
import shlex
from dataclasses import dataclass

from coding_gym.grading.formats.outcomes import Outcomes
from coding_gym.grading.report import RunReport, is_starved
from coding_gym.sandbox.protocol import Sandbox

MAX_OUTPUT_BYTES = 64 << 20
_MARGIN_S = 20.0
_MAX_TAIL_CHARS = 4096
# Output of bash's `times`: the shell itself, then the processes that it waited for.
_TIMES = re.compile(r"\d+m[\d.]+s \d+m[\d.]+s\n(\d+)m([\d.]+)s (\d+)m([\d.]+)s\n?\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRun:
    """How a command ended.

    Attributes:
        exit_code: As the shell saw it.
        output: What it printed, both streams merged.
        timed_out: Whether it was killed at its time limit.
        is_starved: Whether it timed out and used so little CPU time that another try may end.
        out_of_memory: Whether it was killed for the memory that it held.
    """

    exit_code: int = 0
    output: str = ""
    timed_out: bool = False
    is_starved: bool = False
    out_of_memory: bool = False

    def report(self, outcomes: Outcomes | None = None) -> RunReport:
        """Returns the report of a command; no outcome counts where it was killed."""
        tail = self.output[-_MAX_TAIL_CHARS:]
        if self.timed_out:
            return RunReport(ready=True, timed_out=True, is_starved=self.is_starved, tail=tail)
        if self.out_of_memory:
            return RunReport(ready=True, out_of_memory=True, tail=tail)
        outcomes = outcomes or Outcomes()
        return RunReport(
            statuses=outcomes.statuses,
            messages=outcomes.messages,
            ready=True,
            ended=outcomes.ended,
            tail=tail,
        )


def run_command(
    sandbox: Sandbox, command: str, *, timeout_s: float, stdin: bytes = b""
) -> CommandRun:
    """Runs a shell command; the sandbox's first process, which it cannot reach, is its supervisor.

    Args:
        sandbox: Where.
        command: Shell text.
        timeout_s: After so many seconds it is killed.
        stdin: What it reads on standard input.

    Raises:
        SandboxError: The sandbox died.
    """
    inner = f"timeout -s KILL {timeout_s:.3f} bash -c {shlex.quote(command)}"
    result = sandbox.run(
        f"{inner}; code=$?; echo; times; exit $code",
        timeout_s=timeout_s + _MARGIN_S,
        max_output_bytes=MAX_OUTPUT_BYTES,
        stdin=stdin,
    )
    timed_out = result.timed_out or result.duration_s >= timeout_s
    used = _TIMES.search(result.output)
    cpu_s = 60 * (int(used[1]) + int(used[3])) + float(used[2]) + float(used[4]) if used else 0.0
    return CommandRun(
        exit_code=result.exit_code,
        output=result.output[: used.start()].removesuffix("\n") if used else result.output,
        timed_out=timed_out,
        is_starved=timed_out and is_starved(cpu_s, result.duration_s),
        out_of_memory=result.out_of_memory,
    )
