"""What a synthesis has done so far."""

from dataclasses import dataclass, field

from coding_gym.task import Task


@dataclass
class Progress:
    """What has happened so far.

    Attributes:
        num_sites: Places that can be broken; of a history, commits that change code and tests.
        num_tried: Broken programs, or commits, that were run.
        num_found: Of those, programs that tests find.
        num_left_out: Bugs that were found but make no task: duplicates, too plain, not to be told.
        num_invalid: Tasks that the grader did not confirm.
        tasks: The tasks, in the order of the result.
        num_commits: All commits of the history, where tasks are made of one.
        num_failed: Commits whose environment or tests could not be run.
        failure: Why the last of these could not.
    """

    num_sites: int = 0
    num_tried: int = 0
    num_found: int = 0
    num_left_out: int = 0
    num_invalid: int = 0
    tasks: list[Task] = field(default_factory=list)
    num_commits: int = 0
    num_failed: int = 0
    failure: str = ""
