"""``coding-gym doctor``: the sandboxes that work on this machine."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from coding_gym.cli.console import terminal
from coding_gym.sandbox.doctor import Diagnosis, Report, examine
from coding_gym.sandbox.remedies import apparmor_profile


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
    console.print(f"cgroups: {report.cgroups}")
    for lack in report.shortages:
        console.print(
            f"{report.num_episodes} sandboxes at a time need {lack.needs} {lack.limit}, "
            f"allowed are {lack.has}: {lack.remedy}"
        )
    console.print()
    table = Table(Column("backend", no_wrap=True), "works", Column("detail", ratio=1), box=None)
    for one in report.backends:
        mark = "[green]yes" if one.works else "[red]no"
        table.add_row(one.name, Text.from_markup(mark), Text(one.failure or _summary(one)))
    console.print(table)
    for one in report.backends:
        if one.remedy:
            console.print(f"\n{one.name}: to fix it: {one.remedy}")
            if one.name == "namespace" and (profile := apparmor_profile()):
                console.print(f"or, for this interpreter alone:\n{profile}")
    for one in report.backends:
        if one.works and one.probe.missing:
            console.print(f"\n{one.name} does not keep: {'; '.join(one.probe.missing)}")


def _summary(one: Diagnosis) -> str:
    steps = f"; {len(one.steps)} steps went well" if one.steps else ""
    return f"{one.probe.detail}{steps}"
