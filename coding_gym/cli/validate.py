"""``coding-gym validate``: can these tasks be trusted?"""

import json
import os
import shlex
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.cli.verdicts import line_of, summarise
from coding_gym.errors import InvalidArgumentError
from coding_gym.tasks import load_tasks
from coding_gym.tasks.validation import validate as validate_tasks
from coding_gym.tasks.validation_report import Checks, ValidationReport

_INTERRUPTED = 130  # what shells say of a program that Ctrl-C ended


def validate(
    source: Annotated[
        str,
        typer.Argument(
            help="'bundled', 'polyglot', a path to rows or task folders, or a hub's owner/name."
        ),
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
    leaks: Annotated[
        bool, typer.Option(help="Look whether the repair can be read in the sandbox.")
    ] = True,
    report: Annotated[
        Path | None,
        typer.Option("--report", "-o", help="Write each report to this new JSONL file."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the verdicts that --report's file holds already.")
    ] = False,
    exclude: Annotated[
        Path | None,
        typer.Option(
            help="Leave out expected tests that are flaky or broken, look again, and write their "
            "names to this JSONL file, for --environments."
        ),
    ] = None,
) -> None:
    """Check that gold patches resolve their tasks and that unrepaired trees do not."""
    if resume and report is None:
        raise InvalidArgumentError("--resume needs --report, which names the file to go on with")
    tasks = load_tasks(
        source,
        task_ids=task or None,
        limit=limit,
        repositories=repositories,
        environments=environments,
    )
    known = [] if report is None else _known(report, resume=resume)
    options.check_writable(report)
    options.check_writable(exclude)
    checks = Checks(
        sandbox=options.parse_sandbox(sandbox),
        repeats=repeats,
        looks_for_leaks=leaks,
        leaves_out_tests=exclude is not None,
    )
    console = terminal()
    columns = (*Progress.get_default_columns()[:3], MofNCompleteColumn(), TimeRemainingColumn())
    with ExitStack() as stack:
        file = None
        if report is not None:
            file = stack.enter_context(report.open("a", encoding="utf-8"))
        progress = stack.enter_context(Progress(*columns, console=console, transient=True))
        keys = {checks.key(one) for one in tasks}
        done = len({one.key for one in known if not (one.error or one.skipped)} & keys)
        if resume:
            console.print(f"kept {done} of {len(known)} verdicts in {report}")
        bar = progress.add_task("tasks", total=len(tasks), completed=done)

        def show(result: ValidationReport) -> None:
            progress.advance(bar)
            at = "" if console.is_terminal else f"{_done(progress)} "  # no bar says it there
            progress.console.print(at + line_of(result))
            if file is not None:
                _write(file, result)

        try:
            reports = validate_tasks(
                tasks,
                checks=checks,
                known=known,
                num_workers=workers or os.cpu_count() or 1,
                on_result=show,
            )
        except KeyboardInterrupt:
            console.print(f"stopped after {_done(progress, ' of ')}; {_way_on(report)}")
            raise typer.Exit(_INTERRUPTED) from None
    if exclude is not None:
        _write_exclusions(exclude, reports)
    summarise(console, reports, {one.task_id for one in tasks if not one.gold_patch.strip()})
    if not all(r.ok or r.skipped for r in reports):
        raise typer.Exit(1)


def _done(progress: Progress, of: str = "/") -> str:
    (bar,) = progress.tasks
    return f"{bar.completed:.0f}{of}{bar.total:.0f}"


def _way_on(report: Path | None) -> str:
    if report is None:
        return "nothing was kept; with --report FILE a later call can go on (--resume)"
    return f"go on with --report {shlex.quote(str(report))} --resume"


def _known(path: Path, *, resume: bool) -> list[ValidationReport]:
    """Returns the reports of a file that is gone on with, and drops a last line that was cut off.

    Nothing else that the file holds is ever taken away: it may be the work of days.
    """
    data = path.read_bytes() if path.exists() else b""
    if data and not resume:
        raise InvalidArgumentError(
            f"{path} is there already; go on with it (--resume), or give --report another name"
        )
    *lines, rest = data.split(b"\n")
    reports = [_read(path, number, line) for number, line in enumerate(lines, 1) if line]
    if rest:  # by an end of the process that wrote it
        os.truncate(path, len(data) - len(rest))
    return reports


def _read(path: Path, number: int, line: bytes) -> ValidationReport:
    try:
        return ValidationReport.from_json(json.loads(line))
    except (ValueError, RecursionError) as problem:
        raise InvalidArgumentError(
            f"{path} line {number} is no report of this command ({problem}); mend or remove the "
            "line, or give --report another name"
        ) from None


def _write(file: TextIO, report: ValidationReport) -> None:
    file.write(json.dumps(report.to_json()) + "\n")
    file.flush()


def _write_exclusions(path: Path, reports: Iterable[ValidationReport]) -> None:
    entries = [
        {"instance_id": r.task_id, "excluded_tests": list(r.excluded_tests)}
        for r in reports
        if r.excluded_tests
    ]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
