"""Job files: TOML and INI."""

from __future__ import annotations

import configparser
import posixpath
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from millrace.actions import ACTIONS
from millrace.errors import JobFileError
from millrace.jobs import Job

_LISTS = ("inputs", "outputs", "needs")


def load_jobs(path: Path) -> list[Job]:
    """The jobs of a file in their order; the suffix tells the format."""
    readers = {".toml": _read_toml, ".ini": _read_ini}
    reader = readers.get(path.suffix)
    if reader is None:
        raise JobFileError(f"{path.name}: job files end in .toml or .ini")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise JobFileError(f"cannot read {path}: {error}") from error
    try:
        tables = reader(text)
    except (tomllib.TOMLDecodeError, configparser.Error) as error:
        raise JobFileError(f"{path.name}: {' '.join(str(error).split())}") from error
    jobs = [_job(name, table) for name, table in tables.items()]
    _check_writers(jobs)
    return jobs


def _read_toml(text: str) -> dict[str, Any]:
    tables = tomllib.loads(text).get("jobs", {})
    if not isinstance(tables, dict):
        raise JobFileError("'jobs' must be a table of jobs")
    return tables


def _read_ini(text: str) -> dict[str, Any]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    tables: dict[str, Any] = {}
    for section in parser.sections():
        kind, _, name = section.partition(" ")
        if kind != "job" or not name.strip():
            raise JobFileError(f"[{section}]: sections are called [job NAME]")
        table: dict[str, Any] = dict(parser[section])
        for key in _LISTS:
            if key in table:
                table[key] = [line.strip() for line in table[key].splitlines() if line.strip()]
        tables[name.strip()] = table
    return tables


def _job(name: str, table: Any) -> Job:
    if not isinstance(table, Mapping):
        raise JobFileError(f"{name}: a job must be a table")
    options = dict(table)
    action = options.pop("action", None)
    if action not in ACTIONS:
        known = ", ".join(sorted(ACTIONS))
        raise JobFileError(f"{name}: action must be one of {known}, not {action!r}")
    lists: dict[str, tuple[str, ...]] = {}
    for key in _LISTS:
        value = options.pop(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise JobFileError(f"{name}: {key} must be a list of texts")
        lists[key] = tuple(value)
    for key, value in options.items():
        if not isinstance(value, str):
            raise JobFileError(f"{name}: option {key} must be text, not {value!r}")
    inputs, outputs = (tuple(_tidy(name, path) for path in lists[key]) for key in _LISTS[:2])
    return Job(name, action, inputs, outputs, lists["needs"], options)


def _tidy(name: str, path: str) -> str:
    """``path`` in the one spelling under which files are compared."""
    tidy = posixpath.normpath(path)
    if tidy.startswith(("/", "../")) or tidy in (".", ".."):
        raise JobFileError(f"{name}: {path!r} is not a file below the job file's folder")
    return tidy


def _check_writers(jobs: list[Job]) -> None:
    writers: dict[str, str] = {}
    for job in jobs:
        for path in job.outputs:
            if path in writers:
                raise JobFileError(f"both {writers[path]} and {job.name} write {path}")
            writers[path] = job.name
