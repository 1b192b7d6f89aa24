"""What the grader asks of a test runner."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from coding_gym.grading.report import Run
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task


class Runner(Protocol):
    """Runs hidden tests in a grading sandbox and says how each of them ended.

    A runner holds no state; one object serves all tasks and threads.

    Attributes:
        name: What ``Task.runner`` calls it.
    """

    name: str

    def problem(self, task: Task) -> str:
        """Returns why this runner cannot run the task's expected tests, or "" where it can."""
        ...

    def files(self, task: Task) -> tuple[str, ...]:
        """Returns the test files that hold the expected tests, sorted, as far as ids tell."""
        ...

    def patterns(self, task: Task) -> tuple[str, ...]:
        """Returns patterns of the files, beside `files`, that the run collects or is configured by.

        They are for `coding_gym.grading.selection.path_matcher`.
        """
        ...

    def run(self, sandbox: Sandbox, task: Task, paths: tuple[str, ...], *, timeout_s: float) -> Run:
        """Runs the tests; they and the patch are in the tree already.

        Statuses are by the ids that the task uses. Nothing that the code under test prints may
        turn a test that did not pass into one that did, as far as the runner can tell; what
        remains is described in ``docs/threat-model.md``.

        Args:
            sandbox: Where.
            task: The task.
            paths: The test files, from `files`; those that do not exist are skipped.
            timeout_s: After so many seconds the run is killed.

        Returns:
            What was reported.

        Raises:
            GradingError: The runner itself could not be started, such as a missing program.
            SandboxError: The sandbox died.
        """
        ...


@runtime_checkable
class Negatable(Protocol):
    """A runner that knows the Python functions of its tests, so that they can be negated."""

    def functions(self, task: Task, files: Mapping[str, bytes]) -> Mapping[str, tuple[str, ...]]:
        """Returns the test functions of expected tests, as ``FILE::CLASS::NAME``.

        Tests whose functions are not known are omitted; they are graded by structure alone.

        Args:
            task: The task.
            files: Content of `Runner.files` by path, with the hidden tests applied.
        """
        ...
