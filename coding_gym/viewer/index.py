"""The index of one run: a sqlite database in the user's cache, filled while it is used.

`RunIndex.update` copies new rows of ``index.jsonl``, so that every episode can be listed at once.
`RunIndex.enrich` then reads the records, each once, and adds the fields that rows lack and the text
of the turns for searching. Both work in small steps and remember in the database how far they are,
so that any number of viewers may fill one index and a restarted viewer continues.

A run folder may be hostile, or on a disk on which sqlite cannot work, so nothing is written there.
Its files are opened by fixed names only, never through symbolic links; an episode whose record
cannot be read is marked as unreadable.
"""

import atexit
import hashlib
import json
import math
import os
import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock
from platformdirs import user_cache_path

from coding_gym.errors import InvalidArgumentError
from coding_gym.rollout import run_folder
from coding_gym.trajectory import Trajectory, Turn

ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""A control sequence of a terminal; strings such as window titles could hide any text."""
UNREADABLE = "unreadable"
"""The ``reason`` of an episode whose record cannot be read."""

_MAX_RECORD_BYTES = 128 << 20
_MAX_SEARCHED = 2_000_000  # characters of an episode
_ROWS_BYTES, _RECORDS, _STEP_S = 512 << 10, 50, 0.1  # of one step
_VERSION = 4  # of the tables
_NO_FILE = (0.0, 0, 0)  # its `version`
_NOT_LISTED = (*_NO_FILE, 0)
_FILE = re.compile(rf"trajectories-[0-9]+\.jsonl|{re.escape(run_folder.ERRORS)}")

STARTED = "coalesce(started_at, '~')"
"""The column to sort by that has an index; episodes without a date come last."""

# Rows of `texts` belong to the episodes of the same id. No id is used twice, so that texts of an
# attempt that was played again are never found.
_SCHEMA = f"""
PRAGMA journal_mode = WAL;
BEGIN IMMEDIATE;
PRAGMA user_version = 1;
CREATE TABLE IF NOT EXISTS progress (end INTEGER, first BLOB);
CREATE TABLE IF NOT EXISTS tasks (task TEXT PRIMARY KEY, repo TEXT, difficulty TEXT);
CREATE TABLE IF NOT EXISTS episodes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, task TEXT, attempt INTEGER,
    file TEXT, offset INTEGER, length INTEGER,
    outcome TEXT, error_class TEXT, tokens INTEGER, cost REAL,
    indexed INTEGER DEFAULT 0, stop_reason TEXT DEFAULT '', reason TEXT DEFAULT '', turns INTEGER,
    duration_s REAL, reward REAL, started_at TEXT,
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
_ADD_TASK = "INSERT OR REPLACE INTO tasks VALUES (?, ?, ?)"

Row = dict[str, Any]


class RunIndex:
    """The index of a run.

    Every call opens a connection of its own, so that all methods may be called from any thread.

    Args:
        folder: The run's folder.
        identity: Tells the run from others that were or will be in the same folder.

    Attributes:
        database: Its file, alone in a folder.
        listed: The `version` of ``index.jsonl`` when all of its rows were copied, and the inode of
            the database that has them.
    """

    def __init__(self, folder: Path, *identity: object) -> None:
        self.folder = folder
        self.listed = _NOT_LISTED
        self._tasks: list[list[Any]] = []
        key = hashlib.sha256(repr((_VERSION, str(folder.resolve()), *identity)).encode())
        place = _writable(user_cache_path("coding_gym") / "views") / key.hexdigest()[:24]
        self.database = place / "view.sqlite"

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Returns the rows of a query as dictionaries."""
        with self._connected() as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(sql, [*map(storable, parameters)])]

    def list_all(self) -> None:
        """Copies all rows of ``index.jsonl``."""
        with suppress(sqlite3.DatabaseError):  # it was damaged, and is gone
            while self.update():
                pass
        while self.update():
            pass

    def complete(self) -> None:
        """Fills the whole index."""
        self.list_all()
        while self.enrich():
            pass

    def update(self) -> bool:
        """Copies some new rows of ``index.jsonl``; returns whether the file has changed.

        A later row of an attempt replaces an earlier one that is an error. If the file became
        shorter or begins differently, the index is built anew. A database that was removed is
        another file now, which has no tasks yet.
        """
        state = (*version(self.folder / run_folder.INDEX), version(self.database)[1])
        if state == self.listed:
            return False
        try:
            with open_regular(self.folder, run_folder.INDEX) as file, self._written() as index:
                if state[-1] != self.listed[-1]:
                    index.executemany(_ADD_TASK, self._tasks)
                if not _copy_rows(index, file):
                    self.listed = state
        except OSError:  # it is a link, or no file
            return False
        return True

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
            with self._written() as connection:
                _add_facts(connection, read)
        return bool(read)

    def set_tasks(self, labels: Iterable[tuple[str, str, str]]) -> None:
        """Keeps task ids with their repository and difficulty."""
        self._tasks = [[*map(storable, row)] for row in labels]
        with self._written() as connection:
            connection.executemany(_ADD_TASK, self._tasks)

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Opens the database, and makes it where there is none; a damaged one is removed."""
        self.database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        connected = sqlite3.connect(self.database, timeout=10, isolation_level=None)
        try:
            with closing(connected) as connection:
                if not connection.execute("PRAGMA user_version").fetchone()[0]:
                    # Of two connections that change the journal's mode one would fail at once.
                    with FileLock(self.database.parent / ".lock", timeout=10):
                        connection.executescript(_SCHEMA)
                    self.listed = _NOT_LISTED  # the rows that were copied are gone
                yield connection
        except sqlite3.DatabaseError as problem:
            if type(problem) is sqlite3.DatabaseError:  # the classes below it mean something else
                shutil.rmtree(self.database.parent, ignore_errors=True)
            raise

    @contextmanager
    def _written(self) -> Iterator[sqlite3.Connection]:
        """Opens the database for one transaction, which no other one overlaps."""
        with self._connected() as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection


