"""Runs the visible tests by shell commands, the failing ones first, and reads how they ended."""

import hashlib
import json
import re
import shlex
from dataclasses import dataclass
from importlib.resources import files

from coding_gym.repair.localisation import GO_ON, Baseline

# Of one test, since a candidate may loop for ever; the survey, which is slower, allows 3 seconds.
_TEST_CPU_S, _TEST_WALL_S = 2.0, 20.0
_SHOWN = "tail -n 10 | cut -c -160"  # the tools show 2,000 characters, and the end matters
_SUMMARY = re.compile(
    r"^failed before: (\d{1,9}) of (\d{1,9}) pass now; others broken: (\d{1,9})$", re.MULTILINE
)
_PASSED = re.compile(r"^exit code 0$", re.MULTILINE)
# Plain assertions start a fifth faster, and who only counts outcomes needs no account of them.
_FLAGS = (
    "--tb=no",
    "--assert=plain",
    "-rf",
    "--maxfail=0",
    "--rootdir=.",
    "-p",
    "no:cacheprovider",
)


@dataclass(frozen=True, slots=True)
class RunReport:
    """How a run of the visible tests ended.

    Attributes:
        fraction: Of the tests that failed at base, how many pass, from 0 to 1.
        broken: Whether another test fails, or the tests could not be run.
        passed: Whether all of the former pass and none of the latter fails.
    """

    fraction: float
    broken: bool
    passed: bool


def arguments_from(visible_test_command: str) -> str:
    """Returns the arguments that a task's test command gives to pytest; ``-q`` where it is other.

    Args:
        visible_test_command: A shell command such as ``python -m pytest -q tests``.
    """
    try:
        words = shlex.split(visible_test_command)
    except ValueError:
        return "-q"
    for start in (["python", "-m", "pytest"], ["python3", "-m", "pytest"], ["pytest"]):
        if words[: len(start)] == start:
            return shlex.join(words[len(start) :])
    return "-q"


class VisibleTests:
    """The commands that run a program's visible tests.

    Args:
        arguments: Pytest's arguments for them.
        baseline: How they go before any change; without it, all tests run in their own order.
    """

    def __init__(self, arguments: str, baseline: Baseline | None = None) -> None:
        flags = () if baseline is None else baseline.flags
        self._arguments = f"{arguments} {shlex.join([*_FLAGS, GO_ON, *flags])}".strip()
        self._files = () if baseline is None or not baseline.failing else _plugin(baseline)
        self._num_failing = 0 if baseline is None else len(baseline.failing)
        digest = hashlib.sha256("".join(self._files).encode()).hexdigest()[:12]
        # Named by what is in it: a backend without mounts shares one /tmp among episodes.
        self._folder = f"${{TMPDIR:-/tmp}}/failing-first-{digest}"

    def install_command(self) -> str:
        """Returns the command that writes the pytest plugin; "" where none is needed."""
        if not self._files:
            return ""
        plugin, tests = self._files
        return (
            f"mkdir -p {self._folder} && cd {self._folder} && "
            f"cat > failing_first.py <<'EOF' && cat > tests.json <<'EOS' && cd ~-\n"
            f"{plugin}EOF\n{tests}\nEOS"
        )

    def run_command(self) -> str:
        """Returns the command that runs the tests."""
        run = f"PYTHONDONTWRITEBYTECODE=1 python -m pytest {self._arguments}"
        if self._files:
            path = f"{self._folder}${{PYTHONPATH:+:$PYTHONPATH}}"
            run = f'PYTHONPATH="{path}" {run} -p failing_first'
        return f"set -o pipefail; {run} 2>&1 | {_SHOWN}; echo exit code $?"

    def read(self, reply: str) -> RunReport:
        """Reads what `run_command` printed, as the tool ``shell`` shows it.

        A program can print such lines itself and pass for repaired here; the grade is not read
        from them. A line with numbers that cannot be counts as none.
        """
        if not self._files:
            passed = _PASSED.search(reply) is not None
            return RunReport(float(passed), broken=not passed, passed=passed)
        found = (_SUMMARY.findall(reply) or [("0", "0", "1")])[-1]
        num_fixed, num_failing, num_broken = (int(number) for number in found)
        if num_failing != self._num_failing or num_fixed > num_failing:
            return RunReport(0.0, broken=True, passed=False)
        all_fixed = num_fixed == num_failing
        return RunReport(num_fixed / num_failing, num_broken > 0, all_fixed and not num_broken)


def _plugin(baseline: Baseline) -> tuple[str, str]:
    source = files("coding_gym.repair").joinpath("failing_first.py").read_text(encoding="utf-8")
    tests = {
        "first": baseline.failing,
        "known": baseline.known_failing,
        "num_tests": baseline.num_tests,
        "in_order": baseline.in_order,
        "cpu_s": _TEST_CPU_S,
        "wall_s": _TEST_WALL_S,
    }
    return source, json.dumps(tests)
