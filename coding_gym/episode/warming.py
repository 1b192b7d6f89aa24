"""The grade's head start: what grading will need, begun while the policy thinks."""

from coding_gym.grading import WarmStart, start_ahead
from coding_gym.task import Task
from coding_gym.workspace import Template


class Warming:
    """At most one warm start of an episode; `end` may come from another thread at any moment."""

    def __init__(self) -> None:
        self._start: WarmStart | None = None
        self._was_begun = False
        self._is_over = False

    def begin(self, task: Task, template: Template, backend: str) -> None:
        """Begins once, however often it is called."""
        if self._was_begun:
            return
        self._was_begun = True
        self._start = start_ahead(task, template, backend=backend)
        if self._is_over:
            self.end()

    @property
    def start(self) -> WarmStart | None:
        """What was begun, for the grade; None where nothing was."""
        return self._start

    def end(self) -> None:
        """Frees what is left of it; idempotent."""
        self._is_over = True
        start, self._start = self._start, None
        if start is not None:
            start.close()
