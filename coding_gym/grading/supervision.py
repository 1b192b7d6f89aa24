"""One run of tests in a sandbox, under a supervisor that alone says how they ended."""

import json
import secrets
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from coding_gym.calls import ExecResult
from coding_gym.errors import GradingError, error_line, last_line
from coding_gym.grading.pytest_config import NEUTRAL_OPTIONS
from coding_gym.grading.report import RunReport
from coding_gym.sandbox.protocol import Sandbox

# What a run may take beyond the tests' own limit: starting Python twice, sending the report.
_MARGIN_S = 20.0
_MAX_OUTPUT_BYTES = 256 << 20
_PYTEST_PROGRAM = "pytest_program.py"
# A fork of an interpreter that has imported this module runs the tests, where there is one.
_FRAMEWORKS = {_PYTEST_PROGRAM: "pytest"}
# Reads a program's length, the program, and leaves the rest of standard input to it: neither the
# program nor its settings are ever in a file, an argument or the environment.
LOADER = (
    "import sys;"
    "i=sys.stdin.buffer;"
    "exec(compile(i.read(int(i.readline())),'<stdin>','exec'),{'__name__':'__inside__'})"
)


def run_tests(
    sandbox: Sandbox,
    paths: Sequence[str],
    *,
    timeout_s: float,
    has_own_pytest: bool,
    only: Collection[str] = (),
    num_checks: int = 0,
) -> RunReport | None:
    """Runs test files with pytest, as ``python -m pytest`` in the workspace would.

    The project's own configuration is in force, but for options that would keep tests from running
    here and in order (``-x``, ``-n``, ``--lf``, ``--reruns`` …).

    Args:
        sandbox: Where; it holds the files already.
        paths: The files, relative to the workspace; those that do not exist are left out.
        timeout_s: After so many seconds the run is killed.
        has_own_pytest: Whether install commands made the environment, or an image brought it, so
            that pytest and the plug-ins that it loads are theirs.
        only: The functions to run, by node id without parameters; all of the files by default.
        num_checks: How many assertions of the files record their outcomes.

    Returns:
        What was reported; None where the supervisor was stopped or killed, as code under test can.

    Raises:
        GradingError: The supervisor or pytest could not be started.
        SandboxError: The sandbox died.
    """
    report = supervise(
        sandbox,
        _PYTEST_PROGRAM,
        {
            "paths": list(paths),
            "options": NEUTRAL_OPTIONS,
            "only": sorted(only),
            "num_checks": num_checks,
        },
        timeout_s=timeout_s,
        environment=pytest_environment(has_own_pytest),
    )
    if report is not None and report.never_began:
        message = error_line(report.tail)
        is_missing = has_own_pytest and message.endswith("No module named 'pytest'")
        remedy = "; add it to install_commands" if is_missing else ""
        raise GradingError(f"pytest could not be started: {message}{remedy}")
    return report


def supervise(
    sandbox: Sandbox,
    program: str,
    settings: Mapping[str, Any],
    *,
    timeout_s: float,
    environment: Mapping[str, str],
) -> RunReport | None:
    """Runs a test framework's program in a process that a supervisor watches over.

    Args:
        sandbox: Where; it holds the tests already.
        program: A program of this package that `bootstrap` runs there. It binds ``VERSION``, and
            ``run(reporter, settings)``, which gives an exit code.
        settings: The program's settings; JSON.
        timeout_s: After so many seconds the run is killed.
        environment: Environment variables beside those of the sandbox.

    Returns:
        What was reported, which may be that the program could not be started; None where the
        supervisor was stopped or killed, as code under test can.

    Raises:
        GradingError: The supervisor could not be started.
        SandboxError: The sandbox died.
    """
    frame = secrets.token_hex(16)
    config = {
        "frame": frame,
        "timeout_s": timeout_s,
        "child": {
            "nonce": secrets.token_hex(16),
            "lowest": 100 + secrets.randbelow(100),
            "settings": dict(settings),
        },
    }
    result = sandbox.run_python(
        _program("supervisor.py"),
        timeout_s=timeout_s + _MARGIN_S,
        max_output_bytes=_MAX_OUTPUT_BYTES,
        stdin=_beginning(program, environment) + json.dumps(config).encode(),
    )
    verdict = None
    for line in result.output.splitlines():
        if line.startswith(f"{frame} {{"):
            verdict = _read_verdict(line.removeprefix(f"{frame} "))
    return RunReport.from_verdict(verdict) if verdict else _without_verdict(frame, result)


def _beginning(program: str, environment: Mapping[str, str]) -> bytes:
    """Returns the first part of the supervisor's input, which holds no secret."""
    start = {
        "framework": _FRAMEWORKS.get(program, ""),
        "loader": LOADER,
        "bootstrap": _program("bootstrap.py"),
        "program": _program(program),
        "environment": {"PYTHONDONTWRITEBYTECODE": "1", **environment},
    }
    text = json.dumps(start).encode()
    return b"%010d" % len(text) + text


def pytest_environment(has_own_pytest: bool) -> dict[str, str]:
    """Returns the variables with which pytest runs, besides those of its sandbox."""
    return {} if has_own_pytest else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


@cache
def _program(name: str) -> str:
    return resources.files("coding_gym.grading").joinpath(name).read_text(encoding="utf-8")


def _read_verdict(text: str) -> dict[str, Any]:
    """Reads what the supervisor printed; it passes on records that may nest too deep to be read."""
    try:
        verdict: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError):
        return {"records": [], "num_strays": 1, "flooded": True, "timed_out": False}
    return verdict


def _without_verdict(frame: str, result: ExecResult) -> RunReport | None:
    if result.out_of_memory:
        return RunReport(ready=True, out_of_memory=True)
    if f"{frame} began" in result.output:
        return None
    if result.timed_out:
        return RunReport(timed_out=True, is_starved=True)
    message = last_line(result.output, f"exit code {result.exit_code}")
    raise GradingError(f"the supervisor of the tests could not be started: {message}")
