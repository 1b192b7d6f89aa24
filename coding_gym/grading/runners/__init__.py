"""Test runners, by their names in the field ``runner`` of tasks."""

from pathlib import Path

from coding_gym.arguments import unknown_name
from coding_gym.grading.formats.cargo import read_cargo
from coding_gym.grading.formats.go_json import read_go
from coding_gym.grading.formats.tap import read_tap
from coding_gym.grading.runners.harbor_runner import HarborRunner
from coding_gym.grading.runners.output_runner import CommandRunner, JunitRunner, OutputRunner
from coding_gym.grading.runners.patterns import ANY, CARGO, GO, TEST_FOLDERS
from coding_gym.grading.runners.pytest_runner import PytestRunner
from coding_gym.grading.runners.swebench_runner import SweBenchRunner
from coding_gym.host.toolchains import find_toolchain
from coding_gym.task import Task

Runner = PytestRunner | OutputRunner
_TESTS = (*ANY, *TEST_FOLDERS)
_RUNNERS: dict[str, Runner] = {
    runner.name: runner
    for runner in (
        PytestRunner(),
        CommandRunner(name="command", names=_TESTS),
        SweBenchRunner(name="swebench", names=ANY),
        HarborRunner(name="harbor", default_command="/tests/test.sh"),
        OutputRunner(
            name="cargo",
            names=(*CARGO, *TEST_FOLDERS),
            parse=read_cargo,
            default_command="cargo test --offline --no-fail-fast",
            is_by_file=True,
        ),
        OutputRunner(
            name="go", names=GO, parse=read_go, default_command="go test -json -count=1 ./..."
        ),
        JunitRunner(name="junit", names=_TESTS),
        OutputRunner(name="tap", names=_TESTS, parse=read_tap),
    )
}
RUNNER_NAMES = tuple(_RUNNERS)
_JUNIT = Path("/usr/share/java/junit4.jar")


def get_runner(name: str) -> Runner:
    """Returns a runner.

    Raises:
        UnknownNameError: No runner has this name.
    """
    if name not in _RUNNERS:
        raise unknown_name("test runner", name, _RUNNERS)
    return _RUNNERS[name]


def missing_runtime(task: Task) -> str:
    """Returns the program that a task needs and this machine lacks, with the remedy, or "".

    For a task with an image or install commands the result is "": the build reports problems.
    """
    if task.is_in_image or task.install_commands:
        return ""
    program = find_toolchain(task.language).missing
    # JUnit 4 itself prints no TAP: tests of Java print it through a listener that JUnit calls.
    needs_junit = task.language == "java" and task.runner == "tap"
    if not program and needs_junit and not _JUNIT.exists():
        return "java needs JUnit 4, which this machine does not have; run: apt-get install junit4"
    return program


__all__ = ["RUNNER_NAMES", "get_runner", "missing_runtime"]
