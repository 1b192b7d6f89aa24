"""Output of commands: plain text, without sequences that control a terminal."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import MofNCompleteColumn, Progress
from rich.segment import Segment

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended, as shells have it."""

_SPEED_PERIOD_S = 600.0


def terminal(*, stderr: bool = False) -> Console:
    """Returns a console that prints texts of tasks, programs and policies without obeying them.

    No markup, no emoji codes, no wrapping. Characters that move the cursor, colour what follows,
    or turn the direction of writing become blanks; line feeds and tabs stay.
    """
    return _Terminal(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)


class LineProgress(Progress):
    """A line for each piece of work that is done, above a bar where the output is a terminal."""

    def __init__(self, console: Console, total: int = 0, num_done: int = 0) -> None:
        super().__init__(
            MofNCompleteColumn(),
            *Progress.get_default_columns(),
            console=console,
            transient=True,
            disable=not console.is_terminal,  # else it prints an empty line
            speed_estimate_period=_SPEED_PERIOD_S,
        )
        self.bar = self.add_task("", total=total, completed=num_done)

    def count(self, line: str, description: str = "") -> None:
        """Prints what was done, and displays the description beside the bar."""
        self.update(self.bar, advance=1, description=description)
        at = f"{self.tasks[0].completed:.0f}/{self.tasks[0].total:.0f} "
        self.console.print(line if self.console.is_terminal else at + line)


class _Terminal(Console):
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Renders as always; what is no control of rich's own is made printable."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=_printable(segment.text))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in text)
