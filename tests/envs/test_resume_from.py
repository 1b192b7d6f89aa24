"""Replay of recorded episodes up to a turn."""

import json
from dataclasses import replace
from typing import Any

import pytest
from episodes import FIX, SUBMIT, TRUE, Env, Make, shell

import coding_gym
from coding_gym import Completion, Trajectory
from coding_gym.calls import ToolCall
from coding_gym.errors import EpisodeError, InvalidArgumentError
from coding_gym.wrappers import MenuActions, TokenBudget

CLOCK = shell("date +%s%N")


def play_and_record(env: Env, actions: list[str]) -> Trajectory:
    """Plays actions and returns the trajectory, converted to JSON text and back."""
    env.reset()
    for action in actions:
        env.step(action)
    core: Any = env.unwrapped
    return Trajectory.from_json(json.loads(json.dumps(core.episode.trajectory().to_json())))


def test_a_replay_continues_from_the_turn(make: Make) -> None:
    carried = Completion(
        "looking",
        token_ids=[5, 6],
        logprobs=[-0.5, -1.0],
        calls=[ToolCall("shell", {"cmd": "ls"}, "c1")],
        weight_version=7,
        reasoning="first I look",
    )
    truncated = Completion("I think that", is_cut=True)  # is_cut keeps the episode running
    record = play_and_record(make(), [carried, FIX, truncated, SUBMIT])
    env = TokenBudget(make(), max_tokens=60_000)
    resumed = coding_gym.resume_from(env, record, turn=3)
    assert resumed.first_difference is None
    assert resumed.info["turn"] == 3
    assert resumed.info["text"] == record.turns[2].observation
    core: Any = env.unwrapped
    first = core.episode.turns[0]
    assert (first.token_ids, first.logprobs, first.weight_version) == ((5, 6), (-0.5, -1.0), "7")
    length = len(core.episode.messages)
    assert core.episode.messages == list(record.messages)[:length]
    assert env.step(SUBMIT)[1] == 1.0


def test_the_first_observation_that_differs_is_reported(make: Make) -> None:
    record = play_and_record(make(), [TRUE, CLOCK, CLOCK])
    assert coding_gym.resume_from(make(), record, turn=3).first_difference == 2
    assert coding_gym.resume_from(make(), record, turn=0).info["turn"] == 0


@pytest.mark.parametrize("turn", [-1, 2, 1.5, None])
def test_only_turns_before_the_end_can_be_continued(make: Make, turn: Any) -> None:
    record = play_and_record(make(), [FIX, SUBMIT])
    with pytest.raises(InvalidArgumentError):
        coding_gym.resume_from(make(), record, turn=turn)


def test_a_record_without_its_messages_is_refused(make: Make) -> None:
    record = replace(play_and_record(make(), [TRUE]), messages=())
    with pytest.raises(InvalidArgumentError, match="replies"):
        coding_gym.resume_from(make(), record, turn=1)


def test_other_tasks_tools_and_actions_are_refused(make: Make, tiny_row: dict[str, Any]) -> None:
    record = play_and_record(make(), [FIX])
    other_envs = [
        make(tasks=[tiny_row | {"problem_statement": "wrong"}]),
        make(toolset="bash"),
        make(tool_format="json"),
        MenuActions(make(), num_candidates=2),
    ]
    for env in other_envs:
        env.reset()
        before = env.unwrapped.episode  # type: ignore[attr-defined]
        with pytest.raises(InvalidArgumentError):
            coding_gym.resume_from(env, record, turn=1)
        assert env.unwrapped.episode is before  # type: ignore[attr-defined]


def test_a_replay_that_ends_early_is_an_error(make: Make) -> None:
    record = play_and_record(make(), [TRUE, TRUE, TRUE])
    with pytest.raises(EpisodeError, match="max_turns"):
        coding_gym.resume_from(make(max_turns=2), record, turn=3)
