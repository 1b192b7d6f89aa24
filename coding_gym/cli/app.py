"""The ``coding-gym`` command."""

import sys

import typer

from coding_gym import __version__
from coding_gym.cli import (
    cache,
    demo,
    doctor,
    evaluate,
    fix,
    grade,
    images,
    play,
    replay,
    runs,
    serve,
    tasks,
    validate,
    view,
)
from coding_gym.cli.console import terminal
from coding_gym.errors import CodingGymError

app = typer.Typer(
    name="coding-gym",
    help="Repair bugs in sealed sandboxes: evaluate models, grade patches, validate tasks.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)
app.command()(demo.demo)
app.command()(play.play)
app.command("eval")(evaluate.eval_)
app.command()(grade.grade)
app.command()(fix.fix)
app.command("report")(runs.show_report)
app.command("compare")(runs.compare_runs)
app.command("leaderboard")(runs.print_leaderboard)
app.command("export")(runs.export_run)
app.command()(replay.replay)
app.command()(serve.serve)
app.command()(view.view)
app.command()(view.show)
app.command()(validate.validate)
app.command()(doctor.doctor)
app.add_typer(tasks.app, name="tasks")
app.add_typer(cache.app, name="cache")
app.add_typer(images.app, name="images")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"coding-gym {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    """Repair bugs in sealed sandboxes: evaluate models, grade patches, validate tasks."""


def main() -> None:
    """Runs the command; what this package raises on purpose becomes one line and exit code 2.

    So do the operating system's refusals, such as a file that cannot be read.
    """
    try:
        app()
    except (CodingGymError, OSError) as problem:
        terminal(stderr=True).print(f"error: {problem}", style="red")
        for note in getattr(problem, "__notes__", ()):  # such as the end of a build's log
            terminal(stderr=True).print(note)
        sys.exit(2)
