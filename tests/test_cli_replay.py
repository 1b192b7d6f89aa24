"""Recorded episodes played again by the command."""

import json
import math
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import command_line
import pytest
from episodes import SUBMIT, raising

from coding_gym import Completion, Stop, StopReason, Trajectory
from coding_gym.cli.replay import replay as replay_command
from coding_gym.errors import InvalidArgumentError
from coding_gym.rollout import append_trajectory, read_trajectories, replay
from coding_gym.rollout.replay import Difference, recorded_env
from coding_gym.task import Task
from coding_gym.tasks import load_tasks
from coding_gym.vector.sub_envs import make_envs

FIX = '{"name": "shell", "arguments": {"cmd": "sed -i s/+/*/ shapes.py; pytest -q | tail -n 1"}}'
# The hidden tests fail before and after it, which is the cheapest grade of a patch.
EDIT = '{"name": "shell", "arguments": {"cmd": "sed -i \'s/+/**/\' shapes.py; echo passed"}}'

Play = Callable[..., Trajectory]


def run(*arguments: str | Path, code: int = 0) -> str:
    return command_line.run("replay", *arguments, code=code)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "episodes.jsonl"


@pytest.fixture
def task(tiny_row: dict[str, Any]) -> Task:
    (task,) = load_tasks([tiny_row])
    return task


@pytest.fixture
def played(rows: Path, file: Path) -> Play:
    """Plays actions on the tiny task in a chain of wrappers, and returns what was recorded."""

    def play(*actions: str, wrappers: Any = (), close: bool = False, **kwargs: Any) -> Trajectory:
        recorder = {"name": "RecordTrajectory", "kwargs": {"path": str(file), "unfinished": close}}
        (env,) = make_envs(1, [*wrappers, recorder], {"tasks": str(rows), **kwargs})
        try:
            env.reset(seed=0)
            for action in actions:
                env.step(action)
        finally:
            env.close()
        *_, last = read_trajectories(file)
        return last

    return play


@pytest.mark.slow
def test_every_kind_of_action_and_end_is_replayed(played: Play, rows: Path, file: Path) -> None:
    wrappers = [
        {"name": "TokenBudget", "kwargs": {"max_tokens": 9000}},
        {"name": "ToolCallBudget", "kwargs": {"max_tool_calls": 3}},
        {"name": "TestPassReward", "kwargs": {"weight": 0.25}},
    ]
    ends = {
        played(FIX, SUBMIT, wrappers=wrappers).stop_reason,
        played(*[EDIT] * 3, wrappers=wrappers).stop_reason,
        played(Completion(EDIT, [1, 2, 3], [-1.0] * 3), Stop("enough")).stop_reason,
        played(
            "Hm.", f"<tool_call>{EDIT}</tool_call>", "Done.", tool_format="hermes[strict]"
        ).stop_reason,
        played(EDIT, "", max_turns=2).stop_reason,
        played(EDIT, EDIT, close=True).stop_reason,
        played(
            "cd /tmp",
            '{"name": "shell", "arguments": {"cmd": "cd /tmp"}}',
            EDIT,
            SUBMIT,
            sandbox={"shell": "persistent"},
        ).stop_reason,
    }
    assert len(ends) >= 5
    text = run(file, "--tasks", rows, "--concurrency", "1")
    assert "7 of 7 episodes equal" in text


