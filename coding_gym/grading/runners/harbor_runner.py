"""The runner of Harbor tasks: a script that writes a reward; see ``docs/tasks.md``."""

import json
import math
from contextlib import suppress
from typing import Any

from coding_gym.grade import TestStatus
from coding_gym.grading.formats.outcomes import Outcomes
from coding_gym.grading.report import RunReport
from coding_gym.grading.runners.commands import run_command
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task

REWARD = "reward"
TESTS = ".harbor/tests"
_REWARD_FILES = ("/logs/verifier/reward.json", "/logs/verifier/reward.txt")
_COPY_TESTS = (
    "mkdir -p /tests /logs/agent /logs/verifier /logs/artifacts && "
    f"cp -R {TESTS}/. /tests/ && rm -r {TESTS.partition('/')[0]} && chmod -R u+x /tests"
)
_KILLED = 128  # and above: a signal ended the command
_MAX_REWARD_BYTES = 1 << 20
_MAX_OUTPUT_CHARS = 240  # of the script's output in a message, of which `Outcomes` keeps 300


class HarborRunner:
    """Runs ``test_command``, by default ``/tests/test.sh``, and reads the reward that it writes.

    There is one test, ``reward``, which has passed with a reward of at least 1. The script runs as
    the code under test does, so it must judge that from outside; its exit code does not count.
    """

    name = "harbor"

    def problem(self, task: Task) -> str:
        """Returns what is wrong with the task's expected tests or its path, or ""."""
        if not task.is_in_image:
            return "it runs in the task's 'image' alone, and 'interpreter' is not 'image'"
        wrong = [test for test in task.expected_tests if test != REWARD]
        return f"the only test is {REWARD!r}, got {wrong[0]!r}" if wrong else ""

    def files(self, task: Task) -> tuple[str, ...]:  # noqa: ARG002 — the contract, here and below
        """Returns no file: the script names them."""
        return ()

    def patterns(self, task: Task) -> tuple[str, ...]:  # noqa: ARG002
        """Returns the folder that the hidden tests come in."""
        return (f"./{TESTS}/*",)

    def run(
        self,
        sandbox: Sandbox,
        task: Task,
        paths: tuple[str, ...],  # noqa: ARG002
        *,
        timeout_s: float,
    ) -> RunReport | None:
        """Runs the script, and reads its reward when all its processes have ended.

        A script that was killed has no reward: the code under test can kill it.
        """
        sandbox.run(_COPY_TESTS)
        command = task.test_command.strip() or "/tests/test.sh"
        run = run_command(sandbox, command, timeout_s=timeout_s)
        if run.timed_out:
            return run.report()
        if run.exit_code >= _KILLED:
            return None
        rewards = _rewards(sandbox)
        outcomes = Outcomes()
        if rewards:
            is_full = all(reward >= 1 for reward in rewards)
            status = TestStatus.PASSED if is_full else TestStatus.FAILED
            message = f"the reward is {min(rewards):g}: {_end(run.output, run.exit_code)}"
            outcomes.add(REWARD, status, "" if is_full else message)
        else:
            end = _end(run.output, run.exit_code)
            outcomes.messages[REWARD] = f"the script wrote no reward: {end}"
        return run.report(outcomes)


def _end(output: str, exit_code: int) -> str:
    """Returns how the script ended: its exit code and the last three lines that it printed."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    tail = " | ".join(lines[-3:])
    quoted = f": {tail[-_MAX_OUTPUT_CHARS:]}" if tail else " nothing"
    return f"exit code {exit_code}, it printed{quoted}"


def _rewards(sandbox: Sandbox) -> list[float]:
    """Returns ``reward``, or all rewards if none has that name; nothing if Harbor reads none."""
    for path in _REWARD_FILES:
        with suppress(OSError):
            data: Any = _parsed(sandbox.read_file(path, max_bytes=_MAX_REWARD_BYTES))
            values = list(data.values()) if isinstance(data, dict) else [data]
            if isinstance(data, dict) and REWARD in data:
                values = [data[REWARD]]
            are_numbers = [isinstance(one, int | float) and math.isfinite(one) for one in values]
            return [float(one) for one in values] if all(are_numbers) else []
    return []


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
