"""One agent, one episode."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium as gym

from coding_gym.action import Stop
from coding_gym.agents.protocol import Agent, Info
from coding_gym.agents.registry import AgentFactory
from coding_gym.trajectory import Trajectory
from coding_gym.wrappers.record_trajectory import with_seen_rewards


def play_episode(
    env: gym.Env[Any, str],
    agent: Agent | AgentFactory,
    *,
    task_id: str | None = None,
    seed: int | None = None,
    on_info: Callable[[Info], None] = lambda _: None,
) -> Trajectory:
    """Plays one episode to its end and returns its record, with the rewards that ``env`` gave.

    Args:
        env: A ``CodingRepair-v0`` env, wrapped or not.
        agent: An agent, or what makes one after the reset; see `agent_factory` for agents by name.
        task_id: The task; the env's sampler picks where it is None.
        seed: As for ``reset``.
        on_info: Called with the info of the reset and of every step.
    """
    options = None if task_id is None else {"task_id": task_id}
    _, info = env.reset(seed=seed, options=options)
    on_info(info)
    unwrapped: Any = env.unwrapped
    player = agent(unwrapped) if callable(agent) else agent
    play = player.play(info)
    rewards: list[tuple[float, dict[str, float]]] = []
    action = next(play, None)
    while True:
        if action is None:
            action = Stop(f"the agent {player.name} has nothing more to say")
        _, reward, terminated, truncated, info = env.step(action)
        parts = {name: float(part) for name, part in info["reward_parts"].items()}
        rewards.append((float(reward), parts))
        on_info(info)
        if terminated or truncated:
            break
        try:
            action = play.send(info)
        except StopIteration:
            action = None
    play.close()
    trajectory = replace(unwrapped.episode.trajectory(), agent=player.name, seed=seed)
    return with_seen_rewards(trajectory, env, rewards)
