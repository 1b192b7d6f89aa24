"""``coding-gym cache``: removes entries of the cache."""

from typing import Annotated

import typer
from platformdirs import user_cache_path

from coding_gym.cli.console import terminal
from coding_gym.workspace.cache import clear_cache, list_cache

app = typer.Typer(
    help="Remove cached trees, environments and images.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("clear")
def clear(
    older_than: Annotated[
        int, typer.Option(min=0, metavar="DAYS", help="Select entries unused for DAYS days.")
    ] = 0,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation.")] = False,
) -> None:
    """List entries, ask, and remove the entries, even if a process uses them.

    Leftovers of killed builds are removed, too. A removed entry is built again when a run needs it.

    Example: coding-gym cache clear --older-than 30
    """
    folder = user_cache_path("coding_gym")
    entries = list_cache(folder, older_than_days=older_than)
    for entry in entries:
        terminal().print(f"{entry.name:<38} unused for {entry.num_days_unused} days")
    if not yes:
        typer.confirm(f"Remove these {len(entries)} entries of {folder}?", abort=True)
    terminal().print(f"removed {len(clear_cache(folder, older_than_days=older_than))} entries")
