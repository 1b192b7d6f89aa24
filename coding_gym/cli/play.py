"""``coding-gym play``: one agent on one task, turn by turn."""

from pathlib import Path
from typing import Annotated

import gymnasium as gym
import typer
from rich.console import Console

from coding_gym.agents.registry import agent_names
from coding_gym.rollout.play import play_episode
from coding_gym.rollout.store import append_trajectory


def play(
    task_id: Annotated[str | None, typer.Argument(help="The task; any, when left out.")] = None,
    agent: Annotated[
        str, typer.Option("--agent", "-a", help=f"One of {', '.join(agent_names())}.")
    ] = "template-repair",
    source: Annotated[
        str, typer.Option("--source", "-s", help="'bundled', or a path to rows or task folders.")
    ] = "bundled",
    script: Annotated[
        str | None, typer.Option(help="For the agent 'scripted': a JSONL file of actions.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seeds the choice of task.")] = None,
    sandbox: Annotated[str, typer.Option(help="The sandbox backend.")] = "auto",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Append the trajectory to this JSONL file.")
    ] = None,
) -> None:
    """Play one episode and print its transcript."""
    env = gym.make("CodingRepair-v0", tasks=source, sandbox=sandbox, render_mode="ansi")
    try:
        trajectory = play_episode(env, agent, task_id=task_id, seed=seed, script=script)
        text = str(env.render())
    finally:
        env.close()
    console = Console(soft_wrap=True, highlight=False, markup=False)
    console.print(text)
    if out is not None:
        append_trajectory(out, trajectory)
    verdict = trajectory.grade.detail if trajectory.grade else trajectory.error
    resolved = trajectory.grade is not None and trajectory.grade.resolved
    console.print(
        f"{trajectory.task_id}: {'resolved' if resolved else f'not resolved - {verdict}'}"
    )
    if trajectory.error:
        raise typer.Exit(1)
