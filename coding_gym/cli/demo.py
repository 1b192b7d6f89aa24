"""``coding-gym demo``: an agent without a model repairs bundled tasks."""

import asyncio
from collections.abc import Sequence

import typer
from rich.syntax import Syntax

from coding_gym.agents.built_in import get_player
from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.episode import EpisodeConfig, transcript
from coding_gym.rollout import Runner
from coding_gym.task import Task
from coding_gym.tasks.sampling import difficulty_rank
from coding_gym.trajectory import Trajectory, Turn

_NOTE = """
Hidden tests grade each patch in a separate sandbox. This agent has no model: it cannot repair
bugs that need larger edits or that no visible test detects.

all tasks:     coding-gym tasks list
your model:    coding-gym eval --model NAME --base-url http://localhost:8000/v1 --out runs/mine
every episode: coding-gym view runs"""
_FIRST_TASK = "ledgerline-month-overlap"  # short enough for one screen
NUM_TASKS = 12


def demo() -> None:
    """Repair 12 bundled tasks with an agent that uses no model; print the first task's turns."""
    console = terminal()
    config = EpisodeConfig.from_config(tasks="bundled")
    first_task, *further_tasks = _easiest(config.tasks)
    records: list[Trajectory] = []

    def show_turn(turn: Turn) -> None:
        text = transcript.render(turn.messages)
        if "git apply" not in text:  # candidate patches; the final patch is printed below
            console.print(text)

    def show_end(record: Trajectory) -> None:
        records.append(record)
        console.print(options.outcome(record))

    player = get_player("template-repair")
    console.rule(f"the issue of {first_task.task_id}")
    console.print(first_task.problem_statement)
    console.rule(f"the agent {player.name}: it tries small edits at lines that failing tests run")
    runner = Runner(config=config, player=player, on_turn=show_turn)
    asyncio.run(runner.run([(first_task, 0)], show_end))
    console.rule("the patch of the agent")
    console.print(Syntax("", "diff", theme="ansi_dark").highlight(records[0].patch))
    console.rule(f"the same agent on {len(further_tasks)} other programs")
    runner = Runner(config=config, player=player, concurrency=options.NUM_CORES)
    asyncio.run(runner.run([(task, 0) for task in further_tasks], show_end))
    num_resolved = sum(record.resolved for record in records)
    console.print(f"resolved {num_resolved} of {len(records)}", style="bold")
    console.print(_NOTE)
    if any(record.error for record in records):
        raise typer.Exit(1)


def _easiest(tasks: Sequence[Task]) -> list[Task]:
    """Returns up to `NUM_TASKS` tasks: `_FIRST_TASK`, and the easiest of each other program."""
    by_program: dict[str, Task] = {}
    first_task = next(task for task in tasks if task.task_id == _FIRST_TASK)
    for task in [first_task, *sorted(tasks, key=lambda task: difficulty_rank(task.difficulty))]:
        by_program.setdefault(task.repo, task)
    return list(by_program.values())[:NUM_TASKS]
