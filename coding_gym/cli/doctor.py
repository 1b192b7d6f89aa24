"""``coding-gym doctor``: what this machine can run."""

import typer

from coding_gym.cli.console import terminal
from coding_gym.sandbox.doctor import diagnose


def doctor() -> None:
    """Say which sandboxes work on this machine, why not the others, and how to change that."""
    console = terminal()
    usable = False
    for name, probe in diagnose():
        mark, style = ("works", "green") if probe.available else ("does not work", "red")
        console.print(f"{name}: {mark} - {probe.detail}", style=style)
        if probe.remedy:
            console.print(f"    to mend it: {probe.remedy}")
        if probe.missing:
            console.print(f"    not covered: {', '.join(probe.missing)}")
        usable |= probe.available and name != "process"
    if not usable:
        raise typer.Exit(1)
