"""What those who wait for a build are told."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildStep:
    """One step of building an environment begins.

    Attributes:
        task_id: The task that wants the environment.
        step: Its number, from 1 on; 0 where another process, or thread, builds the environment and
            this one waits for it.
        num_steps: How many there are.
        command: What runs now; "" while waiting.
    """

    task_id: str
    step: int
    num_steps: int
    command: str = ""


OnBuildStep = Callable[[BuildStep], None]
