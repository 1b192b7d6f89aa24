"""One agent, one episode."""

from dataclasses import replace
from typing import Any

import gymnasium as gym

from coding_gym.action import Stop
from coding_gym.agents.protocol import Agent, Info, next_action
from coding_gym.trajectory import Trajectory
from coding_gym.wrappers.record_trajectory import with_seen_rewards


def play_episode(
    env: gym.Env[Any, str],
    agent: Agent,
    *,
    task_id: str | None = None,
    seed: int | None = None,
) -> Trajectory:
    """Plays one episode to its end and returns its record, with the rewards that ``env`` gave.

    Args:
        env: A ``CodingRepair-v0`` env, wrapped or not.
        agent: The agent; see `coding_gym.agents.registry.get_agent`.
        task_id: The task; the env's sampler picks where it is None.
        seed: As for ``reset``.
    """
    options = None if task_id is None else {"task_id": task_id}
    env.reset(seed=seed, options=options)
    unwrapped: Any = env.unwrapped
    play = agent.play(unwrapped)
    rewards: list[tuple[float, dict[str, float]]] = []
    info: Info | None = None
    has_ended = False
    while not has_ended:
        action = next_action(play, info)
        if action is None:
            action = Stop(f"the agent {agent.name} has nothing more to say")
        _, reward, terminated, truncated, info = env.step(action)
        parts = {name: float(part) for name, part in info["reward_parts"].items()}
        rewards.append((float(reward), parts))
        has_ended = terminated or truncated
    play.close()
    trajectory = replace(unwrapped.episode.trajectory(), agent=agent.name, seed=seed)
    return with_seen_rewards(trajectory, env, rewards)
