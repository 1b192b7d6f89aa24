"""The folder of a run: its settings, one line for each attempt, and an index of the lines.

    config.json              the settings; see `coding_gym.evaluation.evaluate`
    trajectories-0000.jsonl  attempts with a verdict, each (task, attempt) exactly once
    errors.jsonl             attempts that ended by an error; a resumed run plays them again
    index.jsonl              where each line stands, and its outcome in a few numbers
    report.md, report.json   the report, once the run has ended

Lines are only ever added. The index can be made again from the other files: `RunFolder` reads lines
that it does not have yet, so a process that is killed between two writes loses nothing.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import filelock

from coding_gym.errors import InvalidArgumentError
from coding_gym.json_record import JsonRecord
from coding_gym.trajectory import Trajectory

CONFIG, INDEX, ERRORS, LOCK = "config.json", "index.jsonl", "errors.jsonl", ".lock"
_SHARD_BYTES = 256 << 20  # a new file then: smaller ones are easier to copy

Key = tuple[str, int]
"""A task's id, and the number of an attempt at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(JsonRecord):
    """Where an attempt's record stands, and its outcome.

    Attributes:
        task_id: The task.
        attempt: Number of the attempt, from 0.
        file: Name of the file in the folder.
        offset: Where the line begins, in bytes.
        length: Bytes of the line.
        error_class: One of `coding_gym.trajectory.ERROR_CLASSES`, or "" where there is a verdict.
        resolved: Whether the patch passed.
        stop_reason: Why the episode ended.
        turns: Number of turns.
        tokens: Tokens of prompts and replies that the model's server counted.
        cost: Cost of the model; None where unknown.
        duration_s: Wall time of the episode in seconds.
    """

    task_id: str
    attempt: int
    file: str
    offset: int
    length: int
    error_class: str = ""
    resolved: bool = False
    stop_reason: str = ""
    turns: int = 0
    tokens: int = 0
    cost: float | None = None
    duration_s: float = 0.0

    @property
    def key(self) -> Key:
        """The task's id and the attempt."""
        return self.task_id, self.attempt

    @classmethod
    def of(cls, trajectory: Trajectory, file: str, offset: int, length: int) -> Self:
        """Returns the row of a record that stands at a place of a file."""
        return cls(
            task_id=trajectory.task_id,
            attempt=trajectory.attempt,
            file=file,
            offset=offset,
            length=length,
            error_class=trajectory.error_class,
            resolved=trajectory.resolved,
            stop_reason=str(trajectory.stop_reason or ""),
            turns=len(trajectory.turns),
            tokens=sum(trajectory.usage.get(name) or 0 for name in TOKEN_COUNTS),
            cost=trajectory.cost,
            duration_s=trajectory.duration_s,
        )


TOKEN_COUNTS = ("prompt_tokens", "completion_tokens")
"""Keys of a trajectory's ``usage`` that a run adds: sums over its requests to the model."""


