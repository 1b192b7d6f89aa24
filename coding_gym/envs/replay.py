"""Replays the first actions of a recorded episode, so that a policy can continue it."""

from typing import Any, NamedTuple

import gymnasium as gym

from coding_gym.arguments import within
from coding_gym.envs.snapshot import check_equal, core_env, settings_of
from coding_gym.errors import EpisodeError, InvalidArgumentError
from coding_gym.tasks import find_task
from coding_gym.trajectory import Trajectory


class Resumed(NamedTuple):
    """The state after a replay.

    Attributes:
        observation: The last observation.
        info: The last info.
        first_difference: Number of the first turn, from 1, whose observation differs from the
            record; None if all are equal.
    """

    observation: Any
    info: dict[str, Any]
    first_difference: int | None


def resume_from(env: gym.Env[Any, Any], trajectory: Trajectory, turn: int) -> Resumed:
    """Starts an episode and replays the first actions of a record; the episode then continues.

    Each action keeps its token ids, log-probabilities, calls and weight version. The output of a
    command that reads the clock or random numbers can differ; `Resumed.first_difference` reports
    the difference.

    Args:
        env: An env with the task, the toolset and the tool format of the record; its actions are
            texts.
        trajectory: The record.
        turn: Number of actions to replay, at least 0; the action that ended the episode cannot be
            replayed.

    Raises:
        UnknownTaskError: The env does not have the task.
        InvalidArgumentError: The record has fewer turns; the toolset, the tool format or the
            content of the task differs; or the actions of the env are not texts.
        EpisodeError: The episode ended during the replay.
    """
    core = core_env("resume_from", env)
    if not isinstance(env.action_space, gym.spaces.Text):
        raise InvalidArgumentError(f"resume_from needs text actions, got {env.action_space}")
    max_turn = len(trajectory.turns) - (trajectory.stop_reason is not None)
    turn = within(range(max_turn + 1), "turn", turn)
    task = find_task(core.config.tasks, trajectory.task_id)
    settings = settings_of(core.config, task)
    recorded_settings = {**trajectory.settings, "toolset": trajectory.toolset}
    for name in ("task_digest", "toolset", "tool_format"):
        check_equal({name: settings[name]}, {name: recorded_settings.get(name)})
    messages = [message for message in trajectory.messages if message["role"] == "assistant"][:turn]
    if len(messages) < turn:
        raise InvalidArgumentError(
            f"the record must have {turn} replies, got {len(messages)}; replay fewer turns"
        )
    replies = zip(trajectory.turns[:turn], messages, strict=True)
    observation, info = env.reset(options={"task_id": trajectory.task_id})
    first_difference = None
    for number, (recorded_turn, message) in enumerate(replies, start=1):
        action = recorded_turn.completion(message.get("reasoning_content", ""))
        observation, _, terminated, truncated, info = env.step(action)
        is_different = core.episode.turns[-1].observation != recorded_turn.observation
        if is_different and first_difference is None:
            first_difference = number
        if terminated or truncated:
            raise EpisodeError(
                f"the replay ended in turn {number} of {turn} ({info['stop_reason']}); "
                f"first turn that differs: {first_difference or 'none'}"
            )
    return Resumed(observation, info, first_difference)
