"""The index of one run: a sqlite database beside the run's files, filled while it is used.

`RunIndex.update` copies new rows of ``index.jsonl``, so that every episode can be listed at once.
`RunIndex.enrich` then reads the records, each once, and adds the fields that rows lack and the text
of the turns for searching. Both work in small steps and remember in the database how far they are,
so that any number of viewers may fill one index and a restarted viewer continues.

A folder may come from a stranger. Files are opened by fixed names only, never through symbolic
links; a database that is a link, damaged or of another version is replaced; an episode whose
record cannot be read is marked as unreadable.
"""

import json
import os
import re
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from coding_gym.errors import InvalidArgumentError
from coding_gym.rollout.run_folder import ERRORS, INDEX
from coding_gym.trajectory import Trajectory

DATABASE = "view.sqlite"
UNREADABLE = "unreadable"
"""The ``reason`` of an episode whose record cannot be read."""

_MAX_RECORD_BYTES = 128 << 20
_MAX_SEARCHED = 2_000_000  # characters of an episode
_MAX_INT = 2**62
_ROWS_BYTES, _RECORDS, _STEP_S = 512 << 10, 50, 0.1  # of one step
_VERSION = 1  # of the tables
# Errors that a new database would not help against; after all others the old one is damaged.
_PASSING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
_FILE = re.compile(rf"trajectories-[0-9]+\.jsonl|{re.escape(ERRORS)}")

# Rows of `texts` belong to the episodes of the same id. No id is used twice, so that texts of an
# attempt that was played again are never found.
STARTED = "coalesce(started_at, '~')"
"""The column to sort by that has an index; episodes without a date come last."""

_SCHEMA = f"""
PRAGMA journal_mode = WAL;
BEGIN IMMEDIATE;
PRAGMA user_version = {_VERSION};
CREATE TABLE IF NOT EXISTS progress (end INTEGER, first BLOB, changes INTEGER);
CREATE TABLE IF NOT EXISTS tasks (task TEXT PRIMARY KEY, repo TEXT, difficulty TEXT);
CREATE TABLE IF NOT EXISTS episodes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, task TEXT, attempt INTEGER,
    file TEXT, offset INTEGER, length INTEGER,
    outcome TEXT, error_class TEXT, tokens INTEGER, cost REAL,
    indexed INTEGER DEFAULT 0, stop_reason TEXT DEFAULT '', reason TEXT DEFAULT '', turns INTEGER,
    duration_s REAL, reward REAL, started_at TEXT, ended_at REAL,
    UNIQUE (task, attempt)
);
CREATE INDEX IF NOT EXISTS waiting ON episodes (id) WHERE NOT indexed;
CREATE INDEX IF NOT EXISTS started ON episodes (coalesce(started_at, '~'), id);
CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5(text, content='', columnsize=0);
INSERT INTO progress SELECT 0, x'', 0 WHERE NOT EXISTS (SELECT * FROM progress);
COMMIT;
"""  # noqa: S608 - a number

Result = TypeVar("Result")
Row = dict[str, Any]


