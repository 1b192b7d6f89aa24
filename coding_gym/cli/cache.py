"""``coding-gym cache``: list what is kept between runs, and remove it."""

from datetime import UTC, datetime
from typing import Annotated

import typer
from platformdirs import user_cache_path

from coding_gym.arguments import unknown_name
from coding_gym.cli.console import terminal
from coding_gym.workspace.cache import KINDS, CacheEntry, collect_garbage, list_cache

app = typer.Typer(
    help="List and remove what is kept between runs: trees, environments, images.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", help=f"Only these; may be repeated: {', '.join(KINDS)}."),
]


@app.command("ls")
def list_entries(kind: Kinds = None) -> None:
    """List the entries of the cache, the least recently used first."""
    entries = list_cache(user_cache_path("coding_gym"), kind or ())
    for entry in entries:
        terminal().print(_line(entry))
    terminal().print(f"{len(entries)} entries, {_size(sum(e.num_bytes for e in entries))}")


@app.command("clear")
def clear(
    kind: Kinds = None,
    unused_days: Annotated[
        int, typer.Option(min=0, help="Only entries that were not used for so many days.")
    ] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print what would be removed.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove entries and the leftovers of killed builds, but nothing that is in use.

    Entries are built again when they are needed.

    Example: coding-gym cache clear --kind environments --unused-days 30
    """
    for name in kind or ():
        if name not in KINDS:  # before the question
            raise unknown_name("cache entry", name, KINDS)
    folder = user_cache_path("coding_gym")
    if not (yes or dry_run):
        typer.confirm(f"Remove {', '.join(kind or ['everything'])} in {folder}?", abort=True)
    report = collect_garbage(
        folder, unused_for_s=86400 * unused_days, kinds=kind or (), dry_run=dry_run
    )
    would = "would be " if dry_run else ""
    for entry in report.removed:
        terminal().print(f"{would}removed {_line(entry)}")
    for entry in report.spared:
        terminal().print(f"in use: {_line(entry)}")
    terminal().print(
        f"{would}removed {len(report.removed)} entries, {_size(report.num_bytes_removed)}, and "
        f"{report.num_leftovers} leftovers; {_size(report.num_bytes_kept)} left"
    )


def _line(entry: CacheEntry) -> str:
    days = max((datetime.now(UTC) - entry.used_at).days, 0)
    used = "in use" if entry.in_use else f"used {days} days ago"
    users = ", ".join(entry.users[:3])
    return f"{entry.name:<38} {_size(entry.num_bytes):>10}  {used:<18} {users}".rstrip()


def _size(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:,.1f} MB"