@cache
def _writable(place: Path) -> Path:
    """Returns a folder, or a private one until the program ends where it cannot be written to."""
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            return place
    except OSError:
        private = Path(tempfile.mkdtemp(prefix="coding-gym-views-"))
        atexit.register(shutil.rmtree, private, ignore_errors=True)
        return private


def read_record(folder: Path, row: Row) -> Trajectory:
    """Returns the record that a row of the index stands for.

    Raises:
        InvalidArgumentError: It cannot be read, or is that of another episode.
    """
    try:
        if not _FILE.fullmatch(row["file"]) or not 0 < row["length"] <= _MAX_RECORD_BYTES:
            raise ValueError(f"{row['length']} bytes of {row['file']!r:.100}")
        with open_regular(folder, row["file"]) as file:
            file.seek(row["offset"])
            record = Trajectory.from_json(_parsed(file.read(row["length"]).decode()))
        if (storable(record.task_id), record.attempt) != (row["task"], row["attempt"]):
            raise ValueError("another episode stands in its place")
    except (OSError, ValueError, RecursionError, MemoryError) as problem:
        raise InvalidArgumentError(
            f"the record of {row['task']!r:.100} cannot be read: {problem!s:.300}"
        ) from None
    return record


def open_regular(folder: Path, name: str) -> BinaryIO:
    """Opens a file of a folder for reading.

    Raises:
        OSError: It is a symbolic link, or cannot be opened.
    """
    # Without O_NONBLOCK a named pipe would wait for its writer.
    return os.fdopen(os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")


def version(path: Path) -> tuple[float, int, int]:
    """Returns when a file was modified, its inode and its size; zeros where there is none."""
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return _NO_FILE
    return status.st_mtime, status.st_ino, status.st_size


def storable(value: Any) -> Any:
    """Returns a value as sqlite and its JSON take it.

    Lone surrogates and NULs become question marks, infinite numbers None.
    """
    if isinstance(value, str):
        return value.encode(errors="replace").decode().replace("\0", "?")
    return None if isinstance(value, float) and not math.isfinite(value) else value


def with_thoughts(record: Trajectory) -> list[tuple[Turn, str]]:
    """Returns each turn with the text of its action but the calls; "" where it cannot be told."""
    said = [message["content"] for message in record.messages if message["role"] == "assistant"]
    pairs = zip(record.turns, [*said, *[""] * len(record.turns)], strict=False)
    return [(turn, thought if turn.calls else turn.action) for turn, thought in pairs]


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
        record = read_record(folder, row)
        tokens = sum(record.usage.get(name) or 0 for name in run_folder.TOKEN_COUNTS)
    except (InvalidArgumentError, TypeError):
        why = dict.fromkeys(("reason", "error_class"), UNREADABLE)
        return {"id": row["id"], "outcome": "error", **why}, ""
    facts = {
        "id": row["id"],
        "outcome": outcome(record),
        "error_class": record.error_class,
        "tokens": tokens,
        "cost": record.cost,
        "stop_reason": str(record.stop_reason or ""),
        "reason": str(record.grade.reason) if record.grade else record.error[:200],
        "turns": len(record.turns),
        "duration_s": record.duration_s,
        "reward": record.total_reward,
        "started_at": record.started_at[:40] or None,
    }
    text = ESCAPE.sub("", storable("\n".join(_searched(record))))[:_MAX_SEARCHED]
    return {name: storable(value) for name, value in facts.items()}, text


def _searched(record: Trajectory) -> Iterator[str]:
    """Yields the texts of all turns: thoughts, calls and observations."""
    for turn, thought in with_thoughts(record):
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
