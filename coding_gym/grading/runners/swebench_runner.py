"""SWE-bench's way: a row's test command, and its log read as SWE-bench reads it."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from coding_gym.arguments import unknown_name
from coding_gym.errors import UnknownNameError
from coding_gym.grading.canaries import plant
from coding_gym.grading.formats.outcomes import Outcomes
from coding_gym.grading.formats.swebench import FORMAT_BY_REPO, FORMATS, PYTEST_FORMATS, read_log
from coding_gym.grading.pytest_config import CONFIG_FILES, collection_patterns
from coding_gym.grading.report import RunReport
from coding_gym.grading.runners.commands import CommandRun
from coding_gym.grading.runners.known_tests import ANY_CONFIGS, ANY_PATTERNS
from coding_gym.grading.runners.output_runner import OutputRunner
from coding_gym.grading.runners.protocol import Planted
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task


@dataclass(frozen=True, slots=True)
class _LogReader:
    """Reads what the command printed, in one of SWE-bench's formats."""

    format: str

    def problem(self, task: Task) -> str:  # noqa: ARG002 — the contract, here and below
        return ""

    def prepare(self, sandbox: Sandbox, task: Task) -> None:
        """There is nothing to remove."""

    def read(self, sandbox: Sandbox, task: Task, run: CommandRun) -> Outcomes:  # noqa: ARG002
        return read_log(run.output, self.format)


class SweBenchRunner:
    """Runs a row's test command and reads its log as SWE-bench does.

    ``test_report`` names the format; without it, it is that of the project in SWE-bench.
    """

    name = "swebench"
    root_files: tuple[str, ...] = CONFIG_FILES
    config_names = ANY_CONFIGS

    def problem(self, task: Task) -> str:
        """Returns what is wrong with the command or the format, or ""."""
        try:
            return _swebench(task).problem(task)
        except UnknownNameError as error:
            return f"field 'test_report': {error}"

    def files(self, task: Task) -> tuple[str, ...]:
        """Returns what stands before the first ``::`` of the ids, and the command's own program."""
        return _swebench(task).files(task)

    def patterns(self, configs: Mapping[str, str]) -> tuple[str, ...]:
        """Returns those of every language; a format is of several, and a log of any."""
        return (*ANY_PATTERNS, *collection_patterns(configs))

    def plant(
        self, files: Mapping[str, bytes], task: Task, rng: Random, *, avoid: frozenset[str]
    ) -> Planted:
        """Copies some of the tests, where the format is one of pytest's."""
        if _format(task) not in PYTEST_FORMATS:
            return (), {}
        return plant(files, task.fail_to_pass, task.pass_to_pass, rng, avoid=avoid)

    def run(
        self, sandbox: Sandbox, task: Task, paths: tuple[str, ...], *, timeout_s: float
    ) -> RunReport | None:
        """Runs the command.

        Raises:
            GradingError: The program that the command begins with is missing.
        """
        return _swebench(task).run(sandbox, task, paths, timeout_s=timeout_s)


def _format(task: Task) -> str:
    return task.test_report.strip() or FORMAT_BY_REPO.get(task.repo.lower(), "")


def _swebench(task: Task) -> OutputRunner:
    name = _format(task)
    if name not in FORMATS:
        raise unknown_name("log format", name, FORMATS)
    return OutputRunner(name="swebench", reader=_LogReader(name))
