"""``coding-gym images``: downloads and lists the images of tasks."""

from typing import Annotated

import typer

from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox.images.fetching import fetch_image
from coding_gym.sandbox.images.layout import image_folder, image_names
from coding_gym.tasks import load_tasks

app = typer.Typer(
    help="Download images without a container daemon, and list downloaded images.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def pull(
    source: Annotated[
        str | None, typer.Argument(help="Task source whose rows name images; see validate --help.")
    ] = None,
    image: Annotated[
        list[str] | None, typer.Option("--image", "-i", help="An image, such as python:3.12.")
    ] = None,
    num_tasks: options.NumTasks = None,
) -> None:
    """Download the images of task rows with skopeo, except layers that are already present.

    `coding-gym eval --environments images` then runs the rows in their images.

    Example: coding-gym images pull rows.jsonl --num-tasks 10
    """
    if source is None and not image:
        raise InvalidArgumentError("images pull needs a task source or --image NAME, got neither")
    names = list(image or ())
    if source is not None:
        tasks = load_tasks(source, limit=num_tasks, needs_tests=False)
        names += [task.image for task in tasks if task.image]
        if not names:
            raise InvalidArgumentError(f"no row of {source!r} names an image; use --image NAME")
    console = terminal()
    num_failed = 0
    names = list(dict.fromkeys(names))
    for name in names:
        try:
            with console.status(name):
                path = fetch_image(name)
            console.print(f"✔ {name}  {path}")
        except (InvalidArgumentError, SandboxError) as problem:
            num_failed += 1
            console.print(f"✘ {problem}")
    console.print(f"{len(names) - num_failed} of {len(names)} images are in {image_folder()}")
    if num_failed:
        raise typer.Exit(1)


@app.command("ls")
def list_images() -> None:
    """List the names of downloaded images."""
    for name in image_names():
        terminal().print(name)
