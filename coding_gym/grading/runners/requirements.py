"""Whether this machine has what a task's tests are run with."""

from pathlib import Path

from coding_gym.grading.runners.java_runner import SYSTEM_JARS, JavaRunner
from coding_gym.host.toolchains import find_toolchain
from coding_gym.task import Task


def missing_runtime(task: Task) -> str:
    """Returns why the machine cannot run a task, with what installs it, or "" where it can.

    A task in an image, or with install commands, brings its own along; it is told when it is built.
    """
    if task.is_in_image or task.install_commands:
        return ""
    missing = find_toolchain(task.language).missing
    needs_junit = task.runner == JavaRunner.name and not task.test_command.strip()
    if not missing and needs_junit and not any(Path(jar).exists() for jar in SYSTEM_JARS):
        return "java needs JUnit 4, which this machine does not have; `apt-get install junit4`"
    return missing
