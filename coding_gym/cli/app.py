"""The entry point and the list of subcommands of ``coding-gym``."""

import signal
import sys
from typing import Any

import typer
from pydantic import ValidationError

from coding_gym import __version__
from coding_gym.cli import (
    cache,
    check_model,
    demo,
    doctor,
    evaluate,
    fix,
    grade,
    images,
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
app.command("check-model")(check_model.check_model)
app.command("eval")(evaluate.eval_)
app.command()(grade.grade)
app.command()(fix.fix)
app.command("report")(runs.show_report)
app.command("compare")(runs.compare_runs)
app.command("regrade")(runs.regrade_run)
app.command("import")(runs.import_run)
app.command("export")(runs.export_run)
app.command()(serve.serve)
app.command()(view.view)
app.command()(view.show)
app.command()(validate.validate)
app.command()(doctor.doctor)
app.add_typer(tasks.app, name="tasks")
app.add_typer(cache.app, name="cache")
app.add_typer(images.app, name="images")


def _version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"coding-gym {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Repair bugs in sealed sandboxes: evaluate models, grade patches, validate tasks."""


def main() -> None:
    """Runs the command that the process arguments name, and exits.

    A `CodingGymError`, an `OSError` or a wrong argument is printed as one line; the exit code is 2.
    """
    # A shell script starts `command &` with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.exit(app(prog_name="coding-gym", standalone_mode=False))
    except typer.Abort:
        terminal(stderr=True).print("stopped")
        sys.exit(1)
    except (CodingGymError, OSError, typer.TyperException) as problem:
        if text := _usage(problem) if isinstance(problem, typer.TyperException) else str(problem):
            terminal(stderr=True).print(f"error: {text}", style="red")
        sys.exit(2)


def _usage(problem: Any) -> str:
    """Returns a usage error as one line with the invalid value; "" if the help was printed."""
    text = problem.format_message().rstrip(".")
    if isinstance(problem.__cause__, ValidationError):
        value = repr(problem.__cause__.errors()[0]["input"])
        text += "" if value in text else f", got {value}"
    context = getattr(problem, "ctx", None)
    command = context.command_path if context else "coding-gym"
    return f"{text} (see {command} --help)" if text else ""
