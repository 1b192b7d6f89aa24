"""``coding-gym demo``: the whole main path, to be watched."""

import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import typer
from rich.console import Console
from rich.progress import Progress

from coding_gym.episode import transcript
from coding_gym.rollout.play import play_episode
from coding_gym.rollout.store import append_trajectory
from coding_gym.tasks import load_tasks
from coding_gym.trajectory import Trajectory

_SHOWN_FIRST = "ledgerline-month-overlap"  # short enough to be followed on a screen


def demo(
    agent: Annotated[
        str, typer.Option("--agent", "-a", help="Who repairs: template-repair, gold, noop, random.")
    ] = "template-repair",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Episodes at one time; by default one per core.")
    ] = None,
    sandbox: Annotated[str, typer.Option(help="The sandbox backend.")] = "auto",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Append the trajectories to this JSONL file.")
    ] = None,
) -> None:
    """Let an agent repair the bundled tasks: the first one turn by turn, then all the others."""
    console = Console(soft_wrap=True, highlight=False, markup=False)
    tasks = sorted(load_tasks("bundled"), key=lambda task: task.task_id != _SHOWN_FIRST)
    first, *others = (task.task_id for task in tasks)
    console.rule(f"{agent} on {first}")
    played = [_play(first, agent, sandbox, _printer(console))]
    console.print(_outcome(*played[0]), style="bold")
    console.rule(f"{agent} on the other {len(others)} tasks")
    with (
        Progress(console=console, transient=True) as progress,
        ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool,
    ):
        bar = progress.add_task("episodes", total=len(others))
        futures = [pool.submit(_play, task_id, agent, sandbox) for task_id in others]
        for future in as_completed(futures):
            played.append(future.result())
            progress.console.print(_outcome(*played[-1]))
            progress.advance(bar)
    trajectories = [trajectory for trajectory, _ in played]
    if out is not None:
        for trajectory in trajectories:
            append_trajectory(out, trajectory)
    resolved = sum(t.grade is not None and t.grade.resolved for t in trajectories)
    failures = [t for t in trajectories if t.error]
    console.print(f"resolved {resolved}/{len(trajectories)}")
    if failures:
        raise typer.Exit(1)


def _play(task_id: str, agent: str, sandbox: str, on_info: Any = None) -> tuple[Trajectory, float]:
    """Plays one episode in an env of its own; returns it and its wall time in seconds."""
    began = time.perf_counter()
    env = gym.make("CodingRepair-v0", sandbox=sandbox, disable_env_checker=True)
    try:
        trajectory = play_episode(env, agent, task_id=task_id, seed=0, on_info=on_info)
    finally:
        env.close()
    return trajectory, time.perf_counter() - began


def _printer(console: Console) -> Any:
    def show(info: Mapping[str, Any]) -> None:
        console.print(transcript.render(info["messages"]))

    return show


def _outcome(trajectory: Trajectory, seconds: float) -> str:
    grade = trajectory.grade
    if grade is None:
        verdict = f"no grade: {trajectory.error}"
    elif grade.resolved:
        verdict = f"resolved, {len(grade.fail_to_pass)} hidden tests pass"
    else:
        verdict = f"not resolved: {grade.detail or grade.reason}"
    mark = "✔" if grade is not None and grade.resolved else "✘"
    turns = len(trajectory.turns)
    return f"{mark} {trajectory.task_id:<34} {turns:>3} turns {seconds:>5.1f} s  {verdict}"
