"""A project's tests in a sandbox that stays open: what they cover, and what a bug breaks."""

import base64
import json
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import TYPE_CHECKING, Any

from coding_gym.errors import SandboxError, last_line
from coding_gym.grading.pytest_config import NEUTRAL_OPTIONS
from coding_gym.grading.supervision import pytest_environment
from coding_gym.patch import Patch
from coding_gym.sandbox import open_sandbox
from coding_gym.sandbox.spec import SandboxSpec
from coding_gym.synthesis.coverage_report import CoverageReport, Start, read_coverage
from coding_gym.workspace import apply_patch
from coding_gym.workspace.pytest_layer import PRELOAD, preloads

if TYPE_CHECKING:
    from coding_gym.synthesis.replies import AttemptReply, TraceReply

_PACKAGE = "task_synthesis_inside"
_PROGRAMS = "coding_gym.synthesis.inside"
_MAX_REPLY_BYTES = 64 << 20
_PROGRAM = "import sys; sys.path[0] = {folder!r}; from {package}.__main__ import main; main()"
# What `python -c` would run; a fork of an interpreter that has imported pytest goes on at once.
_SOURCE = f"""
import os, sys
program = {{program!r}}
if {PRELOAD!r} not in sys.modules:
    os.execvp("python", ["python", "-c", program])
import site, time
time.tzset()
sys.path[:0] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
site.main()
sys.path.insert(0, "")
exec(program)
"""
_COVERAGE_CPU_S = 300.0
_COVERAGE_TIMEOUT_S = 3600.0
_BATCH_TIMEOUT_S = 1800.0
_TRACE_CPU_S = 60.0
_TRACE_TIMEOUT_S = 180.0


class ReplyError(SandboxError):
    """The program inside gave no reply, or one of another shape; the project may be the cause."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the tests of a broken program ended.

    Attributes:
        failed: Ids of the tests that fail, in order; empty where ``error`` is not.
        failures: By id, what a user would see; see ``inside/seen.py``.
        error: ``died`` (too long, or the process ended), ``collect`` (a file could not be
            imported), ``unstable`` (another result in a second run), or "".
        outcomes: How every test ended, where all were run or each had a limit.
    """

    failed: tuple[str, ...] = ()
    failures: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    outcomes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A broken program and the tests to run on it.

    Attributes:
        files: Content of the changed files, by path.
        paths: The test files to collect.
        tests: Ids of the tests to run; None for all that are collected.
        cpu_s: Processor seconds that they may take.
        limit_s: Processor seconds that one test may take. Such tests run once, and
            `Outcome.outcomes` says how each ended. None for no limit: where some tests fail, all
            run once more, backwards.
    """

    files: Mapping[str, bytes]
    paths: tuple[str, ...]
    tests: tuple[str, ...] | None
    cpu_s: float
    limit_s: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns the attempt as ``inside/attempts.py`` wants it."""
        files = {path: base64.b64encode(data).decode() for path, data in self.files.items()}
        tests = None if self.tests is None else list(self.tests)
        return {
            "files": files,
            "paths": self.paths,
            "tests": tests,
            "cpu_s": self.cpu_s,
            "limit_s": self.limit_s,
        }


