"""Commands in a grading sandbox, and reporters of ours that share their output with the tests."""

import json
import re
import secrets
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from coding_gym.errors import GradingError
from coding_gym.grade import TestStatus
from coding_gym.grading.formats.outcomes import Outcomes
from coding_gym.grading.report import RunReport, is_starved
from coding_gym.sandbox.protocol import Sandbox

MAX_OUTPUT_BYTES = 64 << 20
_MARGIN_S = 20.0
_MAX_TAIL_CHARS, _MAX_SAID_CHARS = 4096, 300
_STATUSES = {str(status): status for status in TestStatus}
# What bash's `times` says: itself, then the processes that it waited for.
_TIMES = re.compile(r"\d+m[\d.]+s \d+m[\d.]+s\n(\d+)m([\d.]+)s (\d+)m([\d.]+)s\n?\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRun:
    """How a command ended.

    Attributes:
        exit_code: As the shell saw it.
        output: What it printed, both streams merged.
        timed_out: Whether it was killed at its time limit.
        is_starved: Whether it timed out and used so little CPU time that another try may end.
    """

    exit_code: int = 0
    output: str = ""
    timed_out: bool = False
    is_starved: bool = False

    def report(self, outcomes: Outcomes | None = None) -> RunReport:
        """Returns the report of what a command said; nothing counts where it timed out."""
        tail = self.output[-_MAX_TAIL_CHARS:]
        if self.timed_out:
            return RunReport(ready=True, timed_out=True, is_starved=self.is_starved, tail=tail)
        said = outcomes or Outcomes()
        return RunReport(
            statuses=said.statuses, messages=said.messages, ready=True, ended=said.ended, tail=tail
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
    )


def place_programs(sandbox: Sandbox, *names: str) -> str:
    """Writes programs of ours into a new folder of a sandbox; returns the folder."""
    folder = f"{sandbox.path('/tmp')}/{secrets.token_hex(8)}"  # noqa: S108 — as it is inside
    for name in names:
        program = resources.files("coding_gym.grading.runners").joinpath(f"inside/{name}")
        sandbox.write_file(f"{folder}/{name}", program.read_bytes())
    return folder


def run_reporter(
    sandbox: Sandbox, command: str, lines: Iterable[str], *, timeout_s: float, failure: str
) -> RunReport:
    """Runs a reporter, which prints lines of a nonce and a list of four texts.

    The lists are ``["ready"|"end", "", "", ""]``, ``["test", id, status, message]`` and
    ``["class", file or class, "error", message]``. Lines that begin with the nonce and hold
    anything else count as forged, and a test that is reported twice as an error.

    Args:
        sandbox: Where.
        command: Starts the reporter.
        lines: Lines that it reads on standard input, after the nonce.
        timeout_s: After so many seconds it is killed.
        failure: Says that it could not be started, with ``{}`` for what it printed.

    Raises:
        GradingError: It could not be started; nothing of the tree is loaded until then.
    """
    nonce = secrets.token_hex(16)
    text = "\n".join([nonce, *lines, ""])
    run = run_command(sandbox, command, timeout_s=timeout_s, stdin=text.encode())
    report = _report(run, nonce)
    if not (report.ready or report.timed_out):
        said = " ".join(run.output.split())[:_MAX_SAID_CHARS] or f"exit code {run.exit_code}"
        raise GradingError(failure.replace("{}", said))
    return report


def _report(run: CommandRun, nonce: str) -> RunReport:
    if run.timed_out:
        return run.report()
    outcomes = Outcomes(ended=False)
    ready = is_forged = False
    for record in _records(run.output, nonce):
        match record:
            case ["test", str(name), str(how), str(said)] if (
                how in _STATUSES and not outcomes.ended
            ):
                outcomes.add(name, _STATUSES[how], said)
            case ["class", str(name), "error", str(said)]:
                outcomes.messages.setdefault(name, " ".join(said.split()))
            case ["ready", "", "", ""] if not ready:
                ready = True
            case ["end", "", "", ""] if not outcomes.ended:
                outcomes.ended = True
            case _:
                is_forged = True
    return replace(run.report(outcomes), ready=ready, is_forged=is_forged)


def _records(output: str, nonce: str) -> Iterable[Any]:
    # Not `splitlines`, which knows ends of lines that JSON leaves as they are.
    for line in output.split("\n"):
        if line.startswith(f"{nonce} "):
            try:
                yield json.loads(line.removeprefix(f"{nonce} "))
            except (ValueError, RecursionError):
                yield None
