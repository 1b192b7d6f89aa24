"""Types of the fixtures of tests of workspaces."""

from collections.abc import Callable

from coding_gym.errors import CodingGymError
from coding_gym.task import Task

Refused = Callable[[Task], CodingGymError]
