"""``coding-gym demo``: an agent repairs bundled tasks on the screen."""

import asyncio
from collections.abc import Sequence

import typer
from rich.syntax import Syntax

from coding_gym.agents.players import get_player
from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.episode import EpisodeConfig, transcript
from coding_gym.rollout import Runner
from coding_gym.task import Task
from coding_gym.tasks.sampling import difficulty_rank
from coding_gym.trajectory import Trajectory, Turn

_NOTE = """
Hidden tests decide, in a second, clean sandbox. This agent has no model: bugs that need more than
small edits, or that no visible test shows, are left to yours.

each task:     coding-gym tasks list
your model:    coding-gym eval --model NAME --base-url http://localhost:8000/v1 --out runs/mine
every episode: coding-gym view runs"""
_FIRST_TASK = "ledgerline-month-overlap"  # short enough for one screen
NUM_TASKS = 12


def demo(
    concurrency: options.TasksPerCore = options.NUM_CORES, sandbox: options.Sandbox = "auto"
) -> None:
    """Let an agent without a model repair a task of each of 12 programs, one turn by turn."""
    console = terminal()
    chosen = options.parse_sandbox(sandbox)
    factory = EpisodeConfig.from_config(tasks="bundled", sandbox=chosen)
    first, *others = _chosen(factory.tasks)
    played: list[Trajectory] = []

    def show_turn(turn: Turn) -> None:
        text = transcript.render(turn.messages)
        if "git apply" not in text:  # a candidate; the last one is printed below
            console.print(text)

    def show_end(trajectory: Trajectory) -> None:
        played.append(trajectory)
        console.print(options.outcome(trajectory))

    player = get_player("template-repair")
    console.rule(f"the issue of {first.task_id}")
    console.print(first.problem_statement)
    console.rule(f"the agent {player.name}: it tries small edits where failing tests lead")
    runner = Runner(factory=factory, player=player, on_turn=show_turn)
    asyncio.run(runner.run([(first, 0)], show_end))
    console.rule("its patch")
    console.print(Syntax("", "diff", theme="ansi_dark").highlight(played[0].patch))
    console.rule(f"the same agent on {len(others)} other programs")
    runner = Runner(factory=factory, player=player, concurrency=concurrency)
    asyncio.run(runner.run([(task, 0) for task in others], show_end))
    num_resolved = sum(trajectory.resolved for trajectory in played)
    console.print(f"resolved {num_resolved} of {len(played)}", style="bold")
    console.print(_NOTE)
    if any(one.error for one in played):
        raise typer.Exit(1)


def _chosen(bundled: Sequence[Task]) -> list[Task]:
    """Returns the easiest task of each of some programs."""
    by_program: dict[str, Task] = {}
    for task in sorted(
        bundled, key=lambda one: (one.task_id != _FIRST_TASK, difficulty_rank(one.difficulty))
    ):
        by_program.setdefault(task.repo, task)
    return list(by_program.values())[:NUM_TASKS]
