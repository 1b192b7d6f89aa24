"""One agent, one episode."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym

from coding_gym.action import Stop
from coding_gym.agents.protocol import Agent, Info
from coding_gym.agents.registry import AgentFactory
from coding_gym.trajectory import Trajectory


def play_episode(
    env: gym.Env[Any, str],
    agent: Agent | AgentFactory,
    *,
    task_id: str | None = None,
    seed: int | None = None,
    on_info: Callable[[Info], None] | None = None,
) -> Trajectory:
    """Plays one episode to its end and returns its record.

    Args:
        env: A ``CodingRepair-v0`` env, wrapped or not.
        agent: An agent, or what makes one after the reset; see `agent_factory` for agents by name.
        task_id: The task; the env's sampler picks where it is None.
        seed: As for ``reset``.
        on_info: Is called with the info of the reset and of every step, as they come.
    """
    options = None if task_id is None else {"task_id": task_id}
    _, info = env.reset(seed=seed, options=options)
    if on_info is not None:
        on_info(info)
    unwrapped: Any = env.unwrapped
    player = agent(unwrapped) if callable(agent) else agent
    play = player.play(info)
    action = next(play, None)
    while True:
        if action is None:
            action = Stop(f"the agent {player.name} has nothing more to say")
        _, _, terminated, truncated, info = env.step(action)
        if on_info is not None:
            on_info(info)
        if terminated or truncated:
            play.close()
            trajectory: Trajectory = unwrapped.episode.trajectory()
            return trajectory
        try:
            action = play.send(info)
        except StopIteration:
            action = None
