"""Snapshots in files: another process continues them; other settings are refused."""

import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import gymnasium as gym
import pytest
from episodes import FIX, SUBMIT, Closing, Make, as_text, in_another_process, play, shell

import coding_gym
from coding_gym import EnvSnapshot
from coding_gym.errors import InvalidArgumentError, UnknownTaskError
from coding_gym.run_folder import RunFolder
from coding_gym.vector.sub_envs import make_envs
from coding_gym.wrappers import MenuActions

BEFORE = ["?", FIX, shell("echo one > ~/note; touch new.txt; ln -s ~ home")]
AFTER = [
    shell("git checkout -q .; git status --short; ls ~; cat home/note; git log --oneline"),
    '{"name": "fly", "arguments": {}}',
    *(shell(f"echo {number} >> new.txt; wc -l new.txt; ls /tmp") for number in range(2)),
    shell("echo 0 >> /tmp/note; cat /tmp/note"),
    FIX,
    SUBMIT,
]


@pytest.fixture
def rows(tiny_row: dict[str, Any]) -> list[dict[str, Any]]:
    """Five tasks that differ in their ids only."""
    return [tiny_row | {"instance_id": f"shapes-{number}"} for number in range(5)]


@pytest.fixture
def saved(make: Make, tmp_path: Path) -> Path:
    """The path of a snapshot that was taken after one turn."""
    env = make()
    env.reset(seed=1, options={"task_id": "shapes-3"})
    env.step(FIX)
    coding_gym.snapshot(env).save(tmp_path / "saved.zip")
    return tmp_path / "saved.zip"


def make_wrapped(rows: list[dict[str, Any]], records: Path) -> gym.Env[Any, Any]:
    """Returns an env in three wrappers; the outermost two have state."""
    parts = [{"name": "patch_similarity", "weight": 0.2}, {"name": "visible_tests", "weight": 0.01}]
    wrappers = [
        {"name": "TokenBudget", "kwargs": {"max_tokens": 60_000}},
        {"name": "ShapedReward", "kwargs": {"parts": parts}},
        {"name": "RecordTrajectory", "kwargs": {"folder": str(records)}},
    ]
    return make_envs(1, wrappers, {"tasks": rows, "sampler": "shuffled", "max_turns": 40})[0]


def play_and_reset(env: gym.Env[Any, Any], actions: list[str]) -> list[Any]:
    """Plays actions, starts the next episode, and returns all results."""
    return [*play(env, actions), as_text(*env.reset())]


def play_from_file(rows: list[dict[str, Any]], path: Path) -> list[Any]:
    """Plays `AFTER` from a saved snapshot and returns the results."""
    env = make_wrapped(rows, path.with_name("records"))
    coding_gym.restore(env, EnvSnapshot.load(path, env))
    results = play_and_reset(env, AFTER)
    env.close()
    return results


def test_another_process_continues_a_wrapped_env_identically(
    rows: list[dict[str, Any]], closing: Closing, tmp_path: Path
) -> None:
    env = closing(make_wrapped(rows, tmp_path / "records"))
    env.reset(seed=4)
    for action in BEFORE:
        env.step(action)
    path = tmp_path / "midpoint.zip"
    coding_gym.snapshot(env).save(path)
    expected = play_and_reset(env, AFTER)
    assert '"resolved": true' in expected[-2]
    assert in_another_process(play_from_file, rows, path) == expected
    first, second = RunFolder.open(tmp_path / "records").trajectories()
    assert [turn.reward for turn in second.turns] == [turn.reward for turn in first.turns]


@pytest.mark.parametrize(
    ("arguments", "changes", "named"),
    [
        ({"max_turns": 3}, {}, "limits"),
        ({"toolset": "bash"}, {}, "toolset"),
        ({"task_ids": ["shapes-2"]}, {}, "shapes-3"),
        ({}, {"problem_statement": "area is wrong"}, "task_digest"),
    ],
)
def test_other_settings_or_tasks_are_refused(
    arguments: dict[str, Any],
    changes: dict[str, Any],
    named: str,
    make: Make,
    rows: list[dict[str, Any]],
    saved: Path,
) -> None:
    env = make(tasks=[row | changes for row in rows], **arguments)
    with pytest.raises((InvalidArgumentError, UnknownTaskError), match=named):
        EnvSnapshot.load(saved, env)


def test_a_truncated_or_missing_file_is_refused(make: Make, saved: Path) -> None:
    env, whole = make(), saved.read_bytes()
    for size in (0, 1, 512, len(whole) // 2):
        saved.write_bytes(whole[:size])
        with pytest.raises(InvalidArgumentError):
            EnvSnapshot.load(saved, env)
    with pytest.raises(InvalidArgumentError):
        EnvSnapshot.load(saved.with_name("none"), env)


def test_a_flipped_bit_is_refused(make: Make, saved: Path) -> None:
    env, whole = make(), saved.read_bytes()
    with ZipFile(saved) as archive:
        contents = [whole.index(archive.read(name)) for name in archive.namelist()]
    for start in [0, *contents, whole.index(b'"sampler"'), whole.index(b'"np_random"')]:
        saved.write_bytes(whole[:start] + bytes([whole[start] ^ 1]) + whole[start + 1 :])
        with pytest.raises(InvalidArgumentError, match=str(saved)):
            EnvSnapshot.load(saved, env)


@pytest.mark.parametrize("document", ['{"format": 3}', '{"format": 6}', "7", '{"a":' * 100_000])
def test_a_document_of_another_form_is_refused(document: str, make: Make, saved: Path) -> None:
    with ZipFile(saved, "w") as archive:
        archive.writestr("env.json", document)
        archive.writestr("data", b"")
    with pytest.raises(InvalidArgumentError, match=str(saved)):
        EnvSnapshot.load(saved, make())


@pytest.mark.parametrize("name", ["settings", "episode", "sampler", "np_random", "wrappers"])
@pytest.mark.parametrize("value", [5, {}])
def test_a_field_of_another_type_is_refused(name: str, value: Any, make: Make, saved: Path) -> None:
    with ZipFile(saved) as archive:
        document, data = json.loads(archive.read("env.json")), archive.read("data")
    with ZipFile(saved, "w") as archive:
        archive.writestr("env.json", json.dumps(document | {name: value}))
        archive.writestr("data", data)
    if (name, value) != ("wrappers", {}):
        with pytest.raises(InvalidArgumentError):
            EnvSnapshot.load(saved, make())


def test_a_wrapper_whose_state_is_not_json_is_named(make: Make, tmp_path: Path) -> None:
    env = MenuActions(make(), num_candidates=2)
    env.reset()
    with pytest.raises(InvalidArgumentError, match="MenuActions"):
        coding_gym.snapshot(env).save(tmp_path / "saved.zip")
    assert list(tmp_path.iterdir()) == []
