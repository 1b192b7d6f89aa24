"""Commands on run folders: ``report``, ``compare``, ``regrade``, ``import``, ``export``."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from coding_gym import __version__
from coding_gym.cli import options
from coding_gym.cli.console import LineProgress, terminal
from coding_gym.evaluation import EXPORTS, compare, export, leaderboard, report
from coding_gym.evaluation.atif import import_atif
from coding_gym.evaluation.regrade import regrade
from coding_gym.run_folder import RunFolder


def show_report(
    runs: Annotated[list[Path], typer.Argument(help="One or more run folders.")],
    ranked: Annotated[
        bool, typer.Option("--leaderboard", help="Print one table of all runs, best first.")
    ] = False,
) -> None:
    """Print the report of a run, and write report.md and report.json into its folder.

    Example: coding-gym report runs/* --leaderboard
    """
    reports = [report(run) for run in runs]
    for run, result in zip(runs, reports, strict=True):
        result.write(run)
    pages = [leaderboard(reports)] if ranked else [result.to_markdown() for result in reports]
    for page in pages:
        terminal().print(page)


def compare_runs(
    first: Annotated[Path, typer.Argument(help="Run folder of the first run.")],
    second: Annotated[Path, typer.Argument(help="Run folder of the second run.")],
) -> None:
    """Compare two runs on common tasks: paired difference, McNemar's test, changed verdicts.

    Differences are second run minus first run: positive if the second run resolves more.
    """
    terminal().print(compare(first, second).to_markdown())


def regrade_run(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    concurrency: options.TasksPerCore = options.NUM_CORES,
) -> None:
    """Grade the recorded patches of a run again, without a model, and print the differences.

    The sandbox backend comes from the settings of the run. The exit code is 1 if a verdict differs
    or a patch cannot be graded.
    """
    folder, console = RunFolder.open(run), terminal()
    versions = f"{folder.config['versions'].get('coding-gym', 'unknown')}, now {__version__}"
    console.print(f"recorded by version {versions}")
    results = []
    with LineProgress(console) as bar:
        set_total = partial(setattr, bar.tasks[0], "total")
        for result in regrade(folder, num_workers=concurrency, on_start=set_total):
            bar.update(bar.bar, advance=1)
            results.append(result)
    for result in sorted(results, key=lambda item: (item.task_id, item.attempt)):
        if result.is_flip or result.before is None or result.after is None:
            console.print(result.line)
    num_flips = sum(result.is_flip for result in results)
    num_resolved = sum(result.after is not None and result.after.resolved for result in results)
    summary = f"{len(results)} graded again, {num_resolved} resolved, {num_flips} flips"
    console.print(summary, style="bold")
    if num_flips or any(result.problem for result in results):
        raise typer.Exit(1)


def import_run(
    paths: Annotated[
        list[Path], typer.Argument(help="ATIF files, or folders with them, such as a Harbor job.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="New run folder.")],
    source: options.Source = "bundled",
) -> None:
    """Convert trajectories in Harbor's format, ATIF, to a run for view, show, regrade and export.

    Example: coding-gym import jobs/mine --tasks rows.jsonl --out runs/theirs
    """
    folder = import_atif(paths, out, options.absolute(source, ("bundled", "polyglot")))
    terminal().print(f"{len(folder.keys())} attempts in {out}")


def export_run(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    form: Annotated[
        str, typer.Option("--format", "-f", help=f"Format: one of {', '.join(EXPORTS)}.")
    ] = "swebench",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Output folder; default: RUN/FORMAT.")
    ] = None,
) -> None:
    """Write a run in the format of another tool.

    Example: coding-gym export runs/mine --format sft --out chats
    """
    for path in export(run, form, out or run / form):
        terminal().print(str(path))
