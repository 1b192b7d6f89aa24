"""Recordings of one commit are equal; a difference is found unless it is permitted."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PERMITTED = ROOT / "tests" / "permitted_differences.toml"


def record_episodes(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "scripts" / "record_episodes.py", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One task with two toolsets."""
    path = tmp_path_factory.mktemp("recordings") / "old.jsonl"
    chosen = ("--only", "tasks", "--tasks", "1", "--toolsets", "nano,bash", "--jobs", "1")
    done = record_episodes("--out", path, *chosen)
    assert done.returncode == 0, done.stderr
    return path


def changed(recording: Path, old: str, new: str) -> Path:
    text = recording.read_text()
    assert old in text
    path = recording.with_name("new.jsonl")
    path.write_text(text.replace(old, new))
    return path


def test_two_recordings_of_one_commit_are_equal(recording: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.jsonl"
    record_episodes("--out", again, "--only", "tasks", "--tasks", "1", "--toolsets", "nano,bash")
    rows = [json.loads(line) for line in recording.read_text().splitlines()[1:]]
    assert [row["value"]["trajectory"]["grade"]["resolved"] for row in rows] == [True, True]
    compared = record_episodes("--compare", recording, again, "--permitted", PERMITTED)
    assert compared.returncode == 0, compared.stdout
    assert "2 entries compared" in compared.stdout


def test_a_difference_is_shown_once_per_kind(recording: Path) -> None:
    new = changed(recording, "unknown tool: no_such_tool", "no such tool: no_such_tool")
    compared = record_episodes("--compare", recording, new)
    assert compared.returncode == 1
    assert "changed 1 times in tasks/nano: steps[*].info.text" in compared.stdout
    assert 'old: "unknown tool: no_such_tool"' in compared.stdout


def test_a_permitted_difference_is_passed_over(recording: Path, tmp_path: Path) -> None:
    new = changed(recording, '"mask_sample": ', '"moon_phase": 3, "mask_sample": ')
    permitted = tmp_path / "permitted.toml"
    entry = '[[permitted]]\npath = "*info.moon_phase"\nkind = "added"\nreason = "It is new."\n'
    unused = '[[permitted]]\npath = "*info.text"\nreason = "None."\n'
    permitted.write_text(entry + unused)
    compared = record_episodes("--compare", recording, new, "--permitted", permitted)
    assert compared.returncode == 0, compared.stdout
    assert "matches nothing:  *info.text (None.)" in compared.stdout
    permitted.write_text(entry.replace("added", "removed"))
    compared = record_episodes("--compare", recording, new, "--permitted", permitted)
    assert compared.returncode == 1


def test_an_episode_that_is_missing_from_a_whole_part_is_a_difference(recording: Path) -> None:
    header, first, _ = recording.read_text().splitlines()
    part = recording.with_name("part.jsonl")
    part.write_text(f"{header}\n{first}\n")
    assert record_episodes("--compare", recording, part).returncode == 0
    whole = json.dumps({"entry": "", "value": {"whole": ["tasks"]}})
    part.write_text(f"{whole}\n{first}\n")
    compared = record_episodes("--compare", recording, part)
    assert compared.returncode == 1
    assert "removed 1 times in tasks/bash" in compared.stdout
