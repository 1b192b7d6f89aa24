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


def validate(
    source: Annotated[
        str, typer.Argument(help="'bundled', 'polyglot', a path, or a dataset's owner/name.")
    ] = "bundled",
    task: options.TaskIds = None,
    split: options.Split = None,
    repositories: options.Repositories = None,
    environments: options.Environments = None,
    num_tasks: options.NumTasks = None,
    repeats: Annotated[int, typer.Option(min=1, help="How many times to grade each patch.")] = 2,
    concurrency: options.TasksPerCore = options.NUM_CORES,
    sandbox: options.Sandbox = "auto",
    leaks: Annotated[
        bool, typer.Option(help="Search the sandbox for files that contain the repair.")
    ] = True,
    cheats: Annotated[
        bool, typer.Option("--cheats", help="Also grade eight kinds of scripted cheats.")
    ] = False,
    min_challenge: Annotated[
        int, typer.Option(min=0, help="Minimum bits of a task's challenge.")
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Add each report to this JSONL file; skip tasks in it."),
    ] = None,
    exclude: Annotated[
        Path | None,
        typer.Option(help="Write flaky and broken tests to this file, for --environments."),
    ] = None,
) -> None:
    """Check that gold patches resolve their tasks and that unrepaired trees do not.

    With the same --out as before, the command continues where it stopped.

    Example: coding-gym validate rows.jsonl --environments swebench --out report.jsonl
    """
    wanted = options.task_source(source, repositories, environments, split, task, num_tasks)
    tasks = load_tasks(**wanted)
    if exclude is not None:
        exclude.touch()  # a path that cannot be written is an error now, not at the end
    checks = Checks(
        sandbox=options.parse_sandbox(sandbox),
        repeats=repeats,
        looks_for_leaks=leaks,
        tries_cheats=cheats,
        min_challenge=min_challenge,
    )
    reports = _read_reports(out, checks) if out else {}
    console = terminal()
    todo = [one for one in tasks if one.task_id not in reports]
    with LineProgress(console, len(tasks), len(tasks) - len(todo)) as progress:
        try:
            for result in validate_tasks(todo, checks=checks, num_workers=concurrency):
                progress.count(line_of(result))
                reports[result.task_id] = result
                if out:
                    with out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(result.to_json()) + "\n")
        except KeyboardInterrupt:
            kept = f"{len(reports)} reports are in {out}" if out else "no report is kept"
            way = "the same command" if out else "use --out FILE"
            console.print(f"interrupted; {kept}; to continue: {way}")
            raise typer.Exit(INTERRUPTED) from None
    results = [reports[one.task_id] for one in tasks]
    if exclude is not None:
        _write_exclusions(exclude, tasks, results)
    summarise(results)
    if not all(one.ok or one.skipped for one in results):
        raise typer.Exit(1)


def _read_reports(path: Path, checks: Checks) -> dict[str, ValidationReport]:
    """Returns the verdicts of earlier calls with the same checks, by task; creates a missing file.

    An incomplete last line, left by a killed process, is removed if all other lines are reports;
    these are kept, because they can take days to compute. A file of another kind is not changed.
    """
    reports: list[ValidationReport] = []
    with path.open("a+b") as file:
        file.seek(0)
        lines = file.readlines()
        is_cut = len(lines) > 1 and not lines[-1].endswith(b"\n")
        for number, line in enumerate(lines[:-1] if is_cut else lines, 1):
            try:
                reports += [ValidationReport.from_json(json.loads(line))] if line.strip() else []
            except (ValueError, RecursionError) as problem:
                raise InvalidArgumentError(
                    f"{path} line {number} is not a report of this command ({problem}); fix or "
                    "remove the line, or name a new file (--out)"
                ) from None
        if is_cut:
            file.truncate(file.tell() - len(lines[-1]))
    return {
        one.task_id: one
        for one in reports
        if one.checks == checks.to_json() and not (one.error or one.skipped)
    }


def _write_exclusions(
    path: Path, tasks: Iterable[Task], reports: Iterable[ValidationReport]
) -> None:
    unfit = {report.task_id: set(report.unfit_tests) for report in reports}
    entries = [
        {"instance_id": task.task_id, "excluded_tests": sorted(unfit[task.task_id])}
        for task in tasks
        if set(task.fail_to_pass) - unfit[task.task_id]  # at least one remains
    ]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")


def summarise(reports: Iterable[ValidationReport]) -> None:
    """Prints the levels of challenges, the problems of tasks, and the number of valid tasks."""
    reports, console = [*reports], terminal()
    if levels := sum((Counter(one.levels) for one in reports), Counter[str]()):
        console.print(f"fail-to-pass tests challenged at: {levels_text(levels)}")
    for one in reports:
        if not (one.ok or one.skipped):
            console.print(f"{one.task_id}  {one.error or one.detail}")
    num_valid, skipped = sum(r.ok for r in reports), sum(bool(r.skipped) for r in reports)
    if tried := [cheat for one in reports for cheat in one.cheats]:
        console.print(_cheats_table(tried))
    console.print(
        f"valid {num_valid}/{len(reports) - skipped}" + (f", {skipped} skipped" if skipped else "")
    )


def _cheats_table(cheats: Iterable[CheatResult]) -> Table:
    """Returns a table: for each kind of cheat, the number of tasks it passes per grading method."""
    table = Table("cheat that passes", box=None)
    for column in ("tasks", "by exit code", "by structure", "challenged"):
        table.add_column(column, justify="right")
    by_kind: dict[str, list[CheatResult]] = {}
    for cheat in cheats:
        by_kind.setdefault(cheat.kind, []).append(cheat)
    for kind, results in by_kind.items():
        passes = [(one.by_exit_code, one.by_structure, one.by_challenge) for one in results]
        table.add_row(kind, *map(str, (len(results), *map(sum, zip(*passes, strict=True)))))
    return table


def line_of(report: ValidationReport) -> str:
    """Returns the result of a task in one line."""
    if report.skipped:
        return f"- {report.task_id:<36} skipped: {report.skipped}"
    name = f"{'✔' if report.ok else '✘'} {report.task_id:<36}"
    parts = name, levels_text(report.levels), report.error or report.detail
    return "  ".join(filter(None, parts))
