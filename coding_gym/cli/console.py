"""Output of commands: consoles for untrusted texts, and progress bars."""

import time
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import MofNCompleteColumn, Progress, TaskID
from rich.segment import Segment

INTERRUPTED = 130
"""The exit code after Ctrl-C: 128 plus the number of SIGINT, as in shells."""
INTERVAL_S = 30.0
"""Minimum time between two progress lines in a file while no item finishes."""


def terminal(*, stderr: bool = False) -> Console:
    """Returns a console that prints untrusted texts of tasks, programs and policies.

    The console prints markup and emoji codes literally and wraps no lines. Spaces replace control
    characters (except line feeds and tabs) and characters that change the direction of writing.
    """
    return _Terminal(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)


class LineProgress(Progress):
    """Prints a line for each finished item, above a progress bar if the output is a terminal.

    If the output is a file, `update` also prints a line, at most one per `INTERVAL_S` seconds.
    """

    def __init__(self, console: Console, total: int = 0, num_done: int = 0) -> None:
        super().__init__(
            MofNCompleteColumn(),
            *Progress.get_default_columns(),
            console=console,
            transient=True,
            disable=not console.is_terminal,  # a bar adds an empty line to a file
            speed_estimate_period=600.0,  # in seconds; one item can take minutes
        )
        self._printed_at = time.monotonic()
        self.bar = self.add_task("", total=total, completed=num_done)

    def count(self, line: str, description: str = "") -> None:
        """Prints a line for a finished item, and displays the description next to the bar."""
        super().update(self.bar, advance=1, description=description)
        self._print(line)

    def update(self, task_id: TaskID, **fields: Any) -> None:
        """Changes the bar; the arguments are those of rich's ``Progress.update``."""
        super().update(task_id, **fields)
        is_due = time.monotonic() - self._printed_at >= INTERVAL_S
        if is_due and not self.console.is_terminal:
            self._print(self.tasks[0].description)

    def _print(self, line: str) -> None:
        self._printed_at = time.monotonic()
        position = f"{self.tasks[0].completed:.0f}/{self.tasks[0].total:.0f} "
        self.console.print(line if self.console.is_terminal else position + line)


class _Terminal(Console):
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yields segments; spaces replace unprintable characters except in control segments."""
        for segment in super().render(renderable, options):
            text = "".join(c if c.isprintable() or c in "\n\t" else " " for c in segment.text)
            yield segment if segment.control else segment._replace(text=text)