def test_the_first_difference_is_shown_and_the_exit_code_tells(
    played: Play, rows: Path, file: Path, tmp_path: Path
) -> None:
    was = played(EDIT, SUBMIT)
    first, last = was.turns
    turn = replace(first, observation=first.observation.replace("passed", "past \r"))
    changed = {
        "turn 1: observation": replace(was, turns=(turn, last)),
        "turn 2: reward": replace(was, turns=(first, replace(last, reward=0.5))),
        "turn 2: reward parts": replace(was, turns=(first, replace(last, reward_parts={}))),
        "turn 2: the end": replace(was, stop_reason=StopReason.MAX_TURNS),
        "the patch": replace(was, patch=was.patch.replace("*", "//")),
        "the grade": replace(was, grade=None),
        "the prompt": replace(was, messages=was.messages[1:]),
        "the task": replace(was, settings={**was.settings, "task_digest": "another"}),
    }
    other = tmp_path / "changed.jsonl"
    for trajectory in (was, *changed.values()):
        append_trajectory(other, trajectory)
    text = run(other, "--tasks", rows, code=1)
    for name in changed:
        assert f"turns, {name}\n" in text
    assert "past \\r" in text
    assert "1 of 9 episodes equal, 8 different" in text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "holds no trajectory"),
        ("{}", "line 1 is not a trajectory: Trajectory has no field 'task_id'"),
        ('{"task_id": "x", "messages": [', "holds no trajectory"),
        ("\x00\xff", "line 1 is not a trajectory"),
        ("[" * 200_000, "line 1 is not a trajectory: maximum recursion depth"),
    ],
)
def test_files_of_others_are_refused(file: Path, text: str, told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"cannot read .*: No such file"):
        replay_command(file)
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match=told):
        replay_command(file)


def test_records_that_cannot_be_played_are_refused_before_anything_runs(
    played: Play, rows: Path, file: Path, tmp_path: Path
) -> None:
    was = played(SUBMIT)
    no_text = replace(was.turns[0], action=7)  # type: ignore[arg-type]
    told = {
        "it does not say how its env was made": replace(was, settings={}),
        "no task 'shapes-aria' among the 1 of this source": replace(was, task_id="shapes-aria"),
        "Settings.limits must be an object, got 3": replace(
            was, settings={**was.settings, "limits": 3}
        ),
        r"Trajectory.turns\[0\].action must be a text, got 7": replace(was, turns=(no_text,)),
        "Settings has no field 'command_timeout_s'": replace(was, settings={"tasks": "bundled"}),
    }
    for number, (message, trajectory) in enumerate(told.items()):
        path = tmp_path / f"{number}.jsonl"
        append_trajectory(path, was)
        append_trajectory(path, trajectory)
        with pytest.raises(InvalidArgumentError, match=f"(episode|line) 2.*{message}"):
            replay_command(path, str(rows))
    text = run(file, code=2)
    assert f"names the source {str(rows)!r}; if you trust that, give it by --tasks" in text
    assert "Traceback" not in text


def test_files_decide_no_sandbox_and_no_imports(played: Play, task: Task, tmp_path: Path) -> None:
    was = played(SUBMIT)
    sandbox = {"name": "process", "image": "", "shell": "fresh", "limits": {}}
    unsafe = replace(was, settings={**was.settings, "sandbox": sandbox})
    assert replay(unsafe, task).difference is None  # `process` would warn, which is an error here
    sandbox["image"] = "evil:latest"
    with pytest.raises(InvalidArgumentError, match="if you trust that, give --sandbox"):
        replay(replace(was, settings={**was.settings, "sandbox": sandbox}), task)
    target = tmp_path / "written"
    for name, kwargs in (("RecordTrajectory", {"path": str(target)}), ("os:system", {})):
        wrappers = [{"name": name, "kwargs": kwargs}]
        again = replay(replace(was, settings={**was.settings, "wrappers": wrappers}), task)
        assert again.note.startswith("rewards were not compared")
        assert again.difference is None
    assert not target.exists()


