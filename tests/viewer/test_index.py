"""The index of a run: what it copies, and what hostile folders cannot make it do."""

import json
import math
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from checks.synthetic_runs import make_run
from platformdirs import user_cache_path

from coding_gym.errors import InvalidArgumentError
from coding_gym.grade import Grade, GradeReason
from coding_gym.rollout import RunFolder
from coding_gym.trajectory import Trajectory, Turn
from coding_gym.viewer.index import UNREADABLE, Row, RunIndex, read_record
from coding_gym.viewer.pages import Run

INDEX = "index.jsonl"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", num_tasks=6, attempts=2)


def complete(folder: Path) -> RunIndex:
    index = RunIndex(folder)
    index.complete()
    return index


def keys(index: RunIndex) -> set[tuple[str, int]]:
    return {(row["task"], row["attempt"]) for row in index.query("SELECT * FROM episodes")}


def row_of(index: RunIndex, task: str, attempt: int = 0) -> Row:
    sql = "SELECT * FROM episodes WHERE task = ? AND attempt = ?"
    return index.query(sql, [task, attempt])[0]


def found(index: RunIndex, phrase: str) -> list[str]:
    sql = "SELECT task FROM episodes WHERE id IN (SELECT rowid FROM texts WHERE texts MATCH ?)"
    return [row["task"] for row in index.query(sql, [f'"{phrase}"'])]


def add(folder: Path, *records: Trajectory) -> None:
    with RunFolder(folder, {}).writer() as writer:
        for record in records:
            writer.add(record)


def forge(folder: Path, **row: object) -> None:
    """Adds a row to the index that no runner wrote."""
    place = {"task_id": "forged", "attempt": 0, "file": "errors.jsonl", "offset": 0, "length": 9}
    with (folder / INDEX).open("a", encoding="utf-8") as file:
        file.write(json.dumps(place | row) + "\n")


def test_every_attempt_is_listed_with_the_facts_of_its_record(run: Path) -> None:
    folder = RunFolder.open(run)
    rows = folder.rows()
    lies = {"resolved": True, "error_class": "", "tokens": 7, "cost": 9.5}
    forged = [json.dumps(row.to_json() | lies) + "\n" for row in rows.values()]
    (run / INDEX).write_text("".join(forged), encoding="utf-8")
    index = complete(run)
    assert keys(index) == rows.keys()
    for row in rows.values():
        record, listed = folder.read(row), row_of(index, *row.key)
        assert listed["turns"] == len(record.turns)
        assert listed["started_at"] == record.started_at
        assert (listed["tokens"], listed["cost"]) == (row.tokens, row.cost)
        outcome = "resolved" if record.resolved else "unresolved"
        assert listed["outcome"] == ("error" if record.error_class else outcome)
        assert read_record(run, listed) == record


def test_rows_that_are_added_later_are_found_and_torn_lines_wait(run: Path) -> None:
    whole = (run / INDEX).read_bytes()
    lines = whole.splitlines(keepends=True)
    (run / INDEX).write_bytes(b"".join(lines[:3]) + lines[3][:40])
    index = complete(run)
    assert len(keys(index)) == 3
    (run / INDEX).write_bytes(whole)
    index.complete()
    assert len(keys(index)) == len(lines)
    assert not index.update()


@pytest.mark.parametrize("other", [b"__", b"--"])
def test_an_index_that_shrank_or_begins_differently_is_read_anew(run: Path, other: bytes) -> None:
    index = complete(run)
    kept = (run / INDEX).read_bytes().splitlines(keepends=True)[:9]
    kept += kept[:1] * 9 if other == b"--" else []  # longer than before
    (run / INDEX).write_bytes(b"".join(kept).replace(b"__", other))
    index.complete()
    expected = {json.loads(line.replace(b"__", other))["task_id"] for line in kept}
    assert {task for task, _ in keys(index)} == expected


def test_a_verdict_replaces_an_error_and_nothing_replaces_a_verdict(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "run", {})
    grade = Grade(resolved=True, reason=GradeReason.RESOLVED)
    early, late = (Turn(action="\x1b]0;early\x07"),), (Turn(action="late"),)
    failed = Trajectory(task_id="a", error="lost", error_class="sandbox", turns=early)
    graded = Trajectory(task_id="a", grade=grade, turns=late)
    add(tmp_path / "run", failed)
    index = complete(tmp_path / "run")
    assert (row_of(index, "a")["outcome"], found(index, "early")) == ("error", ["a"])
    add(tmp_path / "run", failed, graded, failed)
    index.complete()
    assert row_of(index, "a")["outcome"] == "resolved"
    assert (found(index, "early"), found(index, "late")) == ([], ["a"])


def test_nothing_is_written_into_a_folder_and_a_lost_index_is_made_anew(run: Path) -> None:
    files = sorted(run.iterdir())
    index = complete(run)
    expected = keys(index)
    assert sorted(run.iterdir()) == files
    for database in user_cache_path("coding_gym").glob("views/*"):
        assert database.stat().st_mode & 0o077 == 0
        shutil.rmtree(database)
    assert keys(index) == set()
    index.complete()
    assert keys(index) == expected


