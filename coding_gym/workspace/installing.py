"""Runs install commands: one after the other, into a log, within bounds, with telling errors."""

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from coding_gym.arguments import positive_seconds
from coding_gym.calls import ExecResult
from coding_gym.errors import TemplateError, last_line
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.workspace.template import ENVIRONMENT

_log = logging.getLogger(__name__)

_TAIL_LINES = 20
_TAIL_CHARS = 4000

# Errors of pip, git, curl and Python's own sockets where a name server or a host is out of reach.
_NO_NETWORK = re.compile(
    r"Temporary failure in name resolution|Name or service not known|Network is unreachable"
    r"|No route to host|Failed to establish a new connection|Could not resolve host"
    r"|Connection refused"
)
# The most telling line; the lines after it are advice.
_TELLING = re.compile(r"^\s*(?:ERROR|error|E|fatal|[\w.]*Error): ?.+")
_ADVICE = re.compile(r"^\s*(?:note|hint|\[notice\]|╰─>|error: resolutionimpossible)", re.IGNORECASE)
_MAX_COMMAND_CHARS = 80  # of a command in an error; the log has all of it


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildStep:
    """One step of building an environment begins.

    Attributes:
        task_id: The task that wants the environment.
        step: Its number, from 1 on; 0 where another process, or thread, builds the environment and
            this one waits for it.
        num_steps: How many there are.
        command: The command that starts; "" while waiting.
    """

    task_id: str
    step: int
    num_steps: int
    command: str = ""


OnBuildStep = Callable[[BuildStep], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildLimits:
    """How long building a template may take, in seconds.

    Attributes:
        command_s: One install command.
        total_s: All of them together, and one fetch of a repository.
    """

    command_s: float = 1800.0
    total_s: float = 3600.0

    def __post_init__(self) -> None:
        positive_seconds("install_timeout_s", self.command_s)
        positive_seconds("build_timeout_s", self.total_s)


@dataclass
class Installation:
    """Runs the commands of one build.

    Attributes:
        sandbox: Runs them.
        task_id: The task that wants the environment.
        log: The file of their output; its old content is dropped.
        limits: Bounds on their time.
        num_steps: How many commands there will be.
        on_step: Called before each one.
    """

    sandbox: Sandbox
    task_id: str
    log: Path
    limits: BuildLimits
    num_steps: int
    on_step: OnBuildStep | None

    def __post_init__(self) -> None:
        self._step = 0
        self._deadline = monotonic() + self.limits.total_s
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_text("", encoding="utf-8")

    def run(self, command: str, *, timeout_s: float | None = None) -> None:
        """Runs the next command.

        Args:
            command: A shell command.
            timeout_s: Its time limit, where it differs from ``limits``.

        Raises:
            TemplateError: It failed or took too long. The message is one line; the tail of what the
                command printed is a note of the exception.
        """
        self._step += 1
        _log.info("task %s: %s", self.task_id, command)
        if self.on_step is not None:
            place = {"step": self._step, "num_steps": self.num_steps}
            self.on_step(BuildStep(task_id=self.task_id, command=command, **place))
        # Before it runs, so that the log of a build that was killed says what it was at.
        self._write(f"$ {command}\n")
        left_s = max(self._deadline - monotonic(), 0.001)
        own_s = timeout_s or self.limits.command_s
        result = self.sandbox.run(command, timeout_s=min(own_s, left_s))
        self._write(f"{result.output}\n[{result.duration_s:.1f} s]\n")
        if not result.ok:
            late = (
                f"was running when the build had taken {self.limits.total_s:g} s (build_timeout_s)"
                if left_s < own_s
                else f"took more than {own_s:g} s (install_timeout_s)"
            )
            raise self._failure(command, result, late if result.timed_out else "failed")

    def _write(self, text: str) -> None:
        with self.log.open("a", encoding="utf-8", errors="replace") as log:
            log.write(text)

    def _failure(self, command: str, result: ExecResult, how: str) -> TemplateError:
        said = _telling_line(result.output)
        excerpt = (
            command if len(command) <= _MAX_COMMAND_CHARS else f"{command[:_MAX_COMMAND_CHARS]}…"
        )
        error = TemplateError(
            f"task {self.task_id}: install command {excerpt!r} {how}: {said}"
            f"{_hint(result)}; the log is {self.log}"
        )
        if tail := _tail(result.output):
            error.add_note(f"the end of the log:\n{tail}")
        return error


def _hint(result: ExecResult) -> str:
    if "Read-only file system" in result.output:
        return f"; only the tree, {ENVIRONMENT}, home and temporary folders can be written to"
    if "ensurepip is not available" in result.output:
        return (
            "; this Python came without its venv module: install python3-venv, or another Python "
            "of that version with uv or pyenv"
        )
    if not result.timed_out and _NO_NETWORK.search(result.output):
        return (
            "; the environment is not in the cache, and making it needs the network, which is out "
            "of reach: validate the task where there is one, and bring that machine's cache folder"
        )
    return ""


def _telling_line(output: str) -> str:
    lines = [line for line in output.strip().splitlines() if line.strip()]
    telling = [line for line in lines if _TELLING.match(line) and not _ADVICE.match(line)]
    if lines and _ADVICE.match(lines[-1]) and telling:
        return last_line(telling[-1])
    return last_line(output)


def _tail(output: str) -> str:
    # Output of a build must not steer the terminal in which it is read.
    lines = ["".join(c if c.isprintable() else " " for c in line) for line in output.splitlines()]
    return "\n".join(lines[-_TAIL_LINES:])[-_TAIL_CHARS:].strip()
