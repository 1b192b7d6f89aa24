"""Reads the episodes of one run while the viewer displays the run.

`RunIndex.update` lists the files of attempts, so the table has all episodes immediately.
`RunIndex.enrich` then reads records in small steps, completes the rows of the table, and adds the
texts of the turns to a temporary database for searching.

A run folder can be malicious: the viewer writes nothing into the folder, and opens no symbolic link
in it. An episode whose record cannot be read has the outcome "error".
"""

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.evaluation.metrics import verdict
from coding_gym.rollout.run_folder import ATTEMPTS, Key, Outcome, is_error, list_attempts
from coding_gym.trajectory import Trajectory
from coding_gym.viewer.turns import ESCAPE, argument_text, outcome, with_thoughts

_MAX_BYTES = 128 << 20  # maximum size of a record
_MAX_SEARCHED = 2_000_000  # maximum characters of an episode in the search
_STEP_S = 0.05  # time limit of one call of `RunIndex.enrich`
_SETTLED_S = 2  # two changes within this time can have equal modification times

Row = dict[str, Any]
Files = Mapping[Key, tuple[str, int]]
"""Name and inode of each attempt's record."""

_UNREAD: Row = {"outcome": "unread", "indexed": False}
_UNREAD |= dict.fromkeys(("reason", "stop_reason", "error_class"), "")
_UNREAD |= dict.fromkeys(("turns", "tokens", "cost", "duration_s", "reward", "started_at"))


class RunIndex:
    """The episodes of a run; its methods may be called from any thread.

    Args:
        folder: The run's folder.

    Attributes:
        rows: The table row of each attempt. Before the record is read, only the task, the attempt,
            ``outcome`` ("error" or "unread") and ``error_class`` are set.
    """

    def __init__(self, folder: Path) -> None:
        self.rows: dict[Key, Row] = {}
        self._folder = folder / ATTEMPTS
        self._files: Files = {}
        self._listed_version: object = None  # of the folder
        self._unread: list[Key] = []
        self._rowids: dict[Key, int] = {}  # in `texts`; a replaced record gets a new rowid
        self._new_rowids = count(1)
        self._lock = threading.Lock()  # guards the database
        self._texts = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._texts.close)
        self._texts.execute("CREATE VIRTUAL TABLE texts USING fts5(text, content='')")

    def update(self) -> bool:
        """Lists the records again; returns whether a record is new, replaced or removed."""
        current = version(self._folder)
        if current == self._listed_version and time.time() - current[0] > _SETTLED_S:
            return False
        old_files, self._files = self._files, list_attempts(self._folder)
        self._listed_version = current
        new_keys = [key for key, file in self._files.items() if old_files.get(key) != file]
        removed_keys = old_files.keys() - self._files.keys()
        for key in [*removed_keys, *new_keys]:
            self.rows.pop(key, None)
            self._rowids.pop(key, None)
        for task, attempt in new_keys:
            has_error = is_error(self._files[task, attempt][0])
            state = {"outcome": "error", "error_class": "unread"} if has_error else {}
            self.rows[task, attempt] = _UNREAD | {"task": task, "attempt": attempt} | state
        self._unread += new_keys
        return bool(new_keys or removed_keys)

    def enrich(self) -> bool:
        """Reads unread records for at most `_STEP_S` seconds; returns whether a record was read."""
        start, texts = time.monotonic(), []
        while self._unread and time.monotonic() - start < _STEP_S:
            key = self._unread.pop()
            if key in self.rows:
                fields, text = _read_fields(self._folder, self._files[key], key)
                self.rows[key] |= fields | {"indexed": True}
                self._rowids[key] = next(self._new_rowids)
                texts.append((self._rowids[key], text))
        with self._lock, self._texts:
            self._texts.execute("BEGIN")
            self._texts.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", texts)
        return bool(texts)

    def search(self, phrase: str) -> list[Key]:
        """Returns the keys of episodes with a phrase in the first `_MAX_SEARCHED` characters.

        The words must be consecutive; case is ignored, and the last word matches as a prefix.
        """
        quoted = _storable(phrase).replace('"', '""')
        sql = "SELECT rowid FROM texts WHERE texts MATCH ?"
        with self._lock:
            matches = {rowid for (rowid,) in self._texts.execute(sql, [f'"{quoted}" *'])}
        return [key for key, rowid in [*self._rowids.items()] if rowid in matches]

    def read(self, key: Key) -> Trajectory:
        """Returns the record of an episode; see `read_attempt`."""
        return _read_cached(self._folder, self._files.get(key), key)


