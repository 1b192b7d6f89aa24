"""The folder of a run: its settings, and one JSON file for each attempt.

    config.json                        the settings; see `coding_gym.evaluation.evaluate`
    attempts/<task>.<n>.json           attempt n at a task, with a verdict
    attempts/<task>.<n>.error.json     an attempt that ended with an error; a resumed run repeats it
    attempts/<task>.<n>.error1.json    the second error of the same attempt, and so on
    report.md, report.json             the report, after the end of the run

The id of the task is percent-encoded. The first line of an attempt's file has the `Outcome`, so
listing a run reads only these lines. Each file is written under a temporary name and then renamed,
so no record is partial. A verdict takes precedence over errors, a later error over an earlier one.
Error files are kept, because the requests of their attempts count towards the budget of the run.
"""

import json
import math
import os
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, unquote

import filelock

from coding_gym import __version__
from coding_gym.calls import SUMMED_COUNTS
from coding_gym.errors import InfrastructureError, InvalidArgumentError
from coding_gym.json_record import JsonRecord
from coding_gym.trajectory import Trajectory
from coding_gym.whole_file import remove_partial_files, write_whole

CONFIG, ATTEMPTS, LOCK = "config.json", "attempts", ".lock"
ROWS = "rows"
"""The task source in the settings of a run whose tasks were passed as a list."""

_REQUIRED: Mapping[str, type] = {
    **dict.fromkeys(("run_id", "created_at", "agent.name", "agent.model", "tasks.source"), str),
    **dict.fromkeys(("attempts", "seed"), int),
    **dict.fromkeys(("episode", "versions"), dict),
    "tasks.task_ids": list,
}
_NAME = re.compile(r"([^.].*)\.([0-9]{1,9})(\.error([0-9]{0,9}))?\.json")
_RUN_FOLDER = "a folder of coding-gym eval"

