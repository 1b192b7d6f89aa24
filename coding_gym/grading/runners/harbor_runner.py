"""Harbor's way: a script that writes a reward; see ``docs/tasks.md``."""

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
_LAY = (
    "mkdir -p /tests /logs/agent /logs/verifier /logs/artifacts && "
    f"cp -R {TESTS}/. /tests/ && rm -r {TESTS.partition('/')[0]} && chmod -R u+x /tests"
)
_KILLED = 128  # and above: the exit codes of what a signal ended
_MAX_REWARD_BYTES = 1 << 20
_MAX_SAID = 240  # characters of what the script printed; `Outcomes` keeps 300 of a message


class HarborRunner:
    """Runs ``test_command``, by default ``/tests/test.sh``, and reads the reward that it writes.

    There is one test, ``reward``, which has passed with a reward of at least 1. The script runs as
    the code under test does, so it must judge that from outside; its exit code says nothing.
    """

    name = "harbor"

    def problem(self, task: Task) -> str:
        """Returns what is wrong with the task's expected tests or its path, or ""."""
        if not task.is_in_image:
            return "it runs in the task's 'image' alone, and 'interpreter' is not 'image'"
        wrong = [test for test in task.expected_tests if test != REWARD]
        return f"the one test is {REWARD!r}, got {wrong[0]!r}" if wrong else ""

    def files(self, task: Task) -> tuple[str, ...]:  # noqa: ARG002 — the contract, here and below
        """Returns none: the script names them."""
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
        """Runs the script; its reward is read when all that it started has ended.

        A script that was killed has no reward: the code under test may have killed it.
        """
        sandbox.run(_LAY)
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
            why = f"the reward is {min(rewards):g}: {_end(run.output, run.exit_code)}"
            outcomes.add(REWARD, status, "" if is_full else why)
        else:
            said = _end(run.output, run.exit_code)
            outcomes.messages[REWARD] = f"the script wrote no reward: {said}"
        return run.report(outcomes)


def _end(output: str, exit_code: int) -> str:
    """Returns how the script ended: its exit code and the last three lines that it printed."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    said = " | ".join(lines[-3:])
    quoted = f": {said[-_MAX_SAID:]}" if said else " nothing"
    return f"exit code {exit_code}, it printed{quoted}"


def _rewards(sandbox: Sandbox) -> list[float]:
    """Returns ``reward``, or all rewards where none has that name; none where Harbor reads none."""
    for path in _REWARD_FILES:
        with suppress(OSError):
            data: Any = _parsed(sandbox.read_file(path, max_bytes=_MAX_REWARD_BYTES))
            values = list(data.values()) if isinstance(data, dict) else [data]
            if isinstance(data, dict) and REWARD in data:
                values = [data[REWARD]]
            sound = [isinstance(one, int | float) and math.isfinite(one) for one in values]
            return [float(one) for one in values] if all(sound) else []
    return []


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
