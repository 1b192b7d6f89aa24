"""Commands that read the folders of runs: ``report``, ``compare``, ``leaderboard``, ``export``."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from coding_gym.cli.console import terminal
from coding_gym.errors import InvalidArgumentError
from coding_gym.evaluation import EXPORTS, compare, export, leaderboard, plot, report
from coding_gym.evaluation.report import Report

Run = Annotated[Path, typer.Argument(help="The folder of a run.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of Markdown.")]


def show_report(
    run: Run,
    plots: Annotated[
        bool, typer.Option("--plots", help="Draw figures into the folder too (extra 'plot').")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the report of a run, and write report.md and report.json into its folder."""
    made = write_report(run)
    terminal().print(json.dumps(made.to_json(), indent=1) if as_json else made.to_markdown())
    if plots:
        for path in plot(made, run):
            terminal(stderr=True).print(f"wrote {path}")


def write_report(run: Path) -> Report:
    """Writes ``report.md`` and ``report.json`` into a run's folder and returns the report."""
    made = report(run)
    (run / "report.md").write_text(made.to_markdown() + "\n", encoding="utf-8")
    (run / "report.json").write_text(json.dumps(made.to_json()) + "\n", encoding="utf-8")
    return made


def summary(made: Report) -> str:
    """Returns the rates of a report in a few lines, each with its interval."""
    rates = {"resolved": made.overall.resolved}
    rates |= {f"pass@{k}": rate for k, rate in made.pass_at_k.items() if k != "1"}
    lines = [
        f"{name:<9} {_percent(rate.value)} (95 % interval {_percent(rate.low)} to "
        f"{_percent(rate.high)})"
        for name, rate in rates.items()
        if rate is not None
    ]
    lines += [
        f"not counted: {count} attempts ended by a {name} error"
        for name, count in made.error_classes.items()
    ]
    return "\n".join(lines) or "no attempt has a verdict"


def _percent(value: float | None) -> str:
    return "?" if value is None else f"{100 * value:.1f} %"


def compare_runs(
    first: Annotated[Path, typer.Argument(help="The folder of a run.")],
    second: Annotated[Path, typer.Argument(help="The folder of the run to compare it with.")],
    as_json: AsJson = False,
) -> None:
    """Compare two runs on the tasks that both have: paired difference, McNemar's test, flips."""
    made = compare(first, second)
    terminal().print(json.dumps(made.to_json(), indent=1) if as_json else made.to_markdown())


def print_leaderboard(
    runs: Annotated[Path, typer.Argument(help="A folder with the folders of runs.")],
) -> None:
    """Print a table of runs, the best first, as Markdown."""
    terminal().print(leaderboard(runs))


def export_run(
    run: Run,
    form: Annotated[
        str, typer.Option("--format", "-f", help=f"One of {', '.join(EXPORTS)}.")
    ] = "swebench",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder; by default in the run's own.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE of the format, VALUE as JSON or text; may be repeated."),
    ] = None,
) -> None:
    """Write a run in the format of another tool."""
    for path in export(run, form, out or run / form, **dict(map(_option, option or []))):
        terminal().print(str(path))


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise InvalidArgumentError(f"--option must be NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
