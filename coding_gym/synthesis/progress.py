"""The progress of a synthesis."""

from dataclasses import dataclass, field

from coding_gym.task import Task


@dataclass
class Progress:
    """Counts of a synthesis, and its tasks.

    Attributes:
        num_sites: Mutants of the project; for a history, commits that change code and tests.
        num_tried: Mutants or commits whose tests ran.
        num_found: Mutants or commits whose bugs tests detect.
        num_excluded: Detected bugs that make no task: duplicates, trivial bugs, and bugs without a
            visible symptom.
        num_invalid: Tasks that the grader did not confirm.
        tasks: The tasks, in the order of the result.
        num_commits: All commits of the history.
        num_failed: Commits whose environment or tests cannot be run, or whose failing tests give
            no issue.
        failure: The reason for the last of these commits, with its name.
    """

    num_sites: int = 0
    num_tried: int = 0
    num_found: int = 0
    num_excluded: int = 0
    num_invalid: int = 0
    tasks: list[Task] = field(default_factory=list)
    num_commits: int = 0
    num_failed: int = 0
    failure: str = ""
