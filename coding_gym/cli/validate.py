"""``coding-gym validate``: checks that tasks grade patches correctly."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from coding_gym.cli import options
from coding_gym.cli.console import INTERRUPTED, LineProgress, terminal
from coding_gym.grade import levels_text
from coding_gym.tasks import load_tasks
from coding_gym.tasks.cheats import CheatResult
from coding_gym.tasks.validation import Checks, ValidationReport
from coding_gym.tasks.validation_file import validate_into, write_exclusions


def validate(
    source: Annotated[
        str, typer.Argument(help="'bundled', 'polyglot', a path, or a dataset's owner/name.")
    ] = "bundled",
    task: options.TaskIds = None,
    split: options.Split = None,
    repositories: options.Repositories = None,
    environments: options.Environments = None,
    num_tasks: options.NumTasks = None,
    repeats: Annotated[int, typer.Option(min=1, help="Number of times to grade each patch.")] = 2,
    concurrency: options.TasksPerCore = options.NUM_CORES,
    sandbox: options.Sandbox = "auto",
    leaks: Annotated[
        bool, typer.Option(help="Search the sandbox for files that contain the gold patch's code.")
    ] = True,
    cheats: Annotated[
        bool, typer.Option("--cheats", help="Also grade scripted cheats of eight kinds.")
    ] = False,
    min_challenge: Annotated[
        int, typer.Option(min=0, help="Minimum challenge: bits that a forged grade must guess.")
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Append reports to this JSONL file; skip tasks in it."),
    ] = None,
    exclude: Annotated[
        Path | None, typer.Option(help="Write unfit tests to this JSONL file, for --environments.")
    ] = None,
) -> None:
    """Check that gold patches resolve their tasks and that unrepaired trees do not.

    The same command with the same --out continues an interrupted validation.

    Example: coding-gym validate rows.jsonl --environments swebench --out report.jsonl
    """
    tasks = load_tasks(
        **options.task_source(source, repositories, environments, split, task, num_tasks)
    )
    if exclude is not None:
        exclude.touch()  # an unwritable path raises before the validation
    checks = Checks(
        sandbox=options.parse_sandbox(sandbox),
        repeats=repeats,
        looks_for_leaks=leaks,
        tries_cheats=cheats,
        min_challenge=min_challenge,
    )
    reports: dict[str, ValidationReport] = {}
    try:
        with LineProgress(terminal(), len(tasks)) as progress:
            for report in validate_into(out, tasks, checks=checks, num_workers=concurrency):
                reports[report.task_id] = report
                progress.count(report_line(report))
    except KeyboardInterrupt:
        saved = f"{len(reports)} reports are in {out}" if out else "no report is saved"
        remedy = "run the same command" if out else "run with --out FILE"
        terminal().print(f"interrupted; {saved}; to continue, {remedy}")
        raise typer.Exit(INTERRUPTED) from None
    if exclude is not None:
        write_exclusions(exclude, tasks, reports.values())
    results = [reports[item.task_id] for item in tasks]
    print_summary(results)
    if not all(report.ok or report.skipped for report in results):
        raise typer.Exit(1)


def print_summary(reports: Iterable[ValidationReport]) -> None:
    """Prints the number of tests per `Level`, the problems, and the number of valid tasks."""
    reports, console = [*reports], terminal()
    if levels := sum((Counter(report.levels) for report in reports), Counter[str]()):
        console.print(f"negation of fail-to-pass tests (structure: none): {levels_text(levels)}")
    for report in reports:
        if not (report.ok or report.skipped):
            console.print(f"{report.task_id}  {report.error or report.detail}")
    num_valid, num_skipped = sum(r.ok for r in reports), sum(bool(r.skipped) for r in reports)
    if cheats := [cheat for report in reports for cheat in report.cheats]:
        console.print(_cheats_table(cheats))
    ending = f", {num_skipped} skipped" if num_skipped else ""
    console.print(f"valid {num_valid}/{len(reports) - num_skipped}{ending}")


def _cheats_table(cheats: Iterable[CheatResult]) -> Table:
    """Returns a table: the number of passed tasks for each kind of cheat and grading method."""
    table = Table("cheat that passes", box=None)
    for column in ("tasks", "by exit code", "by structure", "challenged"):
        table.add_column(column, justify="right")
    by_kind: dict[str, list[CheatResult]] = {}
    for cheat in cheats:
        by_kind.setdefault(cheat.kind, []).append(cheat)
    for kind, results in by_kind.items():
        passes = [(cheat.by_exit_code, cheat.by_structure, cheat.by_challenge) for cheat in results]
        table.add_row(kind, *map(str, (len(results), *map(sum, zip(*passes, strict=True)))))
    return table


def report_line(report: ValidationReport) -> str:
    """Returns a report as one line."""
    if report.skipped:
        return f"- {report.task_id:<36} skipped: {report.skipped}"
    name = f"{'✔' if report.ok else '✘'} {report.task_id:<36}"
    challenge = f"{levels_text(report.levels)} · bits {report.bits}" if report.levels else ""
    parts = name, challenge, report.error or report.detail
    return "  ".join(filter(None, parts))