def test_bounds_looser_than_the_defaults_are_followed_only_where_trusted(
    played: Play, task: Task, rows: Path, tmp_path: Path
) -> None:
    show_limit = '{"name": "shell", "arguments": {"cmd": "ulimit -n; ulimit -f"}}'
    limits = {"num_open_files": 2048, "file_bytes": 1 << 20}
    was = played(show_limit, sandbox={"limits": limits}, command_timeout_s=500.0, close=True)
    again = replay(was, task)
    assert again.difference is not None
    assert again.difference.recorded.split("\n") == ["2048", "1024"]
    assert again.difference.replayed.split("\n") == ["1024", "1024"]  # a tighter bound is followed
    assert "looser than the defaults: num_open_files=2048, command_timeout_s=500" in again.note
    trusted = replay(was, task, trust_limits=True)
    assert (trusted.difference, trusted.note) == (None, "")
    path = tmp_path / "loose.jsonl"
    append_trajectory(path, was)
    assert "not followed" in run(path, "--tasks", rows, code=1)
    assert "1 of 1 episodes equal" in run(path, "--tasks", rows, "--trust-limits")


def test_only_recorded_turns_exceed_the_default(played: Play, task: Task) -> None:
    for most in (10**9, None):
        was = played(EDIT, EDIT, max_turns=most, close=True)
        env, notes = recorded_env(was, task)
        assert env.unwrapped.limits.max_turns == 50  # type: ignore[attr-defined]
        assert notes == [
            f"not followed, as looser than the defaults: max_turns={most}; see --trust-limits"
        ]
        assert replay(was, task).difference is None
        env, notes = recorded_env(was, task, trust_limits=True)
        assert (env.unwrapped.limits.max_turns, notes) == (most, [])  # type: ignore[attr-defined]
    long = played(*["Hm."] * 55, max_turns=56, close=True)
    again = replay(long, task)
    assert (again.difference, again.num_turns, again.note) == (None, 55, "")


