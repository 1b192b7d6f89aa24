"""Runs of pytest in a sandbox, under a supervisor process that reports the results."""

import json
import secrets
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from coding_gym.calls import ExecResult
from coding_gym.errors import GradingError
from coding_gym.grading.pytest_config import NEUTRAL_OPTIONS
from coding_gym.grading.report import TestRun
from coding_gym.program_output import error_line, last_line
from coding_gym.sandbox.protocol import Sandbox

# Time limit of the supervisor beyond that of the run: it starts Python twice and sends the report.
_MARGIN_S = 20.0
_MAX_OUTPUT_BYTES = 256 << 20
Modules = tuple[tuple[str, str], ...]
"""Names and texts of modules for the test process, each after the modules that it imports."""
# Reads a program from standard input and runs it; the program reads its settings from the rest of
# the input. So program and settings are not in a file, an argument or the environment.
_LOADER = (
    "import sys;"
    "i=sys.stdin.buffer;"
    "exec(compile(i.read(int(i.readline())),'<stdin>','exec'),{'__name__':'__inside__'})"
)


def run_tests(
    sandbox: Sandbox,
    paths: Sequence[str],
    tests: Collection[str] | None = None,
    *,
    has_own_pytest: bool,
    timeout_s: float,
    num_checks: int = 0,
    observer: Modules = (),
    observer_settings: Mapping[str, object] = MappingProxyType({}),
) -> TestRun:
    """Runs test files with pytest in a new process, like ``python -m pytest`` in the workspace.

    The project's configuration applies, except for options that would skip, repeat or distribute
    tests (``-x``, ``-n``, ``--lf``, ``--reruns`` …).

    Args:
        sandbox: The sandbox that holds the files.
        paths: The files, relative to the workspace; missing files are skipped. With an
            ``observer``: pytest's arguments.
        tests: Ids of the tests to run, with or without parameters; None for all tests of the files.
        has_own_pytest: Whether pytest and its plug-ins come from the task's environment: from its
            install commands or its image.
        timeout_s: Time limit in seconds, after which the run is killed.
        num_checks: The number of checks that record their outcomes; 0 for unedited files.
        observer: Modules that run the tests instead of ``inside/plugin.py``, which these modules
            can import; the function ``run`` of the last module runs the tests.
        observer_settings: Further settings for this function.

    Raises:
        GradingError: The supervisor or pytest could not be started.
        SandboxError: The sandbox died.
    """
    settings = {
        "paths": list(paths),
        "tests": None if tests is None else sorted(tests),
        "num_checks": num_checks,
        "options": NEUTRAL_OPTIONS,
        **observer_settings,
    }
    frame = secrets.token_hex(16)
    modules = (("plugin", module_text("plugin")), *observer)
    result = sandbox.run_python(
        module_text("supervisor"),
        timeout_s=timeout_s + _MARGIN_S,
        max_output_bytes=_MAX_OUTPUT_BYTES,
        stdin=_beginning(modules, has_own_pytest) + _config(frame, timeout_s, settings),
    )
    verdicts = [line for line in result.output.splitlines() if line.startswith(f"{frame} {{")]
    if not verdicts:
        return _without_verdict(frame, result)
    verdict = _read_verdict(verdicts[-1].removeprefix(f"{frame} "))
    run = TestRun.from_records(**verdict)
    if not (verdict["records"] or run.timed_out or run.is_forged):  # the record "ready" is missing
        message = error_line(run.tail)
        is_missing = has_own_pytest and message.endswith("No module named 'pytest'")
        remedy = "; add pytest to install_commands" if is_missing else ""
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


def _config(frame: str, timeout_s: float, settings: Mapping[str, object]) -> bytes:
    """Returns the second part of the supervisor's input, with the secrets of one run."""
    secret = {"nonce": secrets.token_hex(16), "lowest": 100 + secrets.randbelow(100)}
    child = {**secret, "settings": settings}
    return json.dumps({"frame": frame, "timeout_s": timeout_s, "child": child}).encode()


@cache
def module_text(name: str, package: str = "coding_gym.grading.inside") -> str:
    """Returns the text of a module that runs in a sandbox."""
    return resources.files(package).joinpath(f"{name}.py").read_text(encoding="utf-8")


def _read_verdict(text: str) -> dict[str, Any]:
    """Returns the JSON value in the supervisor's line.

    Records that are nested too deeply count as forged.
    """
    try:
        verdict: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError):
        return {"records": [], "is_forged": True}
    return verdict


def _without_verdict(frame: str, result: ExecResult) -> TestRun:
    """Returns a run without a verdict; raises GradingError if the supervisor did not start."""
    if result.out_of_memory:
        return TestRun(out_of_memory=True)
    if f"{frame} began" in result.output:
        return TestRun(is_lost=True)
    if result.timed_out:
        return TestRun(timed_out=True)
    message = last_line(result.output, f"exit code {result.exit_code}")
    raise GradingError(f"the supervisor of the tests could not be started: {message}")
