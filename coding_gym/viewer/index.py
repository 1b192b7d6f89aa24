"""The index of one run: a sqlite database beside the run's files, filled while it is used.

`RunIndex.update` copies new rows of ``index.jsonl``, so that every episode can be listed at once.
`RunIndex.enrich` then reads the records, each once, and adds fields that the rows lack and the text
of the turns for searching. Both work in small steps and remember in the database how far they are,
so that any number of viewers may fill one index and a restarted viewer continues.

A folder may come from a stranger. Files are opened by fixed names only, never through symbolic
links; an existing database is used only if it has exactly the expected tables; a record that cannot
be read is marked as unreadable.
"""

import json
import os
import re
import sqlite3
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from coding_gym.errors import CodingGymError, InvalidArgumentError, UnknownNameError
from coding_gym.rollout.run_folder import ERRORS, INDEX
from coding_gym.trajectory import Trajectory, Turn

DATABASE = "view.sqlite"
UNREADABLE = "unreadable"
"""The ``reason`` of an episode whose record cannot be read."""

MAX_RECORD_BYTES = 128 << 20
_MAX_SEARCHED = 2_000_000  # characters of an episode
_ROWS_BYTES = 512 << 10  # of index.jsonl, in one step
_STEP_S = 0.1
_MAX_INT = 2**62
_FILE = re.compile(rf"trajectories-[0-9]+\.jsonl|{re.escape(ERRORS)}")
_DAMAGE = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