class RunFolder:
    """A run on disk; `create` begins one, `open` reads one.

    Any number of processes may read a folder while one writes to it.

    Args:
        path: The folder.
        config: The content of its ``config.json``.
    """

    def __init__(self, path: Path, config: Mapping[str, Any]) -> None:
        self.path = path
        self.config = dict(config)

    @classmethod
    def create(cls, path: str | Path, config: Mapping[str, Any]) -> Self:
        """Makes a folder for a new run.

        Raises:
            InvalidArgumentError: The folder holds something already, or cannot be made.
        """
        path = Path(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            has_run, is_empty = (path / CONFIG).exists(), not any(path.iterdir())
        except OSError as problem:
            raise InvalidArgumentError(f"cannot make the folder {path}: {problem}") from None
        if has_run:
            raise InvalidArgumentError(
                f"{path} holds a run already; continue it with --resume {path}, or name another "
                "folder"
            )
        if not is_empty:
            raise InvalidArgumentError(f"{path} is not empty; name a new folder for the run")
        folder = cls(path, config)
        folder.save_config()
        return folder

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Reads the settings of a run.

        Raises:
            InvalidArgumentError: There is no run in the folder, or its settings cannot be read.
        """
        file = Path(path) / CONFIG
        try:
            config = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InvalidArgumentError(f"{path} holds no run: there is no {file}") from None
        except (OSError, ValueError) as problem:
            raise InvalidArgumentError(f"cannot read {file}: {problem}") from None
        if not isinstance(config, dict):
            raise InvalidArgumentError(f"{file} must hold an object, got {config!r:.80}")
        return cls(Path(path), config)

    def save_config(self) -> None:
        """Writes ``config.json`` as a whole or not at all."""
        temporary = self.path / f"{CONFIG}.{os.getpid()}"
        temporary.write_text(json.dumps(self.config, indent=2) + "\n", encoding="utf-8")
        temporary.replace(self.path / CONFIG)

    def rows(self) -> dict[Key, Row]:
        """Returns the row that counts of each attempt: that with a verdict, else the last error."""
        rows: dict[Key, Row] = {}
        for row in self._all_rows():
            if row.key not in rows or rows[row.key].error_class:
                rows[row.key] = row
        return rows

    def read(self, row: Row) -> Trajectory:
        """Returns the record that a row stands for."""
        with (self.path / row.file).open("rb") as file:
            file.seek(row.offset)
            return Trajectory.from_json(json.loads(file.read(row.length)))

    def trajectories(self) -> Iterator[Trajectory]:
        """Yields the records with a verdict, one for each (task, attempt), as they ended."""
        yield from (self.read(row) for row in self.rows().values() if not row.error_class)

    def errors(self) -> Iterator[Trajectory]:
        """Yields the last record of each attempt that ended by an error and has no verdict."""
        yield from (self.read(row) for row in self.rows().values() if row.error_class)

    def _all_rows(self) -> Iterator[Row]:
        """Yields the rows of the index, then those of lines that the index does not have."""
        ends: dict[str, int] = {}
        for _, line in _lines(self.path / INDEX):
            row = Row.from_json(json.loads(line))
            ends[row.file] = max(ends.get(row.file, 0), row.offset + row.length)
            yield row
        for file in self._files():
            for offset, line in _lines(file, ends.get(file.name, 0)):
                record = Trajectory.from_json(json.loads(line))
                yield Row.of(record, file.name, offset, len(line))

    def _files(self) -> list[Path]:
        files = [*sorted(self.path.glob("trajectories-*.jsonl")), self.path / ERRORS]
        return [file for file in files if file.exists()]

    @contextmanager
    def writer(self) -> Iterator["RunWriter"]:
        """Opens the folder for adding attempts; one process at a time.

        Raises:
            InvalidArgumentError: Another process writes to it.
        """
        lock = filelock.FileLock(self.path / LOCK)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            raise InvalidArgumentError(
                f"another process is writing to {self.path}; wait for it, or name another folder"
            ) from None
        try:
            self._repair()
            yield RunWriter(self)
        finally:
            lock.release()

    def _repair(self) -> None:
        """Cuts off lines that a killed writer left unfinished, and completes the index."""
        rows = list(self._all_rows())
        ends = {INDEX: 0}
        for row in rows:
            ends[row.file] = row.offset + row.length + 1
        known = 0
        for offset, line in _lines(self.path / INDEX):
            ends[INDEX], known = offset + len(line) + 1, known + 1
        for file in (self.path / INDEX, *self._files()):
            if file.exists():
                os.truncate(file, ends.get(file.name, 0))
        with (self.path / INDEX).open("ab") as index:
            index.writelines(_line(row) for row in rows[known:])


class RunWriter:
    """Adds attempts to a folder; made by `RunFolder.writer`."""

    def __init__(self, folder: RunFolder) -> None:
        self._path = folder.path
        self._number = max(0, len(list(folder.path.glob("trajectories-*.jsonl"))) - 1)

    def add(self, trajectory: Trajectory) -> Row:
        """Adds one attempt; it is handed to the operating system when this returns."""
        name = ERRORS if trajectory.error_class else self._shard()
        line = _line(trajectory)
        with (self._path / name).open("ab") as file:
            offset = file.tell()
            file.write(line)
        row = Row.of(trajectory, name, offset, len(line) - 1)
        with (self._path / INDEX).open("ab") as index:
            index.write(_line(row))
        return row

    def _shard(self) -> str:
        name = f"trajectories-{self._number:04}.jsonl"
        file = self._path / name
        if file.exists() and file.stat().st_size >= _SHARD_BYTES:
            self._number += 1
            name = f"trajectories-{self._number:04}.jsonl"
        return name


def _line(record: JsonRecord) -> bytes:
    return json.dumps(record.to_json()).encode() + b"\n"


def _lines(path: Path, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yields the whole lines of a file from a place on, without their ends, and where they begin.

    A line that a killed writer left unfinished is the last one, and is left out.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        file.seek(start)
        if start and file.read(1) != b"\n":  # the end of the line before
            file.seek(start)
        offset = file.tell()
        for line in file:
            if line.endswith(b"\n") and line.strip():
                yield offset, line[:-1]
            offset += len(line)
