"""Records the tasks of a synthesis, and the bugs or commits that make no task."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from coding_gym.errors import (
    InfrastructureError,
    InvalidTaskError,
    PatchError,
    SandboxUnavailableError,
)
from coding_gym.task import Task


@dataclass
class Progress:
    """The results of a synthesis so far.

    Attributes:
        num_candidates: Number of possible bugs of the selected kinds, or of commits.
        tasks: The tasks, in the order of the result.
        dropped: Name and reason of each bug or commit that makes no task. The name of a bug is the
            task id, or path, line and kind; the name of a commit is its short hash and subject.
        on_change: Called with this object after every new task and every dropped bug or commit.
    """

    num_candidates: int = 0
    tasks: list[Task] = field(default_factory=list)
    dropped: list[tuple[str, str]] = field(default_factory=list)
    on_change: Callable[["Progress"], None] = field(default=lambda _: None, repr=False)

    def add(self, task: Task) -> None:
        """Records a task."""
        self.tasks.append(task)
        self.on_change(self)

    @contextmanager
    def dropping(self, name: str) -> Iterator[None]:
        """Records a failure of the block as the reason for dropping a bug or commit.

        Raises:
            SandboxUnavailableError: This machine cannot run the backend.
        """
        try:
            yield
        except SandboxUnavailableError:
            raise  # every other bug or commit would raise the same error
        except (InfrastructureError, InvalidTaskError, PatchError) as error:
            self.dropped.append((name, str(error)))
            self.on_change(self)