def open_regular(path: Path) -> BinaryIO:
    """Opens a file for reading; raises an OSError if ``path`` is a symbolic link."""
    # Without O_NONBLOCK, opening a named pipe would block.
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")


def version(path: Path) -> tuple[float, int, int]:
    """Returns a path's modification time, inode and size; zeros if the path is missing."""
    with suppress(OSError):
        status = path.lstat()
        return status.st_mtime, status.st_ino, status.st_size
    return 0.0, 0, 0


def read_attempt(folder: Path, file: tuple[str, int] | None, key: Key) -> Trajectory:
    """Returns the record of an attempt.

    Args:
        folder: The run's folder of attempts.
        file: The name and inode of the record, from `list_attempts`; None if missing.
        key: The task id and the number of the attempt.

    Raises:
        UnknownNameError: ``file`` is None.
        InvalidArgumentError: The file cannot be read, or contains another attempt.
    """
    if file is None:
        raise UnknownNameError(f"the run has no attempt {key[1]} of task {key[0]!r:.100}")
    try:
        with open_regular(folder / file[0]) as content:
            data = content.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise ValueError(f"it has more than {_MAX_BYTES >> 20} MiB, the limit of the viewer")
        record = Trajectory.parse(data, file[0])
        if (record.task_id, record.attempt) != key:
            raise ValueError("it contains another attempt")
    except (OSError, ValueError, MemoryError) as problem:
        raise InvalidArgumentError(
            f"the record of task {key[0]!r:.100} cannot be read: {problem!s:.300}"
        ) from None
    return record


_read_cached = lru_cache(maxsize=2)(read_attempt)


def _read_fields(folder: Path, file: tuple[str, int], key: Key) -> tuple[Row, str]:
    """Returns the fields that a record adds to its row, and the text to search."""
    try:
        record = read_attempt(folder, file, key)
        numbers = {
            "tokens": Outcome.of(record).tokens,
            "cost": record.cost,
            "duration_s": record.duration_s,
            "reward": record.total_reward,
        }
        numbers = {name: value and float(value) for name, value in numbers.items()}
    except (InvalidArgumentError, TypeError, ValueError, OverflowError):
        return {"outcome": "error", **dict.fromkeys(("reason", "error_class"), "unreadable")}, ""
    fields = {
        "outcome": outcome(record),
        "error_class": record.error_class,
        "stop_reason": str(record.stop_reason or ""),
        "reason": str(record.grade.reason) if record.grade else record.error[:200],
        "turns": len(record.turns),
        "started_at": record.started_at[:40] or None,
    }
    text = "\n".join(_searched_texts(record))[:_MAX_SEARCHED]
    return fields | numbers | verdict(record), ESCAPE.sub("", _storable(text))


def _storable(text: str) -> str:
    """Returns a text that SQLite can store; "?" replaces lone surrogates and NULs."""
    return text.encode(errors="replace").decode().replace("\0", "?")


def _searched_texts(record: Trajectory) -> Iterator[str]:
    """Yields the texts of all turns: thoughts, names and arguments of calls, observations."""
    for turn, thought, _ in with_thoughts(record):
        yield thought
        for call in turn.calls:
            yield call.name
            yield from map(argument_text, call.arguments.values())
        yield turn.observation
