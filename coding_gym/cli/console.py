"""Where commands print: plain text, exactly as it is."""

from rich.console import Console


def terminal(*, stderr: bool = False) -> Console:
    """Returns a console that changes nothing: no markup, no emoji codes, no wrapping."""
    return Console(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)
