"""``coding-gym doctor``: tests the sandboxes on this machine."""

import typer
from rich.table import Column, Table
from rich.text import Text

from coding_gym.cli.console import terminal
from coding_gym.sandbox.select import probe_backends


def doctor() -> None:
    """Print which sandboxes work on this machine, and for the others the reason and a remedy."""
    probes, automatic = probe_backends()
    console = terminal()
    if automatic:
        console.print(f"ready: sandbox 'auto' selects {automatic!r}", style="bold green")
    else:
        console.print("not ready: no isolating sandbox works on this machine", style="bold red")
    table = Table(Column("backend", no_wrap=True), "works", Column("detail", ratio=1), box=None)
    for name, probe in probes.items():
        mark = "[green]yes" if probe.available else "[red]no"
        table.add_row(name, Text.from_markup(mark), Text(probe.detail))
    console.print()
    console.print(table)
    for name, probe in probes.items():
        if probe.remedy:
            console.print(f"\n{name}: remedy: {probe.remedy}")
        if probe.available and probe.missing:
            console.print(f"\n{name} does not support: {'; '.join(probe.missing)}")
    if not automatic:
        raise typer.Exit(1)
