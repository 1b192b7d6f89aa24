"""The index of one run: a sqlite database beside the run's files, filled while it is used.

`RunIndex.update` copies new rows of ``index.jsonl``, so that every episode can be listed at once.
`RunIndex.enrich` then reads the records, each once, and adds the fields that rows lack and the text
of the turns for searching. Both work in small steps and remember in the database how far they are,
so that any number of viewers may fill one index and a restarted viewer continues.

A run folder may be hostile. Files are opened by fixed names only, never through symbolic links; a
database that is no regular file, is damaged or has other tables is replaced; an episode whose
record cannot be read is marked as unreadable.
"""

import json
import math
import os
import re
import shutil
import sqlite3
import stat
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from coding_gym.errors import InvalidArgumentError
from coding_gym.rollout import run_folder
from coding_gym.trajectory import Trajectory

DATABASE = "view.sqlite"
ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""A control sequence of a terminal; strings such as window titles could hide any text."""
UNREADABLE = "unreadable"
"""The ``reason`` of an episode whose record cannot be read."""

_MAX_RECORD_BYTES = 128 << 20
_MAX_SEARCHED = 2_000_000  # characters of an episode
_ROWS_BYTES, _RECORDS, _STEP_S = 512 << 10, 50, 0.1  # of one step
_VERSION = 3  # of the tables
# Errors that a new database would not help against; after all others the old one is damaged.
_PASSING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
_FILE = re.compile(rf"trajectories-[0-9]+\.jsonl|{re.escape(run_folder.ERRORS)}")

STARTED = "coalesce(started_at, '~')"
"""The column to sort by that has an index; episodes without a date come last."""

# Rows of `texts` belong to the episodes of the same id. No id is used twice, so that texts of an
# attempt that was played again are never found.
_SCHEMA = f"""
PRAGMA journal_mode = WAL;
BEGIN IMMEDIATE;
PRAGMA user_version = {_VERSION};
CREATE TABLE IF NOT EXISTS progress (end INTEGER, first BLOB);
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
CREATE INDEX IF NOT EXISTS started ON episodes ({STARTED}, id);
CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5(text, content='', columnsize=0);
INSERT INTO progress SELECT 0, x'' WHERE NOT EXISTS (SELECT * FROM progress);
COMMIT;
"""  # noqa: S608 - constants
_ADD_ROW = """
INSERT OR REPLACE INTO episodes
    (task, attempt, file, offset, length, error_class, outcome, tokens, cost)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 WHERE NOT EXISTS
    (SELECT * FROM episodes WHERE task = ?1 AND attempt = ?2 AND outcome != 'error')
