"""Node's own test runner, read by a program of ours that starts it.

Tasks with ``runner = "node"`` name tests ``FILE::NAME``, or ``FILE::OUTER > INNER`` for tests
inside ``describe`` and for subtests. ``test_command`` may hold options for the node that runs the
tests, as ``NODE_OPTIONS`` takes them. It needs Node 18.9 or newer, as ``node`` in PATH.

Each file runs in a process of its own, which reports over its standard output to Node's runner in
another process. That one alone knows the secret of the run. What ``node:assert`` and ``node:test``
export is read-only in the processes of the tests.
"""

import secrets
from importlib import resources

from coding_gym.errors import GradingError, last_line
from coding_gym.grading.report import RunReport
from coding_gym.grading.runners.commands import run_command
from coding_gym.grading.runners.frames import read_frames
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task


class NodeRunner:
    """Runs the files of the expected tests with ``node:test``."""

    name = "node"

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

    def patterns(self, task: Task) -> tuple[str, ...]:  # noqa: ARG002 — the contract
        """Returns what node reads; it is given the files of the expected tests."""
        return ("./node.config.json",)

    def run(
        self, sandbox: Sandbox, task: Task, paths: tuple[str, ...], *, timeout_s: float
    ) -> RunReport | None:
        """Runs the files in order.

        Raises:
            GradingError: Node is missing or too old.
        """
        folder = f"{sandbox.path('/tmp')}/{secrets.token_hex(8)}"  # noqa: S108 — as it is inside
        program, guard = f"{folder}/run_tests.mjs", f"{folder}/guard.cjs"
        for path in (program, guard):
            sandbox.write_file(path, _program(path.rpartition("/")[2]))
        nonce = secrets.token_hex(16)
        options = " ".join([f"--require={guard}", *task.test_command.split()])
        told = "\n".join([nonce, options, *paths, ""])
        run = run_command(sandbox, f"exec node {program}", timeout_s=timeout_s, stdin=told.encode())
        report = read_frames(run, nonce)
        if not (report.ready or report.timed_out):
            said = last_line(run.output, f"exit code {run.exit_code}")
            raise GradingError(
                f"task {task.task_id}: node could not be started: {said}; "
                "it needs Node 18.9 or newer, for example from `apt-get install nodejs`"
            )
        return report


def _program(name: str) -> bytes:
    return resources.files("coding_gym.grading.runners").joinpath(f"inside/{name}").read_bytes()