Key = tuple[str, int]
"""A task's id, and the number of an attempt at the task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(JsonRecord):
    """A summary of an attempt's record.

    Attributes:
        error_class: One of `coding_gym.trajectory.ERROR_CLASSES`, or "" after a verdict.
        resolved: Whether the patch passed the hidden tests.
        tokens: Tokens of prompts and replies, as the model's server reports them.
        cost: Cost of the requests to the model; None if unknown.
    """

    error_class: str = ""
    resolved: bool = False
    tokens: int = 0
    cost: float | None = None

    @classmethod
    def of(cls, record: Trajectory) -> Self:
        """Returns the outcome of a record."""
        return cls(
            error_class=record.error_class,
            resolved=record.resolved,
            tokens=sum(record.usage.get(name) or 0 for name in SUMMED_COUNTS),
            cost=record.cost,
        )


class RunFolder:
    """The folder of a run; `create` makes a new folder, `open` reads an existing folder.

    Any number of processes can read a folder while one process writes to it by `add`, or while any
    number of threads and processes write to it by `record`.

    Args:
        path: The folder.
        config: The content of its ``config.json``.
    """

    def __init__(self, path: Path, config: Mapping[str, Any]) -> None:
        self.path = path
        self.config = dict(config)

    @classmethod
    def create(cls, path: str | Path, config: Mapping[str, Any]) -> Self:
        """Creates the folder of a new run; the settings get ``run_id`` and ``created_at``.

        Raises:
            InvalidArgumentError: The folder is not empty, or a setting is not a JSON value.
            OSError: The folder cannot be created.
        """
        path, now = Path(path), datetime.now(UTC)
        run_id = f"{path.absolute().name}-{now:%Y%m%d-%H%M%S}"
        created_at = now.isoformat(timespec="seconds")
        config = {"run_id": run_id, "created_at": created_at, **config}
        try:
            json.dumps(config)
        except (TypeError, ValueError) as problem:
            raise InvalidArgumentError(f"settings must be JSON values: {problem}") from None
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise InvalidArgumentError(
                f"{path} is not empty; name a new folder, or continue the run in this folder: in "
                f"Python with resume=True, in a shell: coding-gym eval --out {path} --resume"
            )
        folder = cls(path, config)
        (path / ATTEMPTS).mkdir()
        folder.save_config()
        return folder

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Reads the settings of a run.

        Raises:
            InvalidArgumentError: The folder has no run, or an older version of this package or
                another program wrote it.
        """
        path = Path(path)
        try:
            config = json.loads((path / CONFIG).read_text(encoding="utf-8"))
            for setting, kind in _REQUIRED.items():
                value = config
                for name in setting.split("."):
                    value = value.get(name) if isinstance(value, dict) else None
                if not isinstance(value, kind):
                    raise ValueError(f"{setting} must be a {kind.__name__}, got {value!r:.80}")
        except FileNotFoundError:
            runs = sorted(file.parent.name for file in path.glob(f"*/{CONFIG}"))
            remedy = f"one of its runs: {', '.join(runs[:10])}" if runs else _RUN_FOLDER
            raise InvalidArgumentError(f"{path} has no run; name {remedy}") from None
        except (OSError, ValueError) as problem:
            raise InvalidArgumentError(
                f"the run in {path} cannot be read: {problem}; name {_RUN_FOLDER}"
            ) from None
        return cls(path, config)

    @classmethod
    def recorder(cls, path: str | Path) -> Self:
        """Returns a folder, created if missing, for `record`; the first record sets the config.

        Raises:
            InvalidArgumentError: The folder contains a run of ``coding-gym eval``, or its folder
                ``attempts`` is a link, which no command follows.
            OSError: The folder cannot be created.
        """
        path = Path(path)
        if (path / ATTEMPTS).is_symlink():
            raise InvalidArgumentError(f"{path / ATTEMPTS} must not be a link; link {path} instead")
        (path / ATTEMPTS).mkdir(parents=True, exist_ok=True)
        folder = cls.open(path) if (path / CONFIG).exists() else cls(path, {})
        if folder.config and folder.config["tasks"]["task_ids"]:
            raise InvalidArgumentError(f"{path} has a run of coding-gym eval; name another folder")
        return folder

    def save_config(self) -> None:
        """Writes ``config.json`` atomically."""
        write_whole(self.path / CONFIG, json.dumps(self.config, indent=2) + "\n")

    def keys(self) -> set[Key]:
        """Returns the attempts that have a verdict, by listing the folder."""
        attempts = list_attempts(self.path / ATTEMPTS)
        return {key for key, (name, _) in attempts.items() if not is_error(name)}

    def outcomes(self) -> Iterator[Outcome]:
        """Yields the outcome of each record, including all errors of an attempt.

        Raises:
            InvalidArgumentError: A record cannot be read.
        """
        for name in sorted(name for _, _, name, _ in _files(self.path / ATTEMPTS)):
            yield _read_outcome(self.path / ATTEMPTS / name)

    def trajectories(self) -> Iterator[Trajectory]:
        """Yields the records with a verdict, in the order of task and attempt."""
        return self._records(errors=False)

    def errors(self) -> Iterator[Trajectory]:
        """Yields the last error record of each attempt without a verdict."""
        return self._records(errors=True)

    @contextmanager
    def writer(self) -> Iterator[Self]:
        """Locks the folder, so that one process at a time can `add` records.

        Raises:
            InvalidArgumentError: Another process writes to the folder.
        """
        lock = filelock.FileLock(self.path / LOCK)
        try:
            lock.acquire(timeout=0.5)  # a viewer locks the file for a short time
        except filelock.Timeout:
            raise InvalidArgumentError(
                f"another process writes to {self.path}; wait for its end, or name another folder"
            ) from None
        try:
            (self.path / ATTEMPTS).mkdir(exist_ok=True)
            remove_partial_files(self.path / ATTEMPTS)
            yield self
        finally:
            lock.release()

    def add(self, trajectory: Trajectory, *, overwrite: bool = True) -> None:
        """Writes the record of one attempt, inside `writer`.

        Raises:
            FileExistsError: The attempt has a verdict, and ``overwrite`` is False.
            OSError: The file cannot be written.
        """
        path = self._path(trajectory.task_id, trajectory.attempt)
        if trajectory.error_class:
            paths = (path.with_suffix(f".error{number or ''}.json") for number in count())
            path = next(path for path in paths if not path.exists())
        fields = {"outcome": Outcome.of(trajectory).to_json(), **trajectory.to_json()}
        lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in fields.items())
        write_whole(path, "{" + ",\n".join(lines) + "}\n", overwrite=overwrite)

    def record(self, trajectory: Trajectory) -> Trajectory:
        """Appends an episode as the next attempt at its task, and returns its record.

        The record gets the number of the attempt and the id of the run. The number of an
        attempt that ended with an error is used again. ``config.json`` has the settings of the
        first record of the folder; other records can have other settings.

        Raises:
            InfrastructureError: The file cannot be written; the message has the reason.
        """
        try:
            if not self.config:
                config = json.dumps(_recorded_settings(self.path, trajectory), indent=2)
                with suppress(FileExistsError):
                    write_whole(self.path / CONFIG, config, overwrite=False)
                self.config = self.open(self.path).config
            while True:
                attempt = self._next_attempt(trajectory.task_id)
                record = replace(trajectory, attempt=attempt, run_id=self.config["run_id"])
                with suppress(FileExistsError):  # another writer has used the number
                    self.add(record, overwrite=False)
                    return record
        except OSError as error:
            raise InfrastructureError(
                f"{trajectory.task_id} cannot be recorded in {self.path}: {error.strerror or error}"
            ) from error

    def _next_attempt(self, task_id: str) -> int:
        """Returns a free number by binary search, because listing a large folder is slow."""
        size = 1
        while self._path(task_id, size - 1).exists():
            size *= 2
        return bisect_left(range(size), True, key=lambda n: not self._path(task_id, n).exists())

    def _path(self, task_id: str, attempt: int) -> Path:
        """Returns the file of an attempt with a verdict."""
        quoted = quote(task_id, safe="")
        if quoted.startswith("."):  # the file would be hidden
            quoted = f"%2E{quoted[1:]}"
        return self.path / ATTEMPTS / f"{quoted}.{attempt}.json"

    def _records(self, *, errors: bool) -> Iterator[Trajectory]:
        for _, (name, _) in sorted(list_attempts(self.path / ATTEMPTS).items()):
            if is_error(name) is errors:
                file = self.path / ATTEMPTS / name
                yield Trajectory.parse(file.read_bytes(), file)


