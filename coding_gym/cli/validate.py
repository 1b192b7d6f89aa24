"""``coding-gym validate``: can these tasks be trusted?"""

import json
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.tasks import load_tasks
from coding_gym.tasks.validation import ValidationReport
from coding_gym.tasks.validation import validate as validate_tasks


def validate(
    source: Annotated[
        str, typer.Argument(help="'bundled', or a path to rows or task folders.")
    ] = "bundled",
    task: Annotated[
        list[str] | None, typer.Option("--task", "-t", help="Only this task; may be repeated.")
    ] = None,
    repositories: options.Repositories = None,
    environments: options.Environments = None,
    limit: options.Limit = None,
    repeats: Annotated[int, typer.Option(min=1, help="Gradings of each patch.")] = 2,
    workers: options.Workers = None,
    sandbox: options.Sandbox = "auto",
    report: Annotated[
        Path | None, typer.Option("--report", "-o", help="Write the reports to this JSONL file.")
    ] = None,
) -> None:
    """Check that gold patches resolve their tasks and that unrepaired trees do not."""
    tasks = load_tasks(
        source,
        task_ids=task or None,
        limit=limit,
        repositories=repositories,
        environments=environments,
    )
    options.check_writable(report)
    console = terminal()
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("tasks", total=len(tasks))

        def show(result: ValidationReport) -> None:
            progress.console.print(_line(result))
            progress.advance(bar)

        reports = validate_tasks(
            tasks,
            sandbox=options.parse_sandbox(sandbox),
            repeats=repeats,
            num_workers=workers or os.cpu_count() or 1,
            on_result=show,
        )
    if report is not None:
        lines = (json.dumps(r.to_json()) + "\n" for r in reports)
        report.write_text("".join(lines), encoding="utf-8")
    valid = sum(r.ok for r in reports)
    console.print(f"valid {valid}/{len(reports)}")
    if valid < len(reports):
        raise typer.Exit(1)


def _line(report: ValidationReport) -> str:
    mark = "✔" if report.ok else "✘"
    gold, noop = (
        f"{sum(times) / len(times):.2f} s" if times else "-"
        for times in (report.gold_durations_s, report.noop_durations_s)
    )
    told = report.error or report.detail
    line = (
        f"{mark} {report.task_id:<36} template {report.template_s:5.2f} s  gold {gold}  base {noop}"
    )
    return f"{line}  {told}" if told else line
