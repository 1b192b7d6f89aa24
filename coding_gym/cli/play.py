"""``coding-gym play``: one agent on one task."""

from typing import Annotated

import gymnasium as gym
import typer

from coding_gym.agents.registry import agent_factory, agent_names
from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.rollout import append_trajectory, play_episode


def play(
    task_id: Annotated[str | None, typer.Argument(help="The task; any, when left out.")] = None,
    agent: Annotated[
        str, typer.Option("--agent", "-a", help=f"One of {', '.join(agent_names())}.")
    ] = "template-repair",
    source: options.Source = "bundled",
    script: Annotated[
        str | None, typer.Option(help="For the agent 'scripted': a JSONL file of actions.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seeds the choice of task.")] = None,
    sandbox: options.Sandbox = "auto",
    out: options.Trajectories = None,
) -> None:
    """Play one episode and print its transcript."""
    player = agent_factory(agent, script=script)
    options.check_writable(out)
    chosen = options.parse_sandbox(sandbox)
    env = gym.make("CodingRepair-v0", tasks=source, sandbox=chosen, render_mode="ansi")
    try:
        trajectory = play_episode(env, player, task_id=task_id, seed=seed)
        text = str(env.render())
    finally:
        env.close()
    if out is not None:
        append_trajectory(out, trajectory)
    console = terminal()
    console.print(text)
    console.print(f"{trajectory.task_id}: {options.verdict(trajectory)}")
    if trajectory.error:
        raise typer.Exit(1)
