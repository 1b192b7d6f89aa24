"""``coding-gym demo``: an agent repairs bundled tasks on the screen."""

import os
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Annotated, Any

import gymnasium as gym
import typer
from rich.console import Console
from rich.progress import Progress
from rich.syntax import Syntax

from coding_gym.agents.protocol import Info
from coding_gym.agents.registry import agent_factory
from coding_gym.agents.template_repair import readable_message
from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.episode import transcript
from coding_gym.rollout import append_trajectory, play_episode
from coding_gym.tasks import load_tasks
from coding_gym.tasks.curriculum import difficulty_rank
from coding_gym.trajectory import Trajectory

_NOTES = {
    "template-repair": "This agent has no model: it tries\nsmall edits where visible tests fail. "
    "Bugs that need more, or that no visible test shows, are left to yours.",
}
_SHOWN_FIRST = "ledgerline-month-overlap"  # short enough for one screen
_NUM_SHOWN = 12


def demo(
    agent: Annotated[
        str, typer.Option("--agent", "-a", help="Who repairs: template-repair, gold, noop, random.")
    ] = "template-repair",
    workers: options.Workers = None,
    sandbox: options.Sandbox = "auto",
    out: options.Trajectories = None,
    every: Annotated[
        bool, typer.Option("--all", help="All bundled tasks, not just one of each of 12 programs.")
    ] = False,
) -> None:
    """Let an agent repair bundled tasks: the first one turn by turn, then all the others."""
    agent_factory(agent)  # a wrong name is an error before anything is built
    options.check_writable(out)
    chosen = options.parse_sandbox(sandbox)
    console = terminal()
    first, *others = _chosen(every=every)
    console.rule(f"{agent} on {first}")
    played = [_play(first, agent, chosen, _printer(console))]
    console.print(Syntax(played[0][0].patch, "diff", theme="ansi_dark", word_wrap=True))
    console.print(_outcome(*played[0]), style="bold")
    console.rule(f"{agent} on the other {len(others)} tasks")
    pool = ThreadPoolExecutor(workers or os.cpu_count() or 1)
    try:
        with Progress(console=console, transient=True) as progress:
            bar = progress.add_task("episodes", total=len(others))
            futures = [pool.submit(_play, task_id, agent, chosen) for task_id in others]
            for future in as_completed(futures):
                played.append(future.result())
                progress.console.print(_outcome(*played[-1]))
                progress.advance(bar)
    finally:  # after an interrupt only the episodes in progress are waited for
        pool.shutdown(cancel_futures=True)
    trajectories = [trajectory for trajectory, _ in played]
    if out is not None:
        for trajectory in trajectories:
            append_trajectory(out, trajectory)
    console.print(
        f"\nEvery verdict is by hidden tests in a second, clean sandbox. {_NOTES.get(agent, '')}"
    )
    resolved = sum(t.resolved for t in trajectories)
    failures = [t for t in trajectories if t.error]
    console.print(f"resolved {resolved}/{len(trajectories)}")
    if failures:
        raise typer.Exit(1)


def _chosen(*, every: bool) -> list[str]:
    """Returns the ids of the tasks to show: without ``every`` the easiest of some programs."""
    tasks = sorted(load_tasks("bundled"), key=lambda task: task.task_id != _SHOWN_FIRST)
    if every:
        return [task.task_id for task in tasks]
    by_program = {tasks[0].repo: tasks[0].task_id}
    for task in sorted(tasks, key=lambda task: difficulty_rank(task.difficulty)):
        by_program.setdefault(task.repo, task.task_id)
    return list(by_program.values())[:_NUM_SHOWN]


def _play(
    task_id: str,
    agent: str,
    sandbox: str | dict[str, Any],
    on_info: Callable[[Info], None] = lambda _: None,
) -> tuple[Trajectory, float]:
    """Plays one episode in an env of its own; returns it and its wall time in seconds."""
    began = time.perf_counter()
    env = gym.make("CodingRepair-v0", sandbox=sandbox, disable_env_checker=True)
    try:
        trajectory = play_episode(
            env, agent_factory(agent), task_id=task_id, seed=0, on_info=on_info
        )
    finally:
        env.close()
    return trajectory, time.perf_counter() - began


def _printer(console: Console) -> Callable[[Info], None]:
    return lambda info: console.print(
        transcript.render([readable_message(message) for message in info["messages"]])
    )


def _outcome(trajectory: Trajectory, seconds: float) -> str:
    mark = "✔" if trajectory.resolved else "✘"
    turns = len(trajectory.turns)
    verdict = textwrap.shorten(options.verdict(trajectory), 96, placeholder=" …")
    return f"{mark} {trajectory.task_id:<34} {turns:>3} turns {seconds:>5.1f} s  {verdict}"
