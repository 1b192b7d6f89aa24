"""Node's own test runner, read by a program of ours that starts it.

Tasks with ``runner = "node"`` name tests ``FILE::NAME``, or ``FILE::OUTER > INNER`` for tests
inside ``describe`` and for subtests. ``test_command`` may hold options for the node that runs the
tests, as ``NODE_OPTIONS`` takes them. It needs Node 18.9 or newer, as ``node`` in PATH.

Each file runs in a process of its own, which reports over its standard output to Node's runner in
another process. That one alone knows the secret of the run. What ``node:assert`` and ``node:test``
export is read-only in the processes of the tests.
"""

from coding_gym.grading.report import RunReport
from coding_gym.grading.runners.commands import place_programs, run_reporter
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
        folder = place_programs(sandbox, "run_tests.mjs", "guard.cjs")
        options = " ".join([f"--require={folder}/guard.cjs", *task.test_command.split()])
        failure = (
            f"task {task.task_id}: node could not be started: {{}}; "
            "it needs Node 18.9 or newer, for example from `apt-get install nodejs`"
        )
        return run_reporter(
            sandbox,
            f"exec node {folder}/run_tests.mjs",
            [options, *paths],
            timeout_s=timeout_s,
            failure=failure,
        )