"""

Result = TypeVar("Result")
Row = dict[str, Any]


class RunIndex:
    """The index of a run.

    Every call opens a connection of its own, so that all methods may be called from any thread.

    Args:
        folder: The run's folder. Where it cannot be written, the database is a temporary one.

    Attributes:
        listed: The state of ``index.jsonl`` when all of its rows were copied; () before.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.listed: tuple[int, ...] = ()
        self._path = folder / DATABASE
        self.query("SELECT * FROM progress")  # makes the tables

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Returns the rows of a query as dictionaries."""

        def run(connection: sqlite3.Connection) -> list[Row]:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(sql, [*map(storable, parameters)])]

        return self._use(run)

    def complete(self) -> None:
        """Fills the whole index."""
        while self.update() or self.enrich() or self.update():
            pass  # the last `update` follows an `enrich` that found a damaged database

    def update(self) -> bool:
        """Copies some new rows of ``index.jsonl``; returns whether the file has changed.

        A later row of an attempt replaces an earlier one that is an error. If the file became
        shorter or begins differently, the index is built anew.
        """
        try:
            with open_regular(self.folder, run_folder.INDEX) as file:
                status = os.fstat(file.fileno())
                state = status.st_ino, status.st_size, status.st_mtime_ns
                if state == self.listed:
                    return False
                if not self._use(lambda connection: _copy_rows(connection, file), write=True):
                    self.listed = state
                return True
        except OSError:  # there is none yet
            return False

    def enrich(self) -> bool:
        """Reads some records that were not read yet, the oldest first; returns whether any were."""
        sql = "SELECT * FROM episodes WHERE NOT indexed ORDER BY id LIMIT ?"
        read: list[tuple[Row, str]] = []
        start = time.monotonic()
        for row in self.query(sql, [_RECORDS]):
            read.append(_facts(self.folder, row))
            if time.monotonic() - start > _STEP_S:
                break
        if read:
            self._use(lambda connection: _add_facts(connection, read), write=True)
        return bool(read)

    def set_tasks(self, labels: Iterable[tuple[str, str, str]]) -> None:
        """Keeps task ids with their repository and difficulty."""
        rows = [[*map(storable, row)] for row in labels]
        sql = "INSERT OR REPLACE INTO tasks VALUES (?, ?, ?)"
        self._use(lambda connection: connection.executemany(sql, rows), write=True)

    def _use(self, work: Callable[[sqlite3.Connection], Result], *, write: bool = False) -> Result:
        """Calls a function with a connection.

        A damaged database is removed and built anew; a temporary one is used if that fails too.
        With ``write``, the function's changes are one transaction, which no other one overlaps.
        """
        for recover in (self._remove, self._use_temporary, None):
            try:
                with closing(self._connect()) as connection:
                    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                    result = work(connection)
                    connection.execute("COMMIT")
                    return result
            except sqlite3.Error as problem:
                code = getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_NOTADB)
                if recover is None or code & 0xFF in _PASSING:
                    raise
                recover()
        raise AssertionError("the loop returns or raises")

    def _connect(self) -> sqlite3.Connection:
        """Opens the database and makes the tables where there are none."""
        for file in self._files():
            with suppress(FileNotFoundError):
                if not stat.S_ISREG(file.lstat().st_mode):
                    raise sqlite3.DatabaseError(f"{file} is a link, or no file")
        connection = sqlite3.connect(self._path, timeout=10, isolation_level=None)
        try:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if not version:
                connection.executescript(_SCHEMA)
            elif version != _VERSION or _tables(connection) != _wanted_tables():
                raise sqlite3.DatabaseError(f"{self._path} is of another version")
        except BaseException:
            connection.close()
            raise
        return connection

    def _files(self) -> list[Path]:
        return [self._path.with_name(self._path.name + end) for end in ("", "-wal", "-shm")]

    def _remove(self) -> None:
        self.listed = ()
        with suppress(OSError):
            for file in self._files():
                file.unlink(missing_ok=True)

    def _use_temporary(self) -> None:
        folder = tempfile.mkdtemp(prefix="coding-gym-view-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._path = Path(folder) / DATABASE


def _tables(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    return connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2").fetchall()


@cache
def _wanted_tables() -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA)
        return _tables(connection)


def read_record(
    folder: Path, task: str, attempt: int, file: str, offset: int, length: int
) -> Trajectory:
    """Returns the record that stands at a place of a run's folder.

    Raises:
        InvalidArgumentError: It cannot be read, or is that of another episode.
    """
    try:
        if not _FILE.fullmatch(file) or not 0 < length <= _MAX_RECORD_BYTES:
            raise ValueError(f"{length} bytes of {file!r:.100}")
        with open_regular(folder, file) as opened:
            opened.seek(offset)
            record = Trajectory.from_json(_parsed(opened.read(length).decode()))
        if (storable(record.task_id), record.attempt) != (task, attempt):
            raise ValueError("another episode stands in its place")
    except (OSError, ValueError, RecursionError, MemoryError) as problem:
        raise InvalidArgumentError(
            f"the record of {task!r:.100} cannot be read: {problem!s:.300}"
        ) from None
    return record


def place(row: Row) -> tuple[str, int, str, int, int]:
    """Returns the arguments of `read_record` for a row."""
    return row["task"], row["attempt"], row["file"], row["offset"], row["length"]


def open_regular(folder: Path, name: str) -> BinaryIO:
    """Opens a file of a folder for reading.

    Raises:
        OSError: It is a symbolic link, or cannot be opened.
    """
    # Without O_NONBLOCK a named pipe would wait for its writer.
    return os.fdopen(os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")


def storable(value: Any) -> Any:
    """Returns a value as sqlite and its JSON take it.

    Lone surrogates and NULs become question marks, infinite numbers None.
    """
    if isinstance(value, str):
        return value.encode(errors="replace").decode().replace("\0", "?")
    return None if isinstance(value, float) and not math.isfinite(value) else value


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


def _parsed(text: str | bytes) -> Any:
    """Returns a JSON value; an integer that sqlite cannot hold becomes a floating-point number."""
    return json.loads(text, parse_int=lambda digits: (int if len(digits) < 19 else float)(digits))


def _copy_rows(connection: sqlite3.Connection, file: BinaryIO) -> bool:
    """Copies the next rows of ``index.jsonl``; returns whether there was anything."""
    end, first = connection.execute("SELECT end, first FROM progress").fetchone()
    line = file.readline(1000)
    if end and (os.fstat(file.fileno()).st_size < end or line != first):
        connection.execute("DELETE FROM episodes")
        connection.execute("INSERT INTO texts (texts) VALUES ('delete-all')")
        end = 0
    file.seek(end)
    lines = file.read(_ROWS_BYTES)
    size = lines.rfind(b"\n") + 1  # a line without its end comes later
    if not size and len(lines) == _ROWS_BYTES:  # no row is as long
        size = len(lines)
    connection.executemany(_ADD_ROW, _rows(lines[:size]))
    connection.execute("UPDATE progress SET end = ?, first = ?", [end + size, line])
    return size > 0


def _rows(lines: bytes) -> Iterator[list[Any]]:
    """Yields the columns of lines of ``index.jsonl``; those that are no rows are left out."""
    for line in lines.splitlines():
        with suppress(ValueError, RecursionError):
            row = run_folder.Row.from_json(_parsed(line))
            where = row.file, row.offset, row.length
            columns = *row.key, *where, row.error_class, outcome(row), row.tokens, row.cost
            yield [*map(storable, columns)]


def outcome(of: run_folder.Row | Trajectory) -> str:
    """Returns "resolved", "unresolved" or "error"."""
    return "error" if of.error_class else "resolved" if of.resolved else "unresolved"


def _facts(folder: Path, row: Row) -> tuple[Row, str]:
    """Returns the fields that a record adds to its row or corrects, and the text to search."""
    try:
        record = read_record(folder, *place(row))
    except InvalidArgumentError:
        why = dict.fromkeys(("reason", "error_class"), UNREADABLE)
        return {"id": row["id"], "outcome": "error", **why}, ""
    ended_at = None
    with suppress(ValueError, OverflowError, OSError):
        ended_at = datetime.fromisoformat(record.started_at).timestamp() + record.duration_s
    facts = {
        "id": row["id"],
        "outcome": outcome(record),
        "error_class": record.error_class,
        "tokens": run_folder.Row.of(record, *place(row)[2:]).tokens,
        "cost": record.cost,
        "stop_reason": str(record.stop_reason or ""),
        "reason": str(record.grade.reason) if record.grade else record.error[:200],
        "turns": len(record.turns),
        "duration_s": record.duration_s,
        "reward": record.total_reward,
        "started_at": record.started_at[:40] or None,
        "ended_at": ended_at,
    }
    text = ESCAPE.sub("", storable("\n".join(_searched(record))))[:_MAX_SEARCHED]
    return {name: storable(value) for name, value in facts.items()}, text


def _searched(record: Trajectory) -> Iterator[str]:
    """Yields the texts of all turns: thoughts, calls and observations."""
    for turn, thought in zip(record.turns, thoughts(record), strict=True):
        yield thought
        for call in turn.calls:
            yield call.name
            yield from map(argument_text, call.arguments.values())
        yield turn.observation


def _add_facts(connection: sqlite3.Connection, read: Iterable[tuple[Row, str]]) -> None:
    for facts, text in read:
        columns = ", ".join(f"{name} = :{name}" for name in facts)
        sql = f"UPDATE episodes SET {columns}, indexed = 1 WHERE id = :id AND NOT indexed"  # noqa: S608
        if connection.execute(sql, facts).rowcount:  # no other viewer was faster
            connection.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", (facts["id"], text))