def test_an_ungraded_episode_is_played_without_tests(
    played: Play, tiny_row: dict[str, Any], rows: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    untested = tiny_row | {"FAIL_TO_PASS": [], "PASS_TO_PASS": [], "test_patch": ""}
    rows.write_text(json.dumps(untested) + "\n")
    monkeypatch.setattr("coding_gym.episode.episode.grade_patch", raising(AssertionError()))
    was = played(EDIT, SUBMIT, grading="none")
    (task,) = load_tasks([untested], needs_tests=False)
    again = replay(was, task)
    assert (again.difference, again.note) == (None, "")
    assert "1 of 1 episodes equal" in run(file, "--tasks", rows)
    with pytest.raises(InvalidArgumentError, match="no grading is called 'public'"):
        replay(replace(was, settings={**was.settings, "grading": "public"}), task)


@pytest.mark.parametrize("name", ["hf:/etc", "hf:org/name", "cl100k_base", "no_such", "", 7, None])
def test_a_file_names_no_tokenizer_but_the_bundled_one(
    name: Any, played: Play, task: Task, rows: Path, tmp_path: Path
) -> None:
    was = replace(played(SUBMIT), tokenizer=name)
    path = tmp_path / "other.jsonl"
    append_trajectory(path, was)
    with pytest.raises(InvalidArgumentError, match="--tokenizer"):
        replay(was, task)
    with pytest.raises(
        InvalidArgumentError, match=r"episode 1: .*--tokenizer|line 1 .*tokenizer must be a text"
    ):
        replay_command(path, str(rows))
    if name == "no_such":
        assert replay(was, task, tokenizer="coding_gym_16k").difference is None
        assert "1 of 1" in run(path, "--tasks", rows, "--tokenizer", "coding_gym_16k")


def any_json(rng: random.Random, depth: int = 0) -> Any:
    """A value of any JSON type, most of them useless, some nearly right."""
    plain = [None, True, False, 0, -1, 3, 10**400, -(10**400), 0.5, 1e308, math.inf, math.nan]
    plain += ["", "x", "auto", "name", "\ud800", "0.1"]
    names = ["name", "kwargs", "weight", "parts", "limits", "shell", "num_cpus", "x", "env"]
    kind = rng.randrange(4 if depth < 3 else 2)
    if kind < 2:
        return rng.choice(plain)
    values = [any_json(rng, depth + 1) for _ in range(rng.randrange(3))]
    return values if kind == 2 else dict(zip(rng.sample(names, len(values)), values, strict=True))


def test_settings_of_any_json_are_played_or_refused(played: Play, task: Task) -> None:
    was = replace(played(SUBMIT), turns=(), stop_reason=None, patch="", grade=None)
    rng, rewards = random.Random(0), ("TestPassReward", "CompositeReward", "VisibleTestShaping")
    settings = dict(was.settings)
    changed: list[dict[str, Any]] = [settings]
    for key in [*settings, "wrappers", "more"]:
        changed += [{**settings, key: any_json(rng)} for _ in range(12)]
    for group in ("limits", "sandbox"):
        for key in [*settings[group], "more"]:
            group_of = [settings[group] | {key: any_json(rng)} for _ in range(8)]
            changed += [{**settings, group: one} for one in group_of]
    for _ in range(60):
        wrapper = {"name": rng.choice([*rewards, any_json(rng)]), "kwargs": any_json(rng)}
        weight = {"name": rng.choice([*rewards]), "kwargs": {"weight": any_json(rng)}}
        part = {"name": rng.choice(["areno", any_json(rng)]), "weight": any_json(rng)}
        parts = {"name": "CompositeReward", "kwargs": {"parts": [part]}}
        changed += [{**settings, "wrappers": [one]} for one in (wrapper, weight, parts)]
    num_played = 0
    for one in changed:
        with suppress(InvalidArgumentError):
            replay(replace(was, settings=one), task)
            num_played += 1
    assert 0 < num_played < len(changed) / 2


def test_what_our_own_side_ended_is_not_played(
    played: Play, tiny_row: dict[str, Any], rows: Path, tmp_path: Path
) -> None:
    was = replace(played(SUBMIT), stop_reason=StopReason.SANDBOX_ERROR, error="it died")
    path = tmp_path / "lost.jsonl"
    append_trajectory(path, was)
    assert "not played: our own side failed in it: it died" in run(path, "--tasks", rows)


@pytest.mark.parametrize(
    ("limit", "command"),
    [
        ({"max_seconds": 0.5}, "sleep 1; echo done"),  # killed by the clock, and answered
        ({"max_seconds": 0.001, "clock": "wall"}, "pwd"),  # too late, and not played
    ],
)
def test_what_a_time_budget_ended_is_equal(
    played: Play, task: Task, limit: dict[str, Any], command: str
) -> None:
    wrappers = [{"name": "TimeBudget", "kwargs": limit}]
    was = played(json.dumps({"name": "shell", "arguments": {"cmd": command}}), wrappers=wrappers)
    assert was.stop_reason is StopReason.MAX_TIME
    again = replay(was, task)
    assert again.difference is None
    assert again.num_turns == 1


def test_the_first_different_output_is_named(played: Play, task: Task) -> None:
    was = played(f"[{EDIT}, {EDIT}]", SUBMIT)
    first, second = was.turns[0].results
    results = (first, replace(second, content="past"))
    again = replay(replace(was, turns=(replace(was.turns[0], results=results), was.turns[1])), task)
    assert again.difference is not None
    assert again.difference.where.startswith('turn 1: shell {"cmd": "sed -i')
    assert str(again.difference).endswith("line 1:\n- 'past'\n+ 'passed'")


def test_a_difference_shows_the_place_and_what_does_not_print() -> None:
    old, new = "a\nb\n" + "x" * 500 + "1\nsame\n", "a\nb\n" + "x" * 500 + "2\nsame\n"
    lines = str(Difference("here", old, new)).splitlines()
    assert lines[:2] == ["here", "line 3:"]
    assert lines[2].startswith("- 'xxx")
    assert lines[2].endswith("1\\n'")
    assert len(lines[2]) < 200
    assert str(Difference("here", "one", "one\n")).splitlines()[1:] == [
        "line 1:",
        "- 'one'",
        "+ 'one\\n'",
    ]
    assert "+ (nothing more)" in str(Difference("here", "one\ntwo\n", "one\n"))
