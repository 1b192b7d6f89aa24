"""The viewer's index of the episodes of a run, also of hostile folders."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from runs import TASK, make_run, write_run

from coding_gym.calls import ToolCall
from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.grade import Grade, GradeReason
from coding_gym.rollout import RunFolder
from coding_gym.trajectory import Trajectory, Turn
from coding_gym.viewer.index import Row, RunIndex
from coding_gym.viewer.pages import Run
from coding_gym.viewer.turns import digest

GRADED = Trajectory(
    task_id="a",
    grade=Grade(resolved=True, reason=GradeReason.RESOLVED),
    turns=(Turn(action="late"),),
)
LOST = Trajectory(task_id="a", error="x", error_class="sandbox", turns=(Turn(action="early"),))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run")


def refreshed(index: RunIndex) -> dict[tuple[str, int], Row]:
    index.update()
    while index.enrich():
        pass
    return index.rows


def test_every_attempt_has_the_facts_of_its_record(run: Path) -> None:
    index = RunIndex(run)
    assert index.update()
    assert {row["outcome"] for row in index.rows.values()} == {"unread"}
    rows = refreshed(index)
    assert len(rows) == 12
    for key, row in rows.items():
        record = index.read(key)
        assert (record.task_id, record.attempt) == key
        assert row["turns"] == len(record.turns)
        assert (row["started_at"], row["cost"]) == (record.started_at, record.cost)
        assert row["tokens"] == record.usage["prompt_tokens"] + 20
        assert row["outcome"] == ("resolved" if record.resolved else "unresolved")


def test_verdict_replaces_error_but_not_the_reverse(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [LOST])
    index = RunIndex(run.path)
    assert refreshed(index)["a", 0]["outcome"] == "error"
    assert index.search("early") == [("a", 0)]
    run.add(GRADED)
    assert refreshed(index)["a", 0]["outcome"] == "resolved"
    assert (index.search("early"), index.search("late")) == ([], [("a", 0)])
    run.add(LOST)
    assert refreshed(index)["a", 0]["outcome"] == "resolved"


def test_replaced_and_removed_records_are_noticed(run: Path) -> None:
    index = RunIndex(run)
    record = index.read(next(iter(refreshed(index))))
    RunFolder.open(run).add(replace(record, seed=7))
    refreshed(index)
    assert index.read((record.task_id, record.attempt)).seed == 7
    (run / "attempts" / f"{record.task_id}.{record.attempt}.json").unlink()
    assert (record.task_id, record.attempt) not in refreshed(index)
    with pytest.raises(UnknownNameError):
        index.read((record.task_id, record.attempt))


def test_search_finds_phrases_of_all_turns(run: Path) -> None:
    index = RunIndex(run)
    rows = refreshed(index)
    keys = index.search("STEP 5: i look")
    assert keys
    assert {rows[key]["turns"] for key in keys} == {7, 8}
    assert index.search("1 failed, 1 pass")  # the record has colour codes
    assert index.search('"no AND (such*') == index.search("%_ \0 \ud800") == []


def test_folder_of_run_stays_untouched(run: Path) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in run.rglob("*"))
    Run(run, "run").complete()
    assert sorted((path, path.stat().st_mtime_ns) for path in run.rglob("*")) == before


def test_turns_that_differ_after_the_displayed_text_have_other_digests() -> None:
    texts = "x" * 30_000, "x" * 29_999 + "y"
    turns = [Turn(action=text) for text in texts]
    turns += [Turn(action="", observation=text) for text in texts]
    turns += [Turn(action="", calls=(ToolCall("shell", {"cmd": text}),)) for text in texts]
    assert len({*map(digest, turns)}) == 6
    call, other = ToolCall("shell", {"cmd": "ls"}, "a"), ToolCall("shell", {"cmd": "ls"}, "b")
    assert digest(Turn(action="", calls=(call,))) == digest(Turn(action="", calls=(other,)))


RECORDS = [b"[" * 100_000, b"{}", b'"text"', b"\xff", b'{"task_id": "other"}', b""]
RECORDS += [b'{"task_id": "forged", "usage": {"prompt_tokens": "many"}}']
RECORDS += [json.dumps({"task_id": "forged", "cost": 10**400}).encode()]


@pytest.mark.parametrize("record", RECORDS)
def test_unreadable_records_are_marked(run: Path, record: bytes) -> None:
    (run / "attempts" / "forged.0.json").write_bytes(record)
    row = refreshed(RunIndex(run))["forged", 0]
    assert (row["outcome"], row["reason"], row["indexed"]) == ("error", "unreadable", True)


def test_size_of_a_record_is_the_reason_why_it_is_not_read(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = RunIndex(run)
    index.update()
    monkeypatch.setattr("coding_gym.viewer.index._MAX_BYTES", 1 << 10)
    with pytest.raises(InvalidArgumentError, match="MiB"):
        index.read((TASK, 1))


def test_links_and_pipes_are_never_read(run: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps(Trajectory(task_id="secret").to_json()), encoding="utf-8")
    (run / "attempts" / "secret.0.json").symlink_to(secret)
    os.mkfifo(run / "attempts" / "pipe.0.json")
    index = RunIndex(run)
    rows = refreshed(index)
    assert {rows[name, 0]["reason"] for name in ("secret", "pipe")} == {"unreadable"}
    with pytest.raises(InvalidArgumentError):
        index.read(("secret", 0))
    linked = write_run(tmp_path / "linked", []).path
    (linked / "attempts").rmdir()
    (linked / "attempts").symlink_to(run / "attempts")
    assert refreshed(RunIndex(linked)) == {}
    (linked / "config.json").unlink()
    (linked / "config.json").symlink_to(run / "config.json")
    with pytest.raises(InvalidArgumentError):
        Run(linked, "linked")


NAMES = ["x", "x.json", "x.-1.json", "x.1e3.json", ".json", "x.0.json.tmp", "x.99999999999999.json"]


def test_foreign_file_names_are_not_attempts(run: Path) -> None:
    for name in NAMES:
        (run / "attempts" / name).write_text("{}", encoding="utf-8")
    assert len(refreshed(RunIndex(run))) == 12
    assert (TASK, 0) in refreshed(RunIndex(run))
