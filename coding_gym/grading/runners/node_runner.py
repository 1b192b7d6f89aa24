"""Node's own test runner, read by a program of ours that starts it.

Tasks with ``runner = "node"`` name tests ``FILE::NAME``, or ``FILE::OUTER > INNER`` for tests
inside ``describe`` and for subtests. ``test_command`` may hold options for the node that runs the
tests, as ``NODE_OPTIONS`` takes them. It needs Node 18.9 or newer, as ``node`` in PATH.

Each file runs in a process of its own, which reports over its standard output to Node's runner in
another process. That one alone knows the secret of the run.
"""

import secrets
from collections.abc import Mapping
from importlib import resources
from random import Random

from coding_gym.errors import GradingError, last_line
from coding_gym.grading.report import RunReport
from coding_gym.grading.runners.commands import run_command
from coding_gym.grading.runners.frames import read_frames
from coding_gym.grading.runners.javascript_source import JAVASCRIPT
from coding_gym.grading.runners.known_tests import NODE_CONFIGS, NODE_PATTERNS
from coding_gym.grading.runners.protocol import Planted
from coding_gym.grading.runners.source_canaries import plant_copies
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task


class NodeRunner:
    """Runs the files of the expected tests with ``node:test``."""

    name = "node"
    root_files: tuple[str, ...] = ()
    config_names = NODE_CONFIGS

    def problem(self, task: Task) -> str:
        """Returns the first expected test that names no file, or ""."""
        for test in task.expected_tests:
            path, _, name = test.partition("::")
            if not path or not name or "\n" in path:
                return f"expected test {test!r} is not FILE::NAME"
        return ""

    def files(self, task: Task) -> tuple[str, ...]:
        """Returns what stands before the first ``::`` of the ids."""
        return tuple(sorted({test.partition("::")[0] for test in task.expected_tests}))

    def patterns(self, configs: Mapping[str, str]) -> tuple[str, ...]:  # noqa: ARG002 — the contract
        """Returns the names that Node takes for tests."""
        return NODE_PATTERNS

    def plant(
        self, files: Mapping[str, bytes], task: Task, rng: Random, *, avoid: frozenset[str]
    ) -> Planted:
        """Copies some of the tests; see `coding_gym.grading.runners.source_canaries`."""
        return plant_copies(JAVASCRIPT, files, task, rng, avoid=avoid)

    def run(
        self, sandbox: Sandbox, task: Task, paths: tuple[str, ...], *, timeout_s: float
    ) -> RunReport | None:
        """Runs the files in order.

        Raises:
            GradingError: Node is missing or too old.
        """
        program = f"{sandbox.path('/tmp')}/{secrets.token_hex(8)}.mjs"  # noqa: S108 — as it is inside
        sandbox.write_file(program, _program())
        nonce = secrets.token_hex(16)
        told = "\n".join([nonce, " ".join(task.test_command.split()), *paths, ""])
        run = run_command(sandbox, f"exec node {program}", timeout_s=timeout_s, stdin=told.encode())
        report = read_frames(run, nonce)
        if not (report.ready or report.timed_out):
            said = last_line(run.output, f"exit code {run.exit_code}")
            raise GradingError(
                f"task {task.task_id}: node could not be started: {said}; "
                "it needs Node 18.9 or newer, for example from `apt-get install nodejs`"
            )
        return report


def _program() -> bytes:
    folder = resources.files("coding_gym.grading.runners")
    return folder.joinpath("inside/run_tests.mjs").read_bytes()