def _recorded_settings(path: Path, first: Trajectory) -> dict[str, Any]:
    """Returns the settings of recorded episodes, from the first episode."""
    episode = {"toolset": first.toolset, "tokenizer": first.tokenizer, **first.settings}
    episode.pop("task_digest", None)
    return {
        "run_id": path.absolute().name,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "agent": {"name": first.agent or "recorded", "model": first.model},
        "tasks": {"source": episode.pop("tasks", "") or ROWS, "task_ids": []},
        "attempts": 1,
        "seed": 0,
        "episode": episode,
        "versions": {"coding-gym": __version__},
    }


def _read_outcome(file: Path) -> Outcome:
    try:
        with file.open("rb") as stream:
            first_line = stream.readline().removesuffix(b",\n") + b"}"
        return Outcome.from_json(json.loads(first_line)["outcome"])
    except (ValueError, LookupError, TypeError, RecursionError) as problem:
        raise InvalidArgumentError(
            f"{file} is not a record of an attempt: {problem}; remove the file, and resume the run"
        ) from None


def list_attempts(folder: Path) -> dict[Key, tuple[str, int]]:
    """Returns name and inode of the current record of each attempt in a run's ``attempts`` folder.

    The result is empty if the folder is missing or is a symbolic link.
    """
    files = sorted(_files(folder), key=lambda file: file[1])
    return {key: (name, inode) for key, _, name, inode in files}


def _files(folder: Path) -> Iterator[tuple[Key, float, str, int]]:
    """Yields attempt, rank, name and inode of each record; the highest rank is current."""
    with suppress(OSError):
        for entry in () if folder.is_symlink() else os.scandir(folder):
            if name := _NAME.fullmatch(entry.name):
                rank = int(name[4] or 0) if name[3] else math.inf
                yield (unquote(name[1]), int(name[2])), rank, entry.name, entry.inode()


def is_error(name: str) -> bool:
    """Returns whether a file of the folder ``attempts`` is the record of an error."""
    match = _NAME.fullmatch(name)
    return match is not None and match[3] is not None
