"""The progress of a synthesis."""

from dataclasses import dataclass, field

from coding_gym.task import Task


@dataclass
class Progress:
    """The results of a synthesis so far.

    Attributes:
        num_candidates: Number of bugs that the operators can make, or of commits in the history.
        tasks: The tasks, in the order of the result.
        dropped: Name and reason of each bug or commit that makes no task. The name of a bug is the
            task id, or path, line and kind; the name of a commit is its short hash and subject.
    """

    num_candidates: int = 0
    tasks: list[Task] = field(default_factory=list)
    dropped: list[tuple[str, str]] = field(default_factory=list)
