"""``coding-gym cache``: lists and removes entries of the cache."""

from typing import Annotated

import typer
from platformdirs import user_cache_path

from coding_gym.cli.console import terminal
from coding_gym.workspace.cache import CacheEntry, clear_cache, list_cache

app = typer.Typer(
    help="List and remove cached trees, environments and images.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

OlderThan = Annotated[
    int, typer.Option(min=0, metavar="DAYS", help="Select entries unused for at least DAYS days.")
]


@app.command("list")
def list_entries(older_than: OlderThan = 0) -> None:
    """List the entries of the cache, the least recently used first."""
    folder = user_cache_path("coding_gym")
    _print_entries(list_cache(folder, older_than_days=older_than))


@app.command("clear")
def clear(
    older_than: OlderThan = 0,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation.")] = False,
) -> None:
    """Remove entries, even if a process uses them, and the leftovers of killed builds.

    A removed entry is built again when a run needs it.

    Example: coding-gym cache clear --older-than 30
    """
    folder = user_cache_path("coding_gym")
    entries = list_cache(folder, older_than_days=older_than)
    if not yes:
        typer.confirm(f"Remove {len(entries)} entries of {folder}?", abort=True)
    _print_entries(clear_cache(folder, older_than_days=older_than))


def _print_entries(entries: tuple[CacheEntry, ...]) -> None:
    for entry in entries:
        terminal().print(f"{entry.name:<38} unused for {entry.num_days_unused} days")
    terminal().print(f"{len(entries)} entries")