def test_a_damaged_index_is_made_anew(run: Path) -> None:
    index = complete(run)
    expected = keys(index)
    index.database.write_bytes(os.urandom(index.database.stat().st_size))
    assert keys(complete(run)) == expected


def test_an_index_that_another_viewer_made_anew_is_filled_again(run: Path, tmp_path: Path) -> None:
    index = complete(run)
    index.set_tasks([("birch__ledger-000001", "birch/ledger", "easy")])
    expected, labels = keys(index), index.query("SELECT * FROM tasks")
    index.database.parent.rename(tmp_path / "removed")
    assert keys(RunIndex(run)) == set()
    index.complete()
    assert (keys(index), index.query("SELECT * FROM tasks")) == (expected, labels)


def test_a_cache_that_cannot_be_written_to_is_replaced(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert len(keys(complete(run))) == 12


def test_runs_that_follow_in_one_folder_have_indexes_of_their_own(run: Path) -> None:
    assert len(keys(complete(run))) == 12
    assert keys(RunIndex(run, "another run")) == set()


def test_two_viewers_fill_one_index_without_doubles(run: Path) -> None:
    indexes = [RunIndex(run), RunIndex(run)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(RunIndex.complete, indexes))
    rows = indexes[0].query("SELECT * FROM episodes")
    assert len(rows) == len(keys(indexes[1])) == 12
    assert all(row["indexed"] for row in rows)
    assert len(found(indexes[0], "area")) == 12


FILES = ("../secret.jsonl", "config.json", "trajectories-1.jsonl/../x", "", "\0", "\ud800")
FILES += ("trajectories-0000.jsonl\n", "trajectories-7.jsonl")


@pytest.mark.parametrize("file", FILES)
def test_records_outside_the_shards_are_never_read(run: Path, file: str) -> None:
    secret = json.dumps(Trajectory(task_id="forged").to_json())
    for name in ("secret.jsonl", "run/config.json"):
        (run.parent / name).write_text(secret, encoding="utf-8")
    (run / "trajectories-7.jsonl").symlink_to(run.parent / "secret.jsonl")
    forge(run, file=file, length=len(secret))
    row = row_of(complete(run), "forged")
    assert (row["reason"], row["outcome"], row["indexed"]) == (UNREADABLE, "error", 1)
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        read_record(run, row)


HUGE = 10**400
LINES = (b"[" * 100_000, b"\xff\xfe", b"null", b'{"task_id": 1}', b"x" * 2_000_000)
ROWS: list[dict[str, object]] = [{"attempt": HUGE}, {"offset": 2**63}, {"length": -1}]
ROWS += [{"tokens": HUGE}, {"cost": math.inf}, {"tokens": "many"}, {"task_id": "\ud800"}]


@pytest.mark.parametrize("row", ROWS)
def test_rows_that_no_runner_wrote_do_no_harm(run: Path, row: dict[str, object]) -> None:
    with (run / INDEX).open("ab") as file:
        file.writelines(line + b"\n" for line in LINES)
    forge(run, **row)
    forge(run, task_id="behind")
    index = complete(run)
    assert {("behind", 0)} < keys(index)
    assert index.query("SELECT count(*) AS n FROM episodes WHERE NOT indexed") == [{"n": 0}]
    assert Run(run, "run").summary()["indexed"] == 1


RECORDS = [b"[" * 100_000, b"{}", b'"text"', b"\xff", b'{"task_id": "other"}']
RECORDS += [b'{"task_id": "forged", "usage": {"prompt_tokens": "many"}}']
TURN = {"action": "\ud800 odd", "reward": HUGE}
RECORDS += [json.dumps({"task_id": "forged", "started_at": "9" * 99, "turns": [TURN]}).encode()]


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_that_cannot_be_read_is_marked(run: Path, record: bytes) -> None:
    (run / "trajectories-0009.jsonl").write_bytes(record)
    forge(run, file="trajectories-0009.jsonl", length=len(record))
    index = complete(run)
    row = row_of(index, "forged")
    assert row["indexed"]
    assert row["reason"] == UNREADABLE or (row["reward"] is None and found(index, "odd"))


def test_a_record_that_was_replaced_is_read_again(run: Path) -> None:
    shown = Run(run, "run")
    shown.index.complete()
    (row,) = shown.index.query("SELECT * FROM episodes WHERE outcome != 'error' LIMIT 1")
    assert shown.episode(row["task"], row["attempt"])["seed"] == 0
    shard = run / row["file"]
    changed = shard.read_bytes().replace(b'"seed": 0', b'"seed": 7')
    shard.unlink()
    shard.write_bytes(changed)
    assert shown.episode(row["task"], row["attempt"])["seed"] == 7


def test_named_pipes_are_not_waited_for(run: Path) -> None:
    (run / INDEX).unlink()
    os.mkfifo(run / INDEX)
    assert keys(complete(run)) == set()
