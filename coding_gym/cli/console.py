"""Where commands print: plain text, as it is but for what would steer a terminal."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment


def terminal(*, stderr: bool = False) -> Console:
    """Returns a console that prints texts of tasks, programs and policies without obeying them.

    No markup, no emoji codes, no wrapping. Characters that move the cursor, colour what follows,
    or turn the direction of writing become blanks; line feeds and tabs stay.
    """
    return _Terminal(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)


class _Terminal(Console):
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Renders as always; what is no control of rich's own is made printable."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=_printable(segment.text))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in text)