class RunIndex:
    """The index of a run.

    Every call opens a connection of its own, so that all methods may be called from any thread.

    Args:
        folder: The run's folder. Where it cannot be written, the database is a temporary one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: tuple[int, ...] = ()  # the state of index.jsonl when all of it was copied
        self._is_waiting = True  # whether there may be records to read
        self._preparing = threading.Lock()
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._path = folder / DATABASE
        try:
            try:
                self._prepare()
            except sqlite3.DatabaseError:
                self._prepare(anew=True)
        except (sqlite3.Error, OSError):
            self._temporary = tempfile.TemporaryDirectory(prefix="coding-gym-view-")
            self._path = Path(self._temporary.name) / DATABASE
            self._prepare()

    def close(self) -> None:
        """Removes the database if it is a temporary one."""
        if self._temporary is not None:
            self._temporary.cleanup()

    @property
    def is_listed(self) -> bool:
        """Whether all rows were copied."""
        return bool(self._seen)

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Returns the rows of a query as dictionaries; see `values` for many rows."""

        def run(connection: sqlite3.Connection) -> list[Row]:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(sql, parameters)]

        return self._use(run)

    def values(self, sql: str) -> list[Any]:
        """Returns the values of a query's column ``value``, which is JSON, in any order.

        It is much faster than `query` for many rows while other threads are at work: sqlite gives
        up the interpreter's lock for each row.
        """
        rows = self.query(f"SELECT json_group_array(json(value)) AS found FROM ({sql})")  # noqa: S608
        return list(json.loads(rows[0]["found"]))

    def changes(self) -> int:
        """Returns a number that grows with every change, by whatever process."""
        return int(self.query("SELECT changes FROM progress")[0]["changes"])

    def complete(self) -> None:
        """Fills the whole index."""
        while self.update() or self.enrich():
            pass

    def update(self) -> bool:
        """Copies some new rows of ``index.jsonl``; returns whether anything was new.

        A later row of an attempt replaces an earlier one that is an error. If the file became
        shorter or begins differently, the index is built anew.
        """
        try:
            with open_regular(self.folder, INDEX) as file:
                state = os.fstat(file.fileno())
                seen = state.st_ino, state.st_size, state.st_mtime_ns
                if seen == self._seen:
                    return False
                self._is_waiting = True
                if self._use(lambda connection: _copy_rows(connection, file), write=True):
                    return True
        except OSError:  # there is none yet
            return False
        self._seen = seen
        return False

    def enrich(self) -> bool:
        """Reads some records that were not read yet, the oldest first; returns whether any were."""
        sql = "SELECT * FROM episodes WHERE NOT indexed ORDER BY id LIMIT ?"
        waiting = self.query(sql, [_RECORDS]) if self._is_waiting else []
        read: list[tuple[Row, str]] = []
        start = time.monotonic()
        for row in waiting:
            read.append(self._facts(row))
            if time.monotonic() - start > _STEP_S:
                break
        if read:
            self._use(lambda connection: _add_facts(connection, read), write=True)
        self._is_waiting = bool(read)
        return bool(read)

    def set_tasks(self, labels: Iterable[tuple[str, str, str]]) -> None:
        """Keeps task ids with their repository and difficulty."""
        rows = json.dumps([tuple(map(clean, row)) for row in labels])

        def run(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT OR REPLACE INTO tasks SELECT value ->> 0, value ->> 1, value ->> 2 "
                "FROM json_each(?)",
                [rows],
            )
            connection.execute("UPDATE progress SET changes = changes + 1")

        self._use(run, write=True)

    def read(self, row: Row) -> Trajectory:
        """Returns the record of a row.

        Raises:
            InvalidArgumentError: It cannot be read.
        """
        try:
            if not _FILE.fullmatch(row["file"]) or row["length"] > _MAX_RECORD_BYTES:
                raise ValueError(f"{row['length']} bytes of {row['file']!r:.100}")
            with open_regular(self.folder, row["file"]) as file:
                file.seek(row["offset"])
                text = file.read(row["length"]).decode()
            record = Trajectory.from_json(json.loads(text))
            if (clean(record.task_id), record.attempt) != (row["task"], row["attempt"]):
                raise ValueError("another episode stands in its place")
        except (OSError, ValueError, RecursionError, MemoryError) as problem:
            raise InvalidArgumentError(
                f"the record of {row['task']!r:.100} cannot be read: {problem!s:.300}"
            ) from None
        return record

    def _facts(self, row: Row) -> tuple[Row, str]:
        """Returns the fields that a record adds to its row, and the text to search."""
        try:
            record = self.read(row)
            facts = {
                "stop_reason": str(record.stop_reason or ""),
                "reason": clean(record.grade.reason if record.grade else record.error[:200]),
                "turns": len(record.turns),
                "duration_s": number(record.duration_s),
                "reward": number(record.total_reward),
                "started_at": clean(record.started_at)[:40] or None,
                "ended_at": _ended_at(record),
            }
        except (InvalidArgumentError, OverflowError):
            return {"id": row["id"], "reason": UNREADABLE}, ""
        return {"id": row["id"], **facts}, clean("\n".join(_searched(record)))[:_MAX_SEARCHED]

    def _use(self, work: Callable[[sqlite3.Connection], Result], *, write: bool = False) -> Result:
        """Calls a function with a connection; a damaged or lost database is built anew, once.

        With ``write``, the function's changes are one transaction, which no other one overlaps.
        """
        for is_last in (False, True):
            try:
                connection = sqlite3.connect(self._path, timeout=10, isolation_level=None)
                with closing(connection):
                    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                    result = work(connection)
                    connection.execute("COMMIT")
                    return result
            except sqlite3.DatabaseError as problem:
                if is_last or getattr(problem, "sqlite_errorcode", 0) & 0xFF in _PASSING:
                    raise
                self._prepare(anew=True)
        raise AssertionError("the loop returns or raises")

    def _prepare(self, *, anew: bool = False) -> None:
        """Makes the tables where there are none; with ``anew``, or for a link, in a new file."""
        files = [self._path.with_name(self._path.name + end) for end in ("", "-wal", "-shm")]
        with self._preparing:
            if anew or any(file.is_symlink() for file in files):
                for file in files:
                    file.unlink(missing_ok=True)
            with closing(sqlite3.connect(self._path, timeout=10)) as connection:
                if connection.execute("PRAGMA user_version").fetchone()[0] not in (0, _VERSION):
                    raise sqlite3.DatabaseError(f"{self._path} is of another version")
                connection.executescript(_SCHEMA)
            self._seen = ()


