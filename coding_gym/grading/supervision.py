"""Runs of pytest in a sandbox, under a supervisor process that reports the results."""

import json
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from coding_gym.calls import ExecResult
from coding_gym.errors import GradingError, error_line, last_line
from coding_gym.grading.pytest_config import NEUTRAL_OPTIONS
from coding_gym.grading.report import Run
from coding_gym.sandbox.protocol import Sandbox

# Additional time for the supervisor: to start Python twice and to send the report.
_MARGIN_S = 20.0
_MAX_OUTPUT_BYTES = 256 << 20
# The modules of `inside` for forked runs, each after those that it imports.
_FORKS = ("plugin", "forking", "time_limit", "forks")
Modules = tuple[tuple[str, str], ...]
"""Names and texts of modules for the test process, each after those that it imports."""
# Reads a program from standard input and runs it; the program reads the rest, its settings.
# Neither is ever in a file, an argument or the environment.
_LOADER = (
    "import sys;"
    "i=sys.stdin.buffer;"
    "exec(compile(i.read(int(i.readline())),'<stdin>','exec'),{'__name__':'__inside__'})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkedRun:
    """A run of tests in a fork of a process that has imported most of their modules.

    Attributes:
        paths: Pytest's arguments: test files and options.
        files: Content, by path, that replaces files of the tree during the run.
        tests: Ids of the tests to run; None for all that are collected.
        reverse: Whether they run in the opposite order.
        seed: Seed of the random generator that all tests share.
        cpu_s: Processor seconds that the run may take.
        limit_s: Processor seconds that one test may take; None for no limit.
        trace: Whether executed lines are recorded.
        compiles: Whether Python writes byte code.
    """

    paths: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    tests: Collection[str] | None = None
    reverse: bool = False
    seed: int = 0
    cpu_s: float
    limit_s: float | None = None
    trace: bool = False
    compiles: bool = False

    def to_json(self) -> dict[str, Any]:
        """Returns the run as ``inside/forks.py`` reads it."""
        files = {path: data.decode("latin-1") for path, data in self.files.items()}
        tests = None if self.tests is None else sorted(self.tests)
        return {**asdict(self), "files": files, "tests": tests}


class TestRunner:
    """Runs test files with pytest, as ``python -m pytest`` in the workspace would.

    The project's configuration applies, except for options that would skip, repeat or distribute
    tests (``-x``, ``-n``, ``--lf``, ``--reruns`` …).

    Args:
        sandbox: The sandbox that holds the files.
        has_own_pytest: Whether pytest and its plug-ins come from the task's environment: from its
            install commands or its image.
    """

    __test__ = False  # pytest collects classes called Test*

    def __init__(self, sandbox: Sandbox, *, has_own_pytest: bool) -> None:
        self._sandbox, self._has_own_pytest = sandbox, has_own_pytest

    def run(
        self,
        paths: Sequence[str],
        tests: Collection[str] | None = None,
        *,
        timeout_s: float,
        num_checks: int = 0,
    ) -> Run:
        """Runs tests once, in a new process.

        Args:
            paths: The files, relative to the workspace; those that do not exist are skipped.
            tests: Ids of the tests to run, with or without parameters; None for all of the files.
            timeout_s: Time limit in seconds, after which the run is killed.
            num_checks: The number of checks in the files.

        Raises:
            GradingError: The supervisor or pytest could not be started.
            SandboxError: The sandbox died.
        """
        settings = {
            "paths": list(paths),
            "tests": None if tests is None else sorted(tests),
            "num_checks": num_checks,
        }
        return self._supervised(_texts("plugin"), settings, timeout_s)

    def run_forks(
        self,
        runs: Sequence[ForkedRun],
        *,
        timeout_s: float,
        observer: Modules,
        modules: Collection[str] = (),
    ) -> Run:
        """Makes several runs, one after the other, in forks of one process.

        Args:
            runs: The runs.
            timeout_s: Time limit of all runs together in seconds.
            observer: Modules; class ``Observer`` of module ``observer`` makes `Run.observed`.
            modules: Modules to import before the runs.

        Returns:
            A report with these `Run.runs`, which code under test can forge. See `run` for errors.
        """
        settings = {
            "requests": [run.to_json() for run in runs],
            "modules": list(modules),
        }
        return self._supervised((*observer, *_texts(*_FORKS)), settings, timeout_s, ("run",))

    def _supervised(
        self,
        modules: Modules,
        settings: Mapping[str, Any],
        timeout_s: float,
        kinds: Sequence[str] = (),
    ) -> Run:
        frame = secrets.token_hex(16)
        config = {
            "frame": frame,
            "timeout_s": timeout_s,
            "child": {
                "nonce": secrets.token_hex(16),
                "lowest": 100 + secrets.randbelow(100),
                "settings": {**settings, "options": NEUTRAL_OPTIONS},
            },
        }
        result = self._sandbox.run_python(
            module_text("supervisor"),
            timeout_s=timeout_s + _MARGIN_S,
            max_output_bytes=_MAX_OUTPUT_BYTES,
            stdin=_beginning(modules, self._has_own_pytest) + json.dumps(config).encode(),
        )
        verdict = None
        for line in result.output.splitlines():
            if line.startswith(f"{frame} {{"):
                verdict = _read_verdict(line.removeprefix(f"{frame} "))
        if verdict is None:
            return _without_verdict(frame, result)
        run = Run.from_records(kinds=kinds, **verdict)
        if not (verdict["records"] or run.timed_out or run.is_forged):  # not even "ready"
            message = error_line(run.tail)
            is_missing = self._has_own_pytest and message.endswith("No module named 'pytest'")
            remedy = "; add it to install_commands" if is_missing else ""
            raise GradingError(f"pytest could not be started: {message}{remedy}")
        return run


@cache
def _beginning(modules: Modules, has_own_pytest: bool) -> bytes:
    """Returns the first part of the supervisor's input, without secrets."""
    environment = {"PYTHONDONTWRITEBYTECODE": "1"}
    if not has_own_pytest:
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    start = {
        "loader": _LOADER,
        "bootstrap": module_text("bootstrap"),
        "modules": modules,
        "environment": environment,
    }
    text = json.dumps(start).encode()
    return b"%010d" % len(text) + text


@cache
def module_text(name: str, package: str = "coding_gym.grading.inside") -> str:
    """Returns the text of a module that runs in a sandbox."""
    return resources.files(package).joinpath(f"{name}.py").read_text(encoding="utf-8")


def _texts(*names: str) -> Modules:
    return tuple((name, module_text(name)) for name in names)


def _read_verdict(text: str) -> dict[str, Any]:
    """Reads the line of the supervisor; too deeply nested records count as forged."""
    try:
        verdict: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError):
        return {"records": [], "is_forged": True}
    return verdict


def _without_verdict(frame: str, result: ExecResult) -> Run:
    if result.out_of_memory:
        return Run(out_of_memory=True)
    if f"{frame} began" in result.output:
        return Run(is_lost=True)
    if result.timed_out:
        return Run(timed_out=True)
    message = last_line(result.output, f"exit code {result.exit_code}")
    raise GradingError(f"the supervisor of the tests could not be started: {message}")
