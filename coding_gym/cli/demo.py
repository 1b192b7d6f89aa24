"""``coding-gym demo``: an agent repairs bundled tasks on the screen."""

import asyncio
import os
import textwrap
from collections.abc import Sequence

import typer
from rich.progress import Progress
from rich.syntax import Syntax

from coding_gym.agents.players import get_player
from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.episode import EpisodeFactory, Outcome, transcript
from coding_gym.grade import GradeReason
from coding_gym.rollout import Runner
from coding_gym.task import Task
from coding_gym.tasks.sampling import difficulty_rank
from coding_gym.trajectory import Trajectory

_NOTE = """
Every verdict is by hidden tests in a second, clean sandbox. This agent has no model: it tries
small edits where visible tests fail. Bugs that need more, or that no visible test shows, are left
to yours."""
_EDITS = """▶ runs the visible tests, tries small edits where the failing ones lead, and keeps
  the first with which all pass
"""
_SHOWN_FIRST = "ledgerline-month-overlap"  # short enough for one screen
_NUM_SHOWN = 12


def demo(workers: options.Workers = None, sandbox: options.Sandbox = "auto") -> None:
    """Let an agent without a model repair a task of each of 12 programs, one turn by turn."""
    player = get_player("template-repair")
    chosen = options.parse_sandbox(sandbox)
    factory = EpisodeFactory.from_config(tasks="bundled", sandbox=chosen)
    tasks = _chosen(factory.tasks)
    console = terminal()
    played: list[Trajectory] = []
    console.rule(f"{player.name} on {tasks[0].task_id}")
    console.print(tasks[0].problem_statement)

    def show_turn(outcome: Outcome) -> None:
        text = transcript.render(outcome.messages)
        console.print(_EDITS if "git apply" in text else text)  # an encoded patch tells nobody

    runner = Runner(factory=factory, player=player, on_outcome=show_turn)
    asyncio.run(runner.run([(tasks[0], 0)], played.append))
    console.print(Syntax(played[0].patch, "diff", theme="ansi_dark", word_wrap=True))
    console.print(_outcome(played[0]), style="bold")
    console.rule(f"{player.name} on the other {len(tasks) - 1} tasks")
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("episodes", total=len(tasks) - 1)

        def show(trajectory: Trajectory) -> None:
            played.append(trajectory)
            progress.console.print(_outcome(trajectory))
            progress.advance(bar)

        runner = Runner(factory=factory, player=player, concurrency=workers or os.cpu_count() or 1)
        asyncio.run(runner.run([(task, 0) for task in tasks[1:]], show))
    console.print(_NOTE)
    console.print(f"resolved {sum(one.resolved for one in played)}/{len(played)}")
    if any(one.error for one in played):
        raise typer.Exit(1)


def _chosen(bundled: Sequence[Task]) -> list[Task]:
    """Returns the easiest task of each of some programs."""
    by_program: dict[str, Task] = {}
    for task in sorted(
        bundled, key=lambda one: (one.task_id != _SHOWN_FIRST, difficulty_rank(one.difficulty))
    ):
        by_program.setdefault(task.repo, task)
    return list(by_program.values())[:_NUM_SHOWN]


def _outcome(trajectory: Trajectory) -> str:
    mark = "✔" if trajectory.resolved else "✘"
    turns, seconds = len(trajectory.turns), trajectory.duration_s
    said = options.verdict(trajectory)
    if trajectory.grade is not None and trajectory.grade.reason is GradeReason.EMPTY_PATCH:
        said = "left as it was"  # the note says why
    verdict = textwrap.shorten(said, 96, placeholder=" …")
    return f"{mark} {trajectory.task_id:<34} {turns:>3} turns {seconds:>5.1f} s  {verdict}"
