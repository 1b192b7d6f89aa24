"""The progress of a synthesis."""

from dataclasses import dataclass, field

from coding_gym.task import Task


@dataclass
class Progress:
    """The results of a synthesis so far.

    Attributes:
        num_candidates: Bugs that the operators can make, or commits of the history.
        tasks: The tasks, in the order of the result.
        dropped: Bugs or commits that make no task, each with the reason. A bug has the name of its
            task, or its file, line and kind; a commit has its short hash and its subject.
    """

    num_candidates: int = 0
    tasks: list[Task] = field(default_factory=list)
    dropped: list[tuple[str, str]] = field(default_factory=list)
