"""The folder of a run: its settings, one line for each attempt, and an index of the lines.

    config.json              the settings; see `coding_gym.evaluation.evaluate`
    trajectories-0000.jsonl  attempts with a verdict, each (task, attempt) exactly once
    errors.jsonl             attempts that ended by an error; a resumed run plays them again
    index.jsonl              where each line stands, and its outcome in a few numbers
    report.md, report.json   the report, once the run has ended

Lines are only ever added. `RunFolder` also reads lines that the index does not have yet, so a
process that is killed between two writes loses nothing.
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
_NEEDED = {"run_id", "agent", "tasks"}  # another program's file lacks them
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
        length: Bytes of the line, its end included.
        error_class: One of `coding_gym.trajectory.ERROR_CLASSES`, or "" where there is a verdict.
        resolved: Whether the patch passed.
        tokens: Tokens of prompts and replies that the model's server counted.
        cost: Cost of the model; None where unknown.
    """

    task_id: str
    attempt: int
    file: str
    offset: int
    length: int
    error_class: str = ""
    resolved: bool = False
    tokens: int = 0
    cost: float | None = None

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
            tokens=sum(trajectory.usage.get(name) or 0 for name in TOKEN_COUNTS),
            cost=trajectory.cost,
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
        self._is_broken = False

    @classmethod
    def create(cls, path: str | Path, config: Mapping[str, Any]) -> Self:
        """Makes a folder for a new run.

        Raises:
            InvalidArgumentError: The folder holds something already.
            OSError: It cannot be made.
        """
        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            if not (path / CONFIG).exists():
                raise InvalidArgumentError(f"{path} is not empty; name a new folder")
            raise InvalidArgumentError(
                f"{path} holds a run already; name a new folder, or continue the run: "
                f"coding-gym eval --resume {path}, in Python resume=True"
            )
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
            if not isinstance(config, dict) or not config.keys() >= _NEEDED:
                raise ValueError(f"{CONFIG} must have {', '.join(sorted(_NEEDED))}")
        except FileNotFoundError:
            runs = sorted(each.parent.name for each in Path(path).glob(f"*/{CONFIG}"))
            inside = f"one of its runs: {', '.join(runs[:10])}"
            known = inside if runs else "a folder of coding-gym eval"
            raise InvalidArgumentError(f"{path} holds no run; name {known}") from None
        except (OSError, ValueError) as problem:
            raise InvalidArgumentError(
                f"{path} holds no run that can be read: {problem}; name a folder of coding-gym eval"
            ) from None
        return cls(Path(path), config)

    def save_config(self) -> None:
        """Writes ``config.json`` as a whole or not at all."""
        self._write(CONFIG, json.dumps(self.config, indent=2).encode() + b"\n")

    def _write(self, name: str, content: bytes) -> None:
        temporary = self.path / f"{name}.{os.getpid()}"
        temporary.write_bytes(content)
        temporary.replace(self.path / name)

    def rows(self) -> dict[Key, Row]:
        """Returns the row that counts of each attempt: that with a verdict, else the last error."""
        rows: dict[Key, Row] = {}
        for row in self.all_rows():
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

    def all_rows(self) -> Iterator[Row]:
        """Yields the rows of all lines, those of attempts that were played again too."""
        ends: dict[str, int] = {}
        for _, line in _lines(self.path / INDEX):
            row = Row.from_json(json.loads(line))
            ends[row.file] = row.offset + row.length
            yield row
        for file in (*self._shards(), self.path / ERRORS):
            for offset, line in _lines(file, ends.get(file.name, 0)):
                try:
                    record = Trajectory.from_json(json.loads(line))
                except ValueError as problem:
                    raise InvalidArgumentError(
                        f"{file}: no trajectory begins at byte {offset}: {problem}"
                    ) from None
                yield Row.of(record, file.name, offset, len(line))

    def _shards(self) -> list[Path]:
        return sorted(self.path.glob("trajectories-*.jsonl"))

    @contextmanager
    def writer(self) -> Iterator[Self]:
        """Locks the folder for `add`; one process at a time.

        Raises:
            InvalidArgumentError: Another process writes to it.
        """
        lock = filelock.FileLock(self.path / LOCK)
        try:
            lock.acquire(timeout=0.5)  # a viewer that asks holds it for a moment
        except filelock.Timeout:
            raise InvalidArgumentError(
                f"another process is writing to {self.path}; wait for it, or name another folder"
            ) from None
        try:
            self._repair()
            self._is_broken = False
            yield self
        finally:
            lock.release()

    def _repair(self) -> None:
        """Cuts off lines that a killed writer left unfinished, and completes the index."""
        rows = list(self.all_rows())
        ends = {row.file: row.offset + row.length for row in rows}
        for file in (*self._shards(), self.path / ERRORS):
            if file.exists():
                os.truncate(file, ends.get(file.name, 0))
        self._write(INDEX, b"".join(map(_line, rows)))

    def add(self, trajectory: Trajectory) -> None:
        """Adds one attempt, inside `writer`; the operating system has it when this returns.

        Raises:
            OSError: It cannot be written, or one before could not: no line may follow one that was
                cut off.
        """
        if self._is_broken:
            raise OSError(f"an earlier record could not be written to {self.path}")
        self._is_broken = True
        name, line = ERRORS if trajectory.error_class else self._open_shard(), _line(trajectory)
        with (self.path / name).open("ab") as file:
            row = Row.of(trajectory, name, file.tell(), len(line))
            file.write(line)
        with (self.path / INDEX).open("ab") as index:
            index.write(_line(row))
        self._is_broken = False

    def _open_shard(self) -> str:
        shards = self._shards()
        if shards and shards[-1].stat().st_size < _SHARD_BYTES:
            return shards[-1].name
        return f"trajectories-{len(shards):04}.jsonl"


def _line(record: JsonRecord) -> bytes:
    return json.dumps(record.to_json()).encode() + b"\n"


def _lines(path: Path, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yields the whole lines of a file from a place on, and where they begin.

    A line that a killed writer left unfinished is the last one, and is left out.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        file.seek(start)
        for line in file:
            if line.endswith(b"\n"):
                yield start, line
            start += len(line)
