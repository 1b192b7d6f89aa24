"""``coding-gym cache``: see what is kept between runs, and remove it."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from platformdirs import user_cache_path
from rich.console import Console

from coding_gym.arguments import unknown_name
from coding_gym.cli.console import terminal
from coding_gym.errors import InvalidArgumentError
from coding_gym.workspace.cache import (
    KINDS,
    CacheEntry,
    GarbageReport,
    collect_garbage,
    find_log,
    list_cache,
)

app = typer.Typer(
    help="List, clear up and read what is kept between runs: trees, environments, images.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_MAX_USERS = 3

Folder = Annotated[Path | None, typer.Option(help="The cache folder; by default the user's own.")]
Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", help=f"Only these; may be repeated: {', '.join(KINDS)}."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print what would be removed.")]


@app.command("ls")
def list_entries(
    kind: Kinds = None,
    folder: Folder = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """List what lies in the cache, what was used least recently first."""
    entries = list_cache(_folder(folder), kind or ())
    console = terminal()
    if as_json:
        for entry in entries:
            console.print(json.dumps(entry.to_json()))
        return
    now = datetime.now(UTC)
    _print_line(console, "kind", "key", "size", "built", "used", "for")
    for one in entries:
        used = "now" if one.in_use else _ago(now - one.used_at)
        size, built = _size(one.num_bytes), _ago(now - one.built_at)
        _print_line(console, one.kind, one.key, size, built, used, _users(one))
    console.print(f"{len(entries)} entries, {_size(sum(e.num_bytes for e in entries))}")


@app.command("gc")
def collect(
    older_than: Annotated[
        str, typer.Option(help="Remove what was not used for so long: 12h, 30d, 8w.")
    ] = "30d",
    max_size: Annotated[
        str | None,
        typer.Option(help="Then remove the least recently used down to: 20G."),
    ] = None,
    kind: Kinds = None,
    folder: Folder = None,
    dry_run: DryRun = False,
) -> None:
    """Remove what was not used for long, and what killed builds left; never what is in use.

    Example: coding-gym cache gc --older-than 8w --max-size 20G --dry-run
    """
    report = collect_garbage(
        _folder(folder),
        unused_for_s=_parse("--older-than", older_than, _SECONDS, "30d"),
        max_bytes=None if max_size is None else _parse("--max-size", max_size, _BYTES, "20G"),
        kinds=kind or (),
        dry_run=dry_run,
    )
    _report(report, dry_run=dry_run)


@app.command("clear")
def clear(
    kind: Kinds = None,
    folder: Folder = None,
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove everything that is not in use; it is built again when it is wanted."""
    cache = _folder(folder)
    for name in kind or ():
        if name not in KINDS:  # before the question
            raise unknown_name("cache entry", name, KINDS)
    if not (yes or dry_run):
        typer.confirm(f"Remove {', '.join(kind) if kind else 'everything'} in {cache}?", abort=True)
    report = collect_garbage(cache, unused_for_s=0, kinds=kind or (), dry_run=dry_run)
    _report(report, dry_run=dry_run)


@app.command("log")
def show_log(
    key: Annotated[str, typer.Argument(help="The environment's key, or its beginning.")],
    folder: Folder = None,
) -> None:
    """Print the log of an environment's build."""
    text = find_log(_folder(folder), key).read_text(encoding="utf-8", errors="replace")
    terminal().print(text, end="")


def _folder(folder: Path | None) -> Path:
    if folder is not None and not folder.exists():
        raise InvalidArgumentError(
            f"there is no folder {str(folder)!r}; leave --folder out for the user's own cache"
        )
    return folder or user_cache_path("coding_gym")


def _report(report: GarbageReport, *, dry_run: bool) -> None:
    console = terminal()
    would = "would be " if dry_run else ""
    for entry in report.removed:
        console.print(f"{would}removed {entry.name}  {_size(entry.num_bytes)}  {_users(entry)}")
    for entry in report.spared:
        console.print(f"kept    {entry.name}  {_size(entry.num_bytes)}  in use")
    leftovers = f", and {report.num_leftovers} leftovers of killed builds" * bool(
        report.num_leftovers
    )
    console.print(
        f"{would}removed {len(report.removed)} entries, {_size(report.num_bytes_removed)}"
        f"{leftovers}; {_size(report.num_bytes_kept)} left"
    )


def _print_line(console: Console, *cells: str) -> None:
    """Prints a line of the table; not one of rich's, which folds keys where the terminal ends."""
    kind, key, size, built, used, users = cells
    line = f"{kind:<13} {key:<24} {size:>10} {built:>5} {used:>5}  {users}"
    console.print(line.rstrip())


def _users(entry: CacheEntry) -> str:
    more = len(entry.users) - _MAX_USERS
    return ", ".join(entry.users[:_MAX_USERS]) + (f" and {more} more" if more > 0 else "")


def _size(num_bytes: int) -> str:
    for unit, factor in reversed(_BYTES.items()):
        if num_bytes >= factor and unit:
            return f"{num_bytes / factor:.1f} {unit}iB"
    return f"{num_bytes} B"


def _ago(age: timedelta) -> str:
    seconds = max(age.total_seconds(), 0)
    for unit in ("d", "h", "m"):
        if seconds >= _SECONDS[unit]:
            return f"{seconds / _SECONDS[unit]:.0f}{unit}"
    return f"{seconds:.0f}s"


def _parse(option: str, text: str, units: dict[str, int], example: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]?)", text.strip())
    unit = match[2] if match else None
    known = {name.casefold(): factor for name, factor in units.items()}
    if match is None or unit is None or unit.casefold() not in known:
        raise InvalidArgumentError(
            f"{option} must be a number and one of {', '.join(filter(None, units))}, such as "
            f"{example}, got {text!r}"
        )
    return int(float(match[1]) * known[unit.casefold()])