class TestSandbox:
    """An open sandbox that holds the project and what runs its tests.

    Args:
        spec: The project's template.
        backend: Name of the sandbox backend.
        has_own_pytest: Whether pytest, and the plug-ins that it loads, are the environment's.

    Attributes:
        spent_s: Processor seconds that attempts took so far, by what the program inside says.
    """

    __test__ = False  # to pytest, a class of that name would be a test

    def __init__(self, spec: SandboxSpec, backend: str, *, has_own_pytest: bool) -> None:
        self._has_own_pytest = has_own_pytest
        self._is_warm = False
        self.spent_s = 0.0
        preload = preloads(spec.env, has_own_pytest=has_own_pytest)
        self._sandbox = open_sandbox(replace(spec, preload=preload), backend=backend)
        try:
            self._folder = f"{self._sandbox.path('/tmp')}/{secrets.token_hex(8)}"  # noqa: S108 - inside
            for program in resources.files(_PROGRAMS).iterdir():
                if program.name.endswith(".py"):
                    path = f"{self._folder}/{_PACKAGE}/{program.name}"
                    self._sandbox.write_file(path, program.read_bytes())
        except BaseException:
            self._sandbox.close()
            raise

    def close(self) -> None:
        """Closes the sandbox; idempotent."""
        self._sandbox.close()

    def apply(self, patch: Patch) -> None:
        """Changes the tree.

        Raises:
            PatchError: The patch does not apply.
            SandboxError: The sandbox died.
        """
        apply_patch(self._sandbox, patch)

    def measure_coverage(self, paths: Sequence[str]) -> CoverageReport:
        """Finds which tests are reliable, and the lines that each test runs.

        Args:
            paths: What pytest collects; where there are none, what the project says.

        Raises:
            InvalidTaskError: There are no tests, or none can be used; says why.
            SandboxError: The sandbox died.
        """
        request = {"command": "survey", "arguments": list(paths), "cpu_s": _COVERAGE_CPU_S}
        return read_coverage(self._ask(request, _COVERAGE_TIMEOUT_S))

    def trace(self, arguments: Sequence[str], limit_s: float) -> "TraceReply | None":
        """Runs the tests of a program that may be broken, line by line.

        Args:
            arguments: What pytest is told.
            limit_s: Processor seconds that one test may take.

        Returns:
            How they ended and what they ran; None where they could not be run.

        Raises:
            SandboxError: The sandbox died, or no reply came that answers this.
        """
        from coding_gym.synthesis.replies import Refusal, TraceReply, read_reply

        request = {
            "command": "trace",
            "arguments": list(arguments),
            "cpu_s": _TRACE_CPU_S,
            "limit_s": limit_s,
        }
        data = self._ask(request, _TRACE_TIMEOUT_S)
        return None if read_reply(Refusal, data).error else read_reply(TraceReply, data)

    def read_file(self, path: str, max_bytes: int) -> bytes | None:
        """Returns a file of the tree; None where it cannot be read, or is too large.

        Raises:
            SandboxError: The sandbox died.
        """
        try:
            return self._sandbox.read_file(path, max_bytes=max_bytes)
        except OSError:
            return None

    def attempt(
        self, attempts: Sequence[Attempt], start: Start, warm: Sequence[str] = ()
    ) -> tuple[Outcome, ...]:
        """Runs tests of broken programs.

        Args:
            attempts: The programs.
            start: What is done once for all.
            warm: Test files whose byte code is written the first time.

        Raises:
            SandboxError: The sandbox died, or no reply came that answers this.
        """
        from coding_gym.synthesis.replies import AttemptReplies, read_reply

        request = {
            "command": "try",
            "preload": start.modules,
            "shares": start.shares_pytest,
            "warm": [] if self._is_warm else list(warm),
            "attempts": [attempt.to_json() for attempt in attempts],
        }
        reply = read_reply(AttemptReplies, self._ask(request, _BATCH_TIMEOUT_S))
        results = reply.results
        self._is_warm = True
        self.spent_s += reply.cpu_s
        if len(results) != len(attempts):
            raise ReplyError(f"{len(attempts)} programs were tried, {len(results)} replies came")
        return tuple(map(_outcome, attempts, results))

    def _ask(self, request: dict[str, Any], timeout_s: float) -> bytes:
        answer = f"{self._folder}/reply.json"
        self._sandbox.write_file(answer, b"")
        result = self._sandbox.run_python(
            _SOURCE.format(program=_PROGRAM.format(folder=self._folder, package=_PACKAGE)),
            timeout_s=timeout_s,
            env=pytest_environment(self._has_own_pytest),
            stdin=json.dumps(request | {"reply": answer, "options": NEUTRAL_OPTIONS}).encode(),
        )
        with suppress(OSError):  # the project's code may have taken it away
            if reply := self._sandbox.read_file(answer, max_bytes=_MAX_REPLY_BYTES):
                return reply
        said = last_line(result.output, f"exit code {result.exit_code}")
        raise ReplyError(f"the program that runs the tests gave no reply: {said}")


def _outcome(attempt: Attempt, result: "AttemptReply") -> Outcome:
    if result.error:
        return Outcome(error=result.error)
    if not result.is_stable:
        return Outcome(error="unstable")
    if attempt.tests is not None and (odd := set(result.failed) - set(attempt.tests)):
        raise ReplyError(f"the reply names a test that was not to be run: {min(odd)}")
    return Outcome(
        failed=result.failed,
        failures={test: failure.model_dump() for test, failure in result.failures.items()},
        outcomes=result.outcomes,
    )
