"""A grading sandbox opened while its episode still runs, so that its tests start at once."""

import os
import threading

from coding_gym.errors import MachineryError
from coding_gym.grading.grading_files import roomier
from coding_gym.grading.runners import get_runner
from coding_gym.grading.runners.protocol import Preparing
from coding_gym.sandbox import get_backend, open_sandbox
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task
from coding_gym.workspace import Template

# How many may wait in one process; each holds an idle Python of some 30 MB.
_MAX_WAITING = 16
_slots = threading.Semaphore(_MAX_WAITING)


def _free_slots() -> None:
    global _slots
    _slots = threading.Semaphore(_MAX_WAITING)


# What a parent keeps waiting is not its child's.
os.register_at_fork(after_in_child=_free_slots)


class WarmStart:
    """A sandbox with the base tree of a task, in which the test framework is imported and waits.

    It has seen nothing of the episode, and one run uses it up. Where it cannot be had, or dies
    before, the grade opens a sandbox of its own, with the same result.

    Args:
        slots: Where one was taken, to be given back.
    """

    def __init__(self, slots: threading.Semaphore) -> None:
        self._slots = slots
        self._pid = os.getpid()
        self._sandbox: Sandbox | None = None
        self._is_over = False

    def open(self, runner: Preparing, task: Task, template: Template, backend: str) -> None:
        """Opens the sandbox and starts in it what can be started.

        Raises:
            SandboxError: The machinery failed.
        """
        self._sandbox = open_sandbox(roomier(template.spec), backend=backend)
        runner.prepare(self._sandbox, task)

    def take(self) -> Sandbox | None:
        """Hands the sandbox over, once; None afterwards, and in a forked child."""
        if self._is_over or self._pid != os.getpid():
            return None
        self._is_over = True
        self._slots.release()
        return self._sandbox

    def close(self) -> None:
        """Frees the sandbox, where nobody took it; idempotent."""
        sandbox = self.take()
        if sandbox is not None:
            sandbox.close()


def start_ahead(task: Task, template: Template, *, backend: str = "auto") -> WarmStart | None:
    """Opens what the grade of an episode will need, and returns at once; it warms up by itself.

    None where that gains nothing (runners that only start programs, backends that start nothing
    ahead), where an environment brings a pytest of its own, which may import the project before it
    is repaired, where as many wait already in this process, or where it fails: the grade says why.

    Args:
        task: The task.
        template: Its template.
        backend: Name of the sandbox backend.
    """
    runner = get_runner(task.runner)
    if not isinstance(runner, Preparing) or not runner.can_prepare(task):
        return None
    if not get_backend(backend).prepares:
        return None
    if not _slots.acquire(blocking=False):
        return None
    warm = WarmStart(_slots)
    try:
        warm.open(runner, task, template, backend)
    except MachineryError:
        warm.close()
        return None
    except BaseException:
        warm.close()
        raise
    return warm