def open_regular(folder: Path, name: str) -> BinaryIO:
    """Opens a file of a folder for reading.

    Raises:
        OSError: It is a symbolic link, or cannot be opened.
    """
    # Without O_NONBLOCK a named pipe would wait for its writer.
    return os.fdopen(os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")


def clean(text: str) -> str:
    """Returns a text that sqlite takes: lone surrogates and NULs become question marks."""
    return text.encode(errors="replace").decode().replace("\0", "?")


def number(value: float | None) -> float | None:
    """Returns a number that sqlite can hold; None for one that is infinite, huge or none."""
    return value if value is not None and abs(value) < _MAX_INT else None


def thoughts(record: Trajectory) -> list[str]:
    """Returns the text of each action without its calls; "" where it cannot be told."""
    said = [message["content"] for message in record.messages if message["role"] == "assistant"]
    said += [""] * len(record.turns)
    return [
        thought if turn.calls else turn.action
        for turn, thought in zip(record.turns, said, strict=False)
    ]


def argument_text(value: object) -> str:
    """Returns an argument of a call as text; JSON if it is none."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _searched(record: Trajectory) -> Iterator[str]:
    """Yields the texts of all turns: thoughts, calls and observations."""
    for turn, thought in zip(record.turns, thoughts(record), strict=True):
        yield thought
        for call in turn.calls:
            yield call.name
            yield from map(argument_text, call.arguments.values())
        yield turn.observation


def _ended_at(record: Trajectory) -> float | None:
    """Returns when an episode ended, in seconds since 1970; None where the record is silent."""
    try:
        return number(datetime.fromisoformat(record.started_at).timestamp() + record.duration_s)
    except (ValueError, OSError):
        return None


def _copy_rows(connection: sqlite3.Connection, file: BinaryIO) -> bool:
    """Copies the next rows of ``index.jsonl``; returns whether there was anything."""
    end, first = connection.execute("SELECT end, first FROM progress").fetchone()
    file.seek(0)
    line = file.readline(1000)
    is_other = end and (os.fstat(file.fileno()).st_size < end or line != first)
    if is_other:
        connection.execute("DELETE FROM episodes")
        connection.execute("INSERT INTO texts (texts) VALUES ('delete-all')")
        end = 0
    file.seek(end)
    lines = file.read(_ROWS_BYTES)
    size = lines.rfind(b"\n") + 1  # a line without its end comes later
    if not size and len(lines) == _ROWS_BYTES:  # no row is as long
        size = len(lines)
    rows: dict[tuple[str, int], tuple[object, ...]] = {}
    for row in filter(None, map(_parsed, lines[:size].splitlines())):
        if rows.get(row[:2], row)[-1] == "error" or row[:2] not in rows:
            rows[row[:2]] = row
    # One statement for all: each row of a statement would wait for the interpreter's lock.
    content = json.dumps([*rows.values()])
    connection.execute(
        "DELETE FROM episodes WHERE outcome = 'error' AND (task, attempt) IN "
        "(SELECT value ->> 0, value ->> 1 FROM json_each(?))",
        [content],
    )
    connection.execute(
        "INSERT OR IGNORE INTO episodes (task, attempt, file, offset, length, tokens, cost, "
        "error_class, outcome) SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, "
        "value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8 FROM json_each(?)",
        [content],
    )
    if size or is_other:
        values = end + size, line
        connection.execute("UPDATE progress SET end = ?, first = ?, changes = changes + 1", values)
    return size > 0


def _parsed(line: bytes) -> Any:
    """Returns the columns of a line of ``index.jsonl``; None if it is no row."""
    try:
        data = json.loads(line)
        attempt, *place = [data[name] for name in ("attempt", "offset", "length")]
        if not all(type(value) is int and 0 <= value < _MAX_INT for value in (attempt, *place)):
            return None
        amounts = [number(data.get(name)) for name in ("tokens", "cost")]
        error = clean(data.get("error_class") or "")
        outcome = "resolved" if data.get("resolved") is True else "unresolved"
        start = clean(data["task_id"]), attempt, clean(data["file"])
        return *start, *place, *amounts, error, "error" if error else outcome
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def _add_facts(connection: sqlite3.Connection, read: Iterable[tuple[Row, str]]) -> None:
    for facts, text in read:
        columns = ", ".join(f"{name} = :{name}" for name in facts)
        sql = f"UPDATE episodes SET {columns}, indexed = 1 WHERE id = :id AND NOT indexed"  # noqa: S608
        if connection.execute(sql, facts).rowcount:  # no other viewer was faster
            connection.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", (facts["id"], text))
    connection.execute("UPDATE progress SET changes = changes + 1")
