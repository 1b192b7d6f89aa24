"""``coding-gym play``: one agent on one task."""

from typing import Annotated, Any

import gymnasium as gym
import typer

from coding_gym.agents.registry import agent_names, get_agent
from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.rollout import append_trajectory, play_episode
from coding_gym.tasks import load_tasks


def play(
    task_id: Annotated[str | None, typer.Argument(help="The task; any, when left out.")] = None,
    agent: Annotated[
        str, typer.Option("--agent", "-a", help=f"One of {', '.join(agent_names())}.")
    ] = "template-repair",
    source: options.Source = "bundled",
    script: options.Script = None,
    toolset: options.Toolset = "nano",
    tool_format: options.ToolFormat = "auto",
    max_turns: options.MaxTurns = 50,
    limits: options.Limits = None,
    repositories: options.Repositories = None,
    environments: options.Environments = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the choice of task; random by default.")
    ] = None,
    sandbox: options.Sandbox = "auto",
    out: options.Trajectories = None,
) -> None:
    """Play one episode and print its transcript.

    Example: coding-gym play ledgerline-month-overlap --out episodes.jsonl
    """
    player = get_agent(agent, script=script)
    options.check_writable(out)
    chosen = options.parse_sandbox(sandbox)
    tasks: Any = source
    if repositories or environments:
        loaded = load_tasks(source, repositories=repositories, environments=environments)
        tasks = [task.to_row() for task in loaded]
    env = gym.make(
        "CodingRepair-v0",
        tasks=tasks,
        toolset=toolset,
        tool_format=tool_format,
        max_turns=max_turns,
        limits=options.parse_object("--limits", limits),
        sandbox=chosen,
        render_mode="ansi",
    )
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