_SCHEMA = """
CREATE TABLE progress (end INTEGER, first BLOB, changes INTEGER);
CREATE TABLE tasks (task TEXT PRIMARY KEY, repo TEXT, difficulty TEXT);
CREATE TABLE episodes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, task TEXT, attempt INTEGER,
    file TEXT, offset INTEGER, length INTEGER,
    outcome TEXT, error_class TEXT, tokens INTEGER, cost REAL,
    indexed INTEGER DEFAULT 0, stop_reason TEXT DEFAULT '', reason TEXT DEFAULT '', turns INTEGER,
    duration_s REAL, reward REAL, started_at TEXT, ended_at REAL,
    UNIQUE (task, attempt)
);
CREATE INDEX waiting ON episodes (id) WHERE NOT indexed;
CREATE VIRTUAL TABLE texts USING fts5(text, content='', columnsize=0);
INSERT INTO progress VALUES (0, x'', 0);
"""
# Rows of `texts` belong to the episodes of the same id. No id is used twice, so that texts of an
# attempt that was played again are never found.

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
        self._preparing = threading.Lock()
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._path = folder / DATABASE
        try:
            self._prepare()
        except (sqlite3.Error, OSError):
            self._temporary = tempfile.TemporaryDirectory(prefix="coding-gym-view-")
            self._path = Path(self._temporary.name) / DATABASE
            self._prepare()

    def close(self) -> None:
        """Removes the database if it is a temporary one."""
        if self._temporary is not None:
            self._temporary.cleanup()

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Returns the rows of a query as dictionaries."""

        def run(connection: sqlite3.Connection) -> list[Row]:
            cursor = connection.execute(sql, parameters)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

        return self._use(run)

    def changes(self) -> int:
        """Returns a number that grows with every change, by whatever process."""
        return int(self.query("SELECT changes FROM progress")[0]["changes"])

    def update(self) -> bool:
        """Copies some new rows of ``index.jsonl``; returns whether anything was new.

        A later row of an attempt replaces an earlier one that is an error. If the file became
        shorter or begins differently, the index is built anew.
        """
        try:
            with open_regular(self.folder, INDEX) as file:
                state = os.fstat(file.fileno())
                seen = (state.st_ino, state.st_size, state.st_mtime_ns)
                if seen == self._seen:
                    return False
                is_new = self._use(lambda connection: _copy_rows(connection, file), write=True)
        except OSError:  # there is none yet
            return False
        self._seen = self._seen if is_new else seen
        return is_new

    def enrich(self) -> bool:
        """Reads some records that were not read yet, from both ends; returns whether there were.

        The oldest are on the first page, and the newest tell how fast a run goes on.
        """
        waiting = [
            row
            for order in ("ASC", "DESC")
            for row in self.query(
                f"SELECT * FROM episodes WHERE NOT indexed ORDER BY id {order} LIMIT 50"  # noqa: S608
            )
        ]
        read: list[tuple[Row, str]] = []
        start = time.monotonic()
        for row in {row["id"]: row for row in waiting}.values():
            read.append(self._facts(row))
            if time.monotonic() - start > _STEP_S:
                break
        if read:
            self._use(lambda connection: _add_facts(connection, read), write=True)
        return bool(read)

    def complete(self) -> None:
        """Fills the whole index."""
        while self.update():
            pass
        while self.enrich():
            pass

    def set_tasks(self, labels: Iterable[tuple[str, str, str]]) -> None:
        """Keeps the repository and difficulty of tasks.

        Args:
            labels: Task id, repository and difficulty.
        """
        rows = [tuple(map(clean, row)) for row in labels]

        def run(connection: sqlite3.Connection) -> None:
            connection.executemany("INSERT OR REPLACE INTO tasks VALUES (?, ?, ?)", rows)
            connection.execute("UPDATE progress SET changes = changes + 1")

        self._use(run, write=True)

    def row(self, task: str, attempt: int) -> Row:
        """Returns the row of an episode.

        Raises:
            UnknownNameError: The run has no such episode.
        """
        rows = self.query(
            "SELECT * FROM episodes WHERE task = ? AND attempt = ?", (clean(task), attempt)
        )
        if not rows:
            raise UnknownNameError(f"the run has no attempt {attempt} at {task!r}")
        return rows[0]

    def read(self, row: Row) -> Trajectory:
        """Returns the record of an episode.

        Raises:
            InvalidArgumentError: It cannot be read.
        """
        try:
            return self._read(row)
        except (OSError, ValueError, CodingGymError, RecursionError, MemoryError) as problem:
            raise InvalidArgumentError(
                f"the record of attempt {row['attempt']} at {row['task']!r} cannot be read: "
                f"{problem!s:.300}"
            ) from None

    def _read(self, row: Row) -> Trajectory:
        if not _FILE.fullmatch(row["file"]):
            raise InvalidArgumentError(f"{row['file']!r:.100} is not a file of trajectories")
        if row["length"] > MAX_RECORD_BYTES:
            raise InvalidArgumentError(f"it has {row['length']:,} bytes")
        with open_regular(self.folder, row["file"]) as file:
            file.seek(row["offset"])
            line = file.read(row["length"]).decode()
        record = Trajectory.from_json(json.loads(line))
        if (clean(record.task_id), record.attempt) != (row["task"], row["attempt"]):
            raise InvalidArgumentError("another episode is in its place")
        return record

    def _facts(self, row: Row) -> tuple[Row, str]:
        """Returns the fields that a record adds to its row, and the text to search."""
        try:
            record = self.read(row)
            reward = number(record.total_reward)
        except (InvalidArgumentError, OverflowError):
            return {"id": row["id"], "reason": UNREADABLE}, ""
        reason = record.grade.reason if record.grade is not None else record.error[:200]
        facts = {
            "id": row["id"],
            "stop_reason": str(record.stop_reason or ""),
            "reason": clean(reason),
            "turns": len(record.turns),
            "duration_s": number(record.duration_s),
            "reward": reward,
            "started_at": clean(record.started_at)[:40] or None,
            "ended_at": _ended_at(record),
        }
        return facts, clean("\n".join(_searched(record)))[:_MAX_SEARCHED]

    def _use(self, run: Callable[[sqlite3.Connection], Result], *, write: bool = False) -> Result:
        """Calls a function with a connection; a damaged database is built anew, once."""
        for last in (False, True):
            try:
                with self._connection(write=write) as connection:
                    return run(connection)
            except sqlite3.DatabaseError as problem:
                if last or _code(problem) not in _DAMAGE:
                    raise
                self._prepare(anew=_code(problem) != sqlite3.SQLITE_ERROR)
        raise AssertionError  # the loop returns or raises

    @contextmanager
    def _connection(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """Opens the database; with ``write``, for one transaction that no other one overlaps."""
        connection = sqlite3.connect(self._path, timeout=10, isolation_level=None)
        with closing(connection):
            connection.execute("PRAGMA synchronous = NORMAL")
            if write:
                connection.execute("BEGIN IMMEDIATE")
            yield connection
            if write:
                connection.execute("COMMIT")

    def _prepare(self, *, anew: bool = False) -> None:
        """Makes the tables, in a new file if the old one holds anything else or is a link."""
        files = [self._path.with_name(self._path.name + end) for end in ("", "-wal", "-shm")]
        with self._preparing:
            if anew or any(file.is_symlink() for file in files) or not self._is_usable():
                for file in files:
                    file.unlink(missing_ok=True)
                if not self._is_usable():
                    raise sqlite3.DatabaseError(f"{self._path} cannot be made")
            self._seen = ()

    def _is_usable(self) -> bool:
        try:
            with self._connection() as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN IMMEDIATE")
                if not _tables(connection):
                    _create(connection)
                is_usable = _tables(connection) == _expected_tables()
                connection.execute("SELECT * FROM episodes LIMIT 1").fetchall()
                connection.execute("COMMIT")
        except sqlite3.DatabaseError as problem:
            if _code(problem) not in _DAMAGE:
                raise
            return False
        return is_usable


def open_regular(folder: Path, name: str) -> BinaryIO:
    """Opens a file of a folder for reading, if it is a regular file and no symbolic link.

    Raises:
        OSError: It is none, or cannot be opened.
    """
    # Opening a named pipe would wait for its writer.
    opened = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(opened, "rb")
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        file.close()
        raise OSError(f"{folder / name} is no regular file")
    return file


def clean(text: str) -> str:
    """Returns a text that can be encoded: lone surrogates become question marks."""
    return text.encode(errors="replace").decode()


def number(value: float | None) -> float | None:
    """Returns a number if it is finite, else None: JSON and sqlite have no other."""
    return value if value is not None and abs(value) < _MAX_INT else None


def thoughts(record: Trajectory) -> list[str]:
    """Returns the text of each action without its calls; "" where it cannot be told."""
    said = [message["content"] for message in record.messages if message["role"] == "assistant"]
    missing = len(record.turns) - len(said)
    return [
        thought if turn.calls else turn.action
        for turn, thought in zip(record.turns, said + [""] * missing, strict=False)
    ]


def argument_text(value: object) -> str:
    """Returns an argument of a call as text; JSON if it is none."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _searched(record: Trajectory) -> Iterator[str]:
    """Yields the texts of all turns: thoughts, calls and observations."""
    turn: Turn
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
    except (ValueError, OverflowError, OSError):
        return None


