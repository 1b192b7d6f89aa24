"""``coding-gym validate``: checks that tasks grade patches correctly."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from coding_gym.cli import options
from coding_gym.cli.console import INTERRUPTED, LineProgress, terminal
from coding_gym.errors import InvalidArgumentError
from coding_gym.grade import levels_text
from coding_gym.task import Task
from coding_gym.tasks import load_tasks
from coding_gym.tasks.cheats import CheatResult
from coding_gym.tasks.validation import Checks, ValidationReport
from coding_gym.tasks.validation import validate as validate_tasks

_START = b'{"task_id": '  # of every report


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
        int, typer.Option(min=0, help="Minimum size of a task's challenge in bits.")
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Append reports to this JSONL file; skip tasks in it."),
    ] = None,
    exclude: Annotated[
        Path | None,
        typer.Option(help="Write unfit tests to this JSONL file, for --environments."),
    ] = None,
) -> None:
    """Check that gold patches resolve their tasks and that unrepaired trees do not.

    If it is repeated with the same --out, the command continues an interrupted validation.

    Example: coding-gym validate rows.jsonl --environments swebench --out report.jsonl
    """
    arguments = options.task_source(source, repositories, environments, split, task, num_tasks)
    tasks = load_tasks(**arguments)
    if exclude is not None:
        exclude.touch()  # an unwritable path raises before the validation
    checks = Checks(
        sandbox=options.parse_sandbox(sandbox),
        repeats=repeats,
        looks_for_leaks=leaks,
        tries_cheats=cheats,
        min_challenge=min_challenge,
    )
    reports = _read_reports(out, checks) if out else {}
    console = terminal()
    pending = [item for item in tasks if item.task_id not in reports]
    with LineProgress(console, len(tasks), len(tasks) - len(pending)) as progress:
        try:
            for result in validate_tasks(pending, checks=checks, num_workers=concurrency):
                progress.count(line_of(result))
                reports[result.task_id] = result
                if out:
                    with out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(result.to_json()) + "\n")
        except KeyboardInterrupt:
            saved = f"{len(reports)} reports are in {out}" if out else "no report is saved"
            remedy = "run the same command" if out else "run with --out FILE"
            console.print(f"interrupted; {saved}; to continue, {remedy}")
            raise typer.Exit(INTERRUPTED) from None
    results = [reports[item.task_id] for item in tasks]
    if exclude is not None:
        _write_exclusions(exclude, tasks, results)
    summarise(results)
    if not all(report.ok or report.skipped for report in results):
        raise typer.Exit(1)


def _read_reports(path: Path, checks: Checks) -> dict[str, ValidationReport]:
    """Returns the reports of earlier calls with the same checks, by task id.

    Creates a missing file. If all other lines are reports, removes an incomplete last report, which
    a killed process wrote. Raises an InvalidArgumentError if a line is not a report.
    """
    reports: list[ValidationReport] = []
    with path.open("a+b") as file:
        file.seek(0)
        lines = file.readlines()
        last = lines[-1] if lines else b"\n"
        is_truncated = not last.endswith(b"\n") and _START.startswith(last[: len(_START)])
        for number, line in enumerate(lines[:-1] if is_truncated else lines, 1):
            try:
                reports += [ValidationReport.from_json(json.loads(line))] if line.strip() else []
            except (ValueError, RecursionError) as problem:
                raise InvalidArgumentError(
                    f"{path} line {number} must be a report of this command ({problem}); fix or "
                    "remove the line, or name a new file (--out)"
                ) from None
        if is_truncated:
            file.truncate(file.tell() - len(last))
    return {
        report.task_id: report
        for report in reports
        if report.checks == checks.to_json() and not (report.error or report.skipped)
    }


def _write_exclusions(
    path: Path, tasks: Iterable[Task], reports: Iterable[ValidationReport]
) -> None:
    unfit = {report.task_id: set(report.unfit_tests) for report in reports}
    entries = [
        {"instance_id": task.task_id, "excluded_tests": sorted(unfit[task.task_id])}
        for task in tasks
        if set(task.fail_to_pass) - unfit[task.task_id]  # else the task could not be loaded
    ]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")


def summarise(reports: Iterable[ValidationReport]) -> None:
    """Prints the challenge levels, the problems of tasks, and the number of valid tasks."""
    reports, console = [*reports], terminal()
    if levels := sum((Counter(report.levels) for report in reports), Counter[str]()):
        console.print(f"fail-to-pass tests challenged at: {levels_text(levels)}")
    for report in reports:
        if not (report.ok or report.skipped):
            console.print(f"{report.task_id}  {report.error or report.detail}")
    num_valid, num_skipped = sum(r.ok for r in reports), sum(bool(r.skipped) for r in reports)
    if cheats := [cheat for report in reports for cheat in report.cheats]:
        console.print(_cheats_table(cheats))
    ending = f", {num_skipped} skipped" if num_skipped else ""
    console.print(f"valid {num_valid}/{len(reports) - num_skipped}{ending}")


def _cheats_table(cheats: Iterable[CheatResult]) -> Table:
    """Returns a table of the number of tasks that each kind of cheat passes per grading method."""
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


def line_of(report: ValidationReport) -> str:
    """Returns a report as one line."""
    if report.skipped:
        return f"- {report.task_id:<36} skipped: {report.skipped}"
    name = f"{'✔' if report.ok else '✘'} {report.task_id:<36}"
    parts = name, levels_text(report.levels), report.error or report.detail
    return "  ".join(filter(None, parts))
