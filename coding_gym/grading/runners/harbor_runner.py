"""The runner of Harbor tasks: runs a script that writes a reward; see ``docs/tasks.md``."""

import json
import math
from contextlib import suppress

from coding_gym.calls import ExecResult
from coding_gym.errors import GradingError
from coding_gym.grade import TestStatus
from coding_gym.grading.report import TestRun
from coding_gym.grading.runners.output_runner import OutputRunner
from coding_gym.program_output import last_line
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task

REWARD = "reward"
TESTS = ".harbor/tests"
_REWARD_FILES = ("/logs/verifier/reward.json", "/logs/verifier/reward.txt")
_COPY_TESTS = (
    "mkdir -p /tests /logs/agent /logs/verifier /logs/artifacts && "
    f"cp -R {TESTS}/. /tests/ && rm -r {TESTS.partition('/')[0]} && chmod -R u+x /tests"
)
_KILLED = 128  # lowest exit code of a command that a signal ended
_MAX_REWARD_BYTES = 1 << 20


class HarborRunner(OutputRunner):
    """Runs ``test_command``, a script, and reads the reward that the script writes.

    There is one test, ``reward``. The test passes if the reward is at least 1, with any exit code
    of the script. The script has the same privileges as the code under test, so the script must not
    trust results from a process of this code.
    """

    def problem(self, task: Task) -> str:
        """Returns the problem of a task that this runner cannot run, or ""."""
        if not task.is_in_image:
            return "runner 'harbor' needs a task with an 'image' and the 'interpreter' \"image\""
        invalid = [test for test in task.expected_tests if test != REWARD]
        return f"the only expected test must be {REWARD!r}, got {invalid[0]!r}" if invalid else ""

    def files(self, task: Task) -> tuple[str, ...]:
        """Returns an empty tuple, because ids do not name files."""
        return ()

    def patterns(self, task: Task) -> tuple[str, ...]:
        """Returns the pattern of the hidden tests' folder."""
        return (f"./{TESTS}/*",)

    def _prepare(self, sandbox: Sandbox, task: Task) -> None:
        """Moves the hidden tests to ``/tests``."""
        result = sandbox.run(_COPY_TESTS)
        if not result.ok:
            raise GradingError(f"the tests cannot be copied to /tests: {last_line(result.output)}")

    def _read(self, sandbox: Sandbox, task: Task, result: ExecResult) -> TestRun:
        """Returns the run of ``reward``; sets ``is_lost`` if a killed script wrote no reward."""
        reward = _reward(sandbox)
        if reward is None and result.exit_code >= _KILLED:
            return TestRun(is_lost=True)
        end = f"exit code {result.exit_code}: {last_line(result.output, 'no output')}"
        run = TestRun(ended=True)
        if reward is None:
            run.add(REWARD, TestStatus.MISSING, f"the script wrote no reward: {end}")
        elif reward >= 1:
            run.add(REWARD, TestStatus.PASSED)
        else:
            run.add(REWARD, TestStatus.FAILED, f"the reward is {reward:g}: {end}")
        return run


def _reward(sandbox: Sandbox) -> float | None:
    """Returns the reward named ``reward``, else the lowest reward; None without valid reward."""
    for path in _REWARD_FILES:
        with suppress(OSError, ValueError, TypeError, OverflowError, RecursionError):
            data = json.loads(sandbox.read_file(path, max_bytes=_MAX_REWARD_BYTES))
            if isinstance(data, dict):
                data = data[REWARD] if REWARD in data else min(data.values())
            reward = float(data)
            return reward if math.isfinite(reward) else None
    return None