def _code(problem: sqlite3.Error) -> int:
    """Returns the primary code of an error, as sqlite's documentation lists them."""
    return getattr(problem, "sqlite_errorcode", 0) & 0xFF


def _create(connection: sqlite3.Connection) -> None:
    for statement in filter(str.strip, _SCHEMA.split(";")):
        connection.execute(statement)


def _tables(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    return connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()


def _expected_tables() -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        _create(connection)
        return _tables(connection)


def _copy_rows(connection: sqlite3.Connection, file: BinaryIO) -> bool:
    """Copies the next rows of ``index.jsonl``; returns whether there were any."""
    end, first = connection.execute("SELECT end, first FROM progress").fetchone()
    line = file.readline(1000)
    is_other = os.fstat(file.fileno()).st_size < end or (end and line != first)
    if is_other:
        connection.execute("DELETE FROM episodes")
        connection.execute("INSERT INTO texts (texts) VALUES ('delete-all')")
        end = 0
    file.seek(end)
    content = file.read(_ROWS_BYTES)
    # A line of that size is no row: its pieces are skipped. A line without its end comes later.
    size = len(content) if len(content) == _ROWS_BYTES and b"\n" not in content else 0
    size = size or content.rfind(b"\n") + 1
    rows: dict[tuple[str, int], tuple[object, ...]] = {}
    for row in map(_parsed, content[:size].splitlines()):
        if row is not None and rows.get(row[:2], _AN_ERROR)[5] == "error":
            rows[row[:2]] = row
    connection.executemany(
        "DELETE FROM episodes WHERE task = ? AND attempt = ? AND outcome = 'error'", rows
    )
    connection.executemany(
        "INSERT OR IGNORE INTO episodes (task, attempt, file, offset, length, outcome, "
        "error_class, tokens, cost) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        rows.values(),
    )
    if size or is_other:
        connection.execute(
            "UPDATE progress SET end = ?, first = ?, changes = changes + 1", (end + size, line)
        )
    return size > 0


_AN_ERROR = (None,) * 5 + ("error",)


def _parsed(line: bytes) -> Any:
    """Returns the columns of a line of ``index.jsonl``; None if it is no row."""
    try:
        data = json.loads(line)
        places = [data[name] for name in ("attempt", "offset", "length")]
        if not all(type(place) is int and 0 <= place < _MAX_INT for place in places):
            return None
        error, tokens, cost = (data.get(name) for name in ("error_class", "tokens", "cost"))
        is_resolved = data.get("resolved") is True
        return (
            clean(data["task_id"]),
            data["attempt"],
            clean(data["file"]),
            data["offset"],
            data["length"],
            "error" if error else "resolved" if is_resolved else "unresolved",
            clean(error or ""),
            number(tokens),
            number(cost),
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def _add_facts(connection: sqlite3.Connection, read: Iterable[tuple[Row, str]]) -> None:
    for facts, text in read:
        columns = ", ".join(f"{name} = :{name}" for name in facts)
        changed = connection.execute(
            f"UPDATE episodes SET {columns}, indexed = 1 WHERE id = :id AND NOT indexed",  # noqa: S608
            facts,
        )
        if changed.rowcount:  # no other viewer was faster
            connection.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", (facts["id"], text))
    connection.execute("UPDATE progress SET changes = changes + 1")
