"""Test runners, by the names that tasks give them."""

from coding_gym.arguments import unknown_name
from coding_gym.grading.runners.command_runner import CommandRunner
from coding_gym.grading.runners.java_runner import JavaRunner
from coding_gym.grading.runners.node_runner import NodeRunner
from coding_gym.grading.runners.protocol import Runner
from coding_gym.grading.runners.pytest_runner import PytestRunner
from coding_gym.grading.runners.swebench_runner import SweBenchRunner
from coding_gym.grading.runners.text_runners import TEXT_RUNNERS
from coding_gym.grading.runners.unittest_runner import UnittestRunner

_RUNNERS: dict[str, Runner] = {
    runner.name: runner
    for runner in (
        PytestRunner(),
        UnittestRunner("unittest"),
        UnittestRunner("django"),
        JavaRunner(),
        NodeRunner(),
        CommandRunner(),
        SweBenchRunner(),
        *TEXT_RUNNERS,
    )
}
RUNNER_NAMES = tuple(_RUNNERS)


def get_runner(name: str) -> Runner:
    """Returns a runner.

    Raises:
        UnknownNameError: There is none of that name.
    """
    if name not in _RUNNERS:
        raise unknown_name("test runner", name, _RUNNERS)
    return _RUNNERS[name]


__all__ = ["RUNNER_NAMES", "Runner", "get_runner"]
