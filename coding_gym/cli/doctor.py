"""``coding-gym doctor``: tests the sandbox backends on this machine."""

import typer
from rich.table import Column, Table
from rich.text import Text

from coding_gym.cli.console import terminal
from coding_gym.sandbox.select import probe_backends


def doctor() -> None:
    """Test each sandbox backend on this machine; print a remedy for each that does not work."""
    probes, selected = probe_backends()
    console = terminal()
    if selected:
        console.print(f"ready: sandbox 'auto' selects {selected!r}", style="bold green")
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
    if not selected:
        raise typer.Exit(1)
