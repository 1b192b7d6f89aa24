"""``coding-gym doctor``: the sandboxes that work on this machine."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from coding_gym.cli.console import terminal
from coding_gym.sandbox.doctor import Report, apparmor_profile, examine


def doctor(
    concurrency: Annotated[
        int,
        typer.Option(
            "--concurrency", "-c", min=1, help="Check that so many sandboxes can be open at a time."
        ),
    ] = 64,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Say which sandboxes work on this machine, why not the others, and how to change that."""
    report = examine(num_episodes=concurrency)
    console = terminal()
    if as_json:
        console.print(json.dumps(report.to_json(), indent=2))
    else:
        _show(report, console)
    if not report.automatic:
        raise typer.Exit(1)


def _show(report: Report, console: Console) -> None:
    if report.automatic:
        console.print(f"ready: 'auto' is the sandbox {report.automatic!r}", style="bold green")
    else:
        console.print("not ready: no sandbox that isolates works here", style="bold red")
    for shortage in report.shortages:
        console.print(shortage)
    table = Table(Column("backend", no_wrap=True), "works", Column("detail", ratio=1), box=None)
    for name, probe in report.probes.items():
        mark = "[green]yes" if probe.available else "[red]no"
        table.add_row(name, Text.from_markup(mark), Text(probe.detail))
    console.print()
    console.print(table)
    for name, probe in report.probes.items():
        if probe.remedy:
            console.print(f"\n{name}: remedy: {probe.remedy}")
            if name == "namespace" and (profile := apparmor_profile()):
                console.print(f"or, for this interpreter alone:\n{profile}")
        if probe.available and probe.missing:
            console.print(f"\n{name} does not keep: {'; '.join(probe.missing)}")
