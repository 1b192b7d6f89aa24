"""Runs the tests of a project in clean sandboxes, with or without bugs."""

import json
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coding_gym.errors import GradingError
from coding_gym.grade import TestStatus
from coding_gym.grading.report import TestRun
from coding_gym.grading.supervision import Modules, module_text, run_tests
from coding_gym.grading.tree import load_factor, spec_for_tests
from coding_gym.patch import Patch
from coding_gym.program_output import error_line
from coding_gym.sandbox import open_sandbox
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task, files_of_tests
from coding_gym.workspace import Template, apply_patch

# The main limit of a run is processor time, which does not depend on load. The wall-clock limit is
# for tests that wait forever, and grows with the load of the machine.
_WALL_PER_CPU, _MIN_WALL_S = 2.0, 4.0
# Additional runs of a test that uses randomness: a test that fails half of the time fails in all
# additional runs with probability 1/256.
NUM_CHANCES = 8
_INSIDE = "coding_gym.synthesis.inside"
_OBSERVER = ("failures", "observer")
_FAILED = (TestStatus.FAILED, TestStatus.ERROR)
_Hexadecimal = Annotated[str, Field(pattern=r"^[0-9a-f]+$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The settings of one run of tests.

    Attributes:
        paths: Pytest's arguments: test files and options. If empty: the files of ``tests``; without
            ``tests``, the project's configuration selects the files.
        patches: Patches to apply first.
        files: Content of files, by path, to write after the patches; the code can be broken.
        tests: Ids of the tests to run; None for all collected tests.
        reverse: Whether the tests run in reverse order.
        seed: Seed of the random generator that all tests share.
        cpu_s: Maximum processor seconds of the run.
        limit_s: Maximum processor seconds of one test; None for no limit.
        trace: Whether executed lines are recorded.
    """

    paths: tuple[str, ...] = ()
    patches: tuple[Patch, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    tests: Collection[str] | None = None
    reverse: bool = False
    seed: int = 0
    cpu_s: float
    limit_s: float | None = None
    trace: bool = False


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class ObservedFailure(_Strict):
    """The visible part of a failure; see ``inside/failures.py``."""

    kind: str
    message: str
    frames: list[tuple[str, int, str]]
    uses: list[tuple[str, str]]

    @property
    def summary(self) -> str:
        """Kind and message, as at the end of a traceback."""
        message = self.message.rstrip()
        return f"{self.kind}: {message}" if message else self.kind


class Observation(_Strict):
    """The output of ``inside/observer.py``; it is validated, as the project can forge it."""

    tests: list[tuple[str, str, int]]
    failures: dict[str, ObservedFailure]
    random: list[str]
    lines: dict[str, dict[int, _Hexadecimal]]
    imported: dict[str, list[int]]
    spawning: list[str]


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """One run of tests.

    Attributes:
        outcomes: The status of each test by id, in the order of the run.
        observation: Executed lines, failures and use of randomness of the tests.
        cpu_s: Processor seconds of the run.
        collect_error: The first error of the collection with its file, or the last line of pytest's
            output if no test ran; "" without an error.
    """

    outcomes: Mapping[str, TestStatus]
    observation: Observation = field(repr=False)
    cpu_s: float
    collect_error: str = ""

    @classmethod
    def of(cls, report: TestRun) -> "SuiteRun | None":
        """Converts a report; None if the report is incomplete, forged or malformed."""
        if not report.is_whole:
            return None
        try:
            observation = Observation.model_validate_json(json.dumps(report.observed))
        except (ValidationError, RecursionError):
            return None
        error = "" if report.statuses else error_line(report.tail, "")
        if report.uncollected:
            path = report.uncollected[0]
            error = f"{path}: {report.messages.get(path, '')}"
        return cls(report.statuses, observation, report.cpu_s, error)

    @property
    def failed(self) -> tuple[str, ...]:
        """Ids of the tests that failed, or whose set-up or tear-down failed."""
        return tuple(t for t, status in self.outcomes.items() if status in _FAILED)

    @property
    def passed(self) -> tuple[str, ...]:
        """Ids of the tests that passed."""
        return tuple(t for t, status in self.outcomes.items() if status is TestStatus.PASSED)


class Suite:
    """The tests of a project; each run has a new sandbox.

    Args:
        task: The task whose base is the project.
        template: The template of the task.
        backend: Name of the sandbox backend.

    Attributes:
        task: The task.
        spent_s: Processor seconds of all runs so far, as the supervisor reports them.
    """

    def __init__(self, task: Task, template: Template, backend: str) -> None:
        self.task, self.spent_s = task, 0.0
        self._spec, self._backend = spec_for_tests(task, template), backend

    def open(self) -> AbstractContextManager[Sandbox]:
        """Opens a sandbox with the project.

        Raises:
            SandboxError: The infrastructure failed.
        """
        return open_sandbox(self._spec, backend=self._backend)

    def run(self, attempt: Attempt) -> SuiteRun | None:
        """Runs tests once.

        Returns:
            The run; None if the run exceeded its time, ended its process, damaged its report or ran
            other tests; also None if `Attempt.files` cannot be written or prevent pytest's start.

        Raises:
            PatchError: A patch does not apply.
            GradingError: Pytest could not be started.
            SandboxError: The infrastructure failed.
        """
        with self.open() as sandbox:
            for patch in attempt.patches:
                apply_patch(sandbox, patch)
            try:
                for path, data in attempt.files.items():
                    sandbox.write_file(path, data)
                report = run_tests(
                    sandbox,
                    attempt.paths or files_of_tests(attempt.tests or ()),
                    attempt.tests,
                    has_own_pytest=self.task.has_own_pytest,
                    timeout_s=(_MIN_WALL_S + _WALL_PER_CPU * attempt.cpu_s) * load_factor(),
                    observer=_observer(),
                    observer_settings={
                        "reverse": attempt.reverse,
                        "seed": attempt.seed,
                        "cpu_s": attempt.cpu_s,
                        "limit_s": attempt.limit_s,
                        "trace": attempt.trace,
                    },
                )
                self.spent_s += report.cpu_s
                run = SuiteRun.of(report)
            except (GradingError, OSError):
                if attempt.files:
                    return None
                raise
        is_unrequested = run and attempt.tests is not None and set(run.outcomes) - {*attempt.tests}
        return None if is_unrequested else run

    def stable_run(self, attempt: Attempt) -> SuiteRun | None:
        """Runs tests, and again in reverse order if any test fails.

        An attempt is unstable if the outcomes of the two runs differ, or if failing tests that use
        randomness do not also fail in all `NUM_CHANCES` further runs. Every run has a fixed random
        seed, so results are reproducible.

        Returns:
            The first run; None as in `run`, or if the attempt is unstable. See `run` for errors.
        """
        run = self.run(attempt)
        if run is None or not run.failed:
            return run
        reverse_run = self.run(replace(attempt, seed=1, reverse=True))
        if reverse_run is None or reverse_run.outcomes != run.outcomes:
            return None
        random_tests = {test for test in run.failed if test in run.observation.random}
        for seed in range(2, 2 + NUM_CHANCES) if random_tests else ():
            repeated_run = self.run(replace(attempt, tests=random_tests, seed=seed))
            if repeated_run is None or set(repeated_run.failed) != random_tests:
                return None
        return run


@cache
def _observer() -> Modules:
    return tuple((name, module_text(name, _INSIDE)) for name in _OBSERVER)
