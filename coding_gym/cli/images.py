"""``coding-gym images``: get the images that tasks run in, and see which are there."""

from pathlib import Path
from typing import Annotated

import typer

from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox.images import image_folder, pull_image, save_image
from coding_gym.tasks import load_tasks

app = typer.Typer(
    help="Get images from their registry, without a daemon, and list those that are here.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def pull(
    source: Annotated[
        str | None, typer.Argument(help="Rows whose images are wanted, as `validate` takes them.")
    ] = None,
    image: Annotated[
        list[str] | None,
        typer.Option(
            "--image", "-i", help="An image by name, such as python:3.12; may be repeated."
        ),
    ] = None,
    task: options.TaskIds = None,
    num_tasks: options.NumTasks = None,
    mirror: Annotated[
        str, typer.Option(help="URL of a registry to take them from instead of their own.")
    ] = "",
    engine: Annotated[
        bool, typer.Option("--from-docker", help="Copy them out of the Docker engine instead.")
    ] = False,
) -> None:
    """Download the images of rows; what was cut off goes on where it stopped.

    Rows then run in them with --environments images.

    Example: coding-gym images pull rows.jsonl --num-tasks 10
    """
    if source is None and not image:
        raise InvalidArgumentError("name a source of rows, or images by --image NAME")
    names = list(image or ())
    if source is not None:
        tasks = load_tasks(source, task_ids=task or None, limit=num_tasks, needs_tests=False)
        names += [one.image for one in tasks if one.image]
        if not names:
            raise InvalidArgumentError(f"no row of {source!r} names an image")
    console = terminal()
    failed = 0
    names = list(dict.fromkeys(names))
    for name in names:
        try:
            with console.status(name):
                path = save_image(name) if engine else pull_image(name, mirror=mirror)
            console.print(f"✔ {name}  {path}")
        except (InvalidArgumentError, SandboxError) as problem:
            failed += 1
            console.print(f"✘ {problem}")
    console.print(f"{len(names) - failed} of {len(names)} images are here, in {image_folder()}")
    if failed:
        raise typer.Exit(1)


@app.command("ls")
def list_images() -> None:
    """List the images that tasks and sandboxes find by name."""
    folder, console = image_folder(), terminal()
    for path in _images(folder):
        console.print(str(path.relative_to(folder)).removesuffix(".tar"))


def _images(folder: Path) -> list[Path]:
    """Returns the layout folders and tars below a folder."""
    layouts = [found.parent for found in folder.rglob("oci-layout")]
    return sorted([*layouts, *folder.rglob("*.tar")])
