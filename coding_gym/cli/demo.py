"""``coding-gym demo``: an agent repairs bundled tasks on the screen."""

import asyncio
from collections import Counter
from collections.abc import Sequence

import typer
from rich.syntax import Syntax

from coding_gym.agents.players import get_player
from coding_gym.cli import options
from coding_gym.cli.console import LineProgress, terminal
from coding_gym.episode import EpisodeFactory, Outcome, transcript
from coding_gym.grade import GradeReason
from coding_gym.rollout import Runner
from coding_gym.task import Task
from coding_gym.tasks.sampling import difficulty_rank
from coding_gym.trajectory import Trajectory

_EDITS = """▶ runs the visible tests, tries small edits where the failing ones lead, and keeps
  the first with which all pass
"""
_ENDS = {
    GradeReason.RESOLVED: "resolved",
    GradeReason.TESTS_FAILED: "hidden tests fail after its edit",
    GradeReason.EMPTY_PATCH: "left as it was",
}
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
    player = get_player("template-repair")
    chosen = options.parse_sandbox(sandbox)
    factory = EpisodeFactory.from_config(tasks="bundled", sandbox=chosen)
    tasks = _chosen(factory.tasks)
    console = terminal()
    played: list[Trajectory] = []
    console.rule(f"the issue of {tasks[0].task_id}")
    console.print(tasks[0].problem_statement)
    console.rule(f"the agent {player.name}")
    console.print(_EDITS)

    def show_turn(outcome: Outcome) -> None:
        text = transcript.render(outcome.messages)
        if "git apply" not in text:  # an encoded patch
            console.print(text)

    runner = Runner(factory=factory, player=player, on_outcome=show_turn)
    with console.status("this takes some seconds"):
        asyncio.run(runner.run([(tasks[0], 0)], played.append))
    console.rule("its patch and its grade")
    console.print(Syntax("", "diff", theme="ansi_dark").highlight(played[0].patch))
    console.print(_outcome(played[0]), style="bold")
    console.rule(f"the same agent on {len(tasks) - 1} other programs")
    with LineProgress(console, len(tasks) - 1) as progress:

        def show(trajectory: Trajectory) -> None:
            played.append(trajectory)
            progress.console.print(_outcome(trajectory))
            progress.advance(progress.bar)

        runner = Runner(factory=factory, player=player, concurrency=concurrency)
        asyncio.run(runner.run([(task, 0) for task in tasks[1:]], show))
    console.rule("summary")
    counts = Counter(map(_end, played))
    resolved = f"resolved {counts.pop(_ENDS[GradeReason.RESOLVED], 0)} of {len(played)}"
    others = (f"{end}: {count}" for end, count in counts.most_common())
    console.print("; ".join([resolved, *others]), style="bold")
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


def _outcome(trajectory: Trajectory) -> str:
    mark = "✔" if trajectory.resolved else "✘"
    return f"{mark} {trajectory.task_id:<34} {trajectory.duration_s:>5.1f} s  {_end(trajectory)}"


def _end(trajectory: Trajectory) -> str:
    if trajectory.grade is None:
        return "no grade: our side failed"  # the runner has printed why
    return _ENDS.get(trajectory.grade.reason) or options.verdict(trajectory)
