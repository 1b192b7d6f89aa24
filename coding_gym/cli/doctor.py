"""``coding-gym doctor``: what this machine can run."""

import typer
from rich.console import Console
from rich.markup import escape

from coding_gym.sandbox.doctor import diagnose


def doctor() -> None:
    """Say which sandboxes work on this machine, why not the others, and how to change that."""
    console = Console(soft_wrap=True, highlight=False)
    usable = False
    for name, probe in diagnose():
        mark = "[green]works[/]" if probe.available else "[red]does not work[/]"
        console.print(f"[bold]{name}[/]: {mark} - {escape(probe.detail)}")
        if probe.remedy:
            console.print(f"    to mend it: {escape(probe.remedy)}")
        if probe.missing:
            console.print(f"    not covered: {escape(', '.join(probe.missing))}")
        usable |= probe.available and name != "process"
    if not usable:
        raise typer.Exit(1)
