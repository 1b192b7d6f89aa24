"""Output of commands: plain text, without sequences that control a terminal."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import MofNCompleteColumn, Progress
from rich.segment import Segment

INTERRUPTED = 130
"""The exit code after Ctrl-C, by the convention of shells."""


def terminal(*, stderr: bool = False) -> Console:
    """Returns a console for untrusted texts of tasks, programs and policies.

    It interprets no markup and no emoji codes, and wraps no lines. Spaces replace control
    characters (except line feeds and tabs) and characters that change the direction of writing.
    """
    return _Terminal(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)


class LineProgress(Progress):
    """Prints a line for each finished item, above a progress bar if the output is a terminal."""

    def __init__(self, console: Console, total: int = 0, num_done: int = 0) -> None:
        super().__init__(
            MofNCompleteColumn(),
            *Progress.get_default_columns(),
            console=console,
            transient=True,
            disable=not console.is_terminal,  # else it prints an empty line
            speed_estimate_period=600.0,  # seconds; items may take minutes
        )
        self.bar = self.add_task("", total=total, completed=num_done)

    def count(self, line: str, description: str = "") -> None:
        """Prints a line for a finished item, and displays the description next to the bar."""
        self.update(self.bar, advance=1, description=description)
        at = f"{self.tasks[0].completed:.0f}/{self.tasks[0].total:.0f} "
        self.console.print(line if self.console.is_terminal else at + line)


class _Terminal(Console):
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Replaces unprintable characters, except in the control segments of rich."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=_printable(segment.text))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in text)
