"""``coding-gym eval``: runs an agent on tasks and reports its resolved rate."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from coding_gym.agents.built_in import player_names
from coding_gym.agents.harness import harness_names
from coding_gym.cli import options
from coding_gym.cli.console import INTERRUPTED, LineProgress, terminal
from coding_gym.errors import InvalidArgumentError
from coding_gym.evaluation import evaluate, report
from coding_gym.rollout.runner import Runner
from coding_gym.run_folder import Outcome
from coding_gym.trajectory import Trajectory, Turn


def eval_(
    context: typer.Context,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the new or continued run.")],
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in --out with its recorded settings.")
    ] = False,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent", "-a", help=f"{', '.join(player_names())}, or a JSONL file of actions."
        ),
    ] = None,
    harness: Annotated[
        str | None,
        typer.Option(
            help=f"Agent program in the sandbox: {', '.join(harness_names())}, or a TOML file."
        ),
    ] = None,
    model: options.Model = "",
    base_url: options.BaseUrl = None,
    sampling: options.Sampling = None,
    prices: Annotated[
        str | None, typer.Option(help="Prices per million tokens, such as input=0.4,output=1.6.")
    ] = None,
    model_timeout: Annotated[
        float | None, typer.Option(min=1, help="Time limit per reply in seconds; default: 600.")
    ] = None,
    toolset: options.Toolset = "nano",
    tool_format: options.ToolFormat = "auto",
    source: options.Source = "bundled",
    task: options.TaskIds = None,
    split: options.Split = None,
    repositories: options.Repositories = None,
    environments: options.Environments = None,
    num_tasks: options.NumTasks = None,
    max_turns: options.MaxTurns = 50,
    limits: options.Limits = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0, help="Total cost after which no episode starts.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=0, help="Total tokens after which no episode starts.")
    ] = None,
    max_lost: Annotated[
        int | None, typer.Option(min=1, help="Consecutive errors that stop the run; default: 25.")
    ] = None,
    attempts: Annotated[
        int | None,
        typer.Option("--attempts", "-k", min=1, help="Attempts per task: the largest k of pass@k."),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", "-c", min=1, help="Concurrent episodes; default: 8."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the run and its attempts.")] = 0,
    sandbox: options.Sandbox = "auto",
    ray: Annotated[str | None, typer.Option(help="Address of a Ray cluster, or 'auto'.")] = None,
    images_window: Annotated[
        int | None, typer.Option(min=1, help="Pull the images of the tasks, this many at a time.")
    ] = None,
) -> None:
    """Run an agent on tasks and report its resolved rate.

    Example: coding-gym eval --base-url http://localhost:8000/v1 --model NAME --out runs/mine

    Example: coding-gym eval --out runs/mine --resume
    """
    bounds: dict[str, Any] = {"attempts": attempts, "concurrency": concurrency, "ray": ray}
    bounds |= {"max_cost": max_cost, "max_tokens": max_tokens, "max_lost": max_lost}
    bounds["images_window"] = images_window
    next_command = f"coding-gym eval --out {out} --resume"
    if resume:
        _refuse_settings(context, {"out", "resume", *bounds})
        play_run(out, next_command=next_command, resume=True, **bounds)
        return
    player_config = {
        "agent": options.absolute(agent or ("harness" if harness else "chat"), player_names()),
        "harness": harness and options.absolute(harness, harness_names()),
        "model": model or None,
        "base_url": base_url,
        "sampling": options.parse_object("--sampling", sampling) or None,
        "prices": options.parse_object("--prices", prices) or None,
        "model_timeout_s": model_timeout,
    }
    episode = options.parse_limits(limits) | {"sandbox": options.parse_sandbox(sandbox)}
    episode |= {"toolset": toolset, "tool_format": tool_format, "max_turns": max_turns}
    play_run(
        out,
        next_command=next_command,
        player={name: value for name, value in player_config.items() if value is not None},
        tasks=options.task_source(source, repositories, environments, split, task, num_tasks),
        episode=episode,
        seed=seed,
        **bounds,
    )


def _refuse_settings(context: typer.Context, allowed: set[str]) -> None:
    """Raises InvalidArgumentError for options of the user that are not in ``allowed``."""
    refused = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name
        and parameter.name not in allowed
        and getattr(context.get_parameter_source(parameter.name), "name", "") == "COMMANDLINE"
    ]
    if refused:
        raise InvalidArgumentError(
            f"--resume takes settings from config.json; remove {', '.join(refused)}, or start a "
            "new run: omit --resume, and name a new folder with --out"
        )


def play_run(out: Path, *, next_command: str, **arguments: Any) -> None:
    """Plays a run with a progress bar, and prints its result.

    Args:
        out: The run folder.
        next_command: Text of the command that continues a stopped run.
        **arguments: Further arguments of `evaluate`.
    """
    console = terminal()
    try:
        with _RunProgress(console) as progress:
            folder = evaluate(out, on_start=progress.begin, on_done=progress.add, **arguments)
    except KeyboardInterrupt:
        console.print(f"interrupted; to continue, run: {next_command}")
        raise typer.Exit(INTERRUPTED) from None
    result = report(folder)
    result.write(out)
    console.print(result.summary(), style="bold")
    console.print(f"report: {out / 'report.md'}")
    if progress.runner.stop_reason and not progress.finished:
        console.print(f"stopped: {progress.runner.stop_reason}; to continue, run: {next_command}")
        raise typer.Exit(INTERRUPTED)
    if not result.grade_reasons:  # no attempt has a verdict
        raise typer.Exit(1)


class _RunProgress(LineProgress):
    """A progress bar with the current resolved rate, number of turns and cost of a run."""

    runner: Runner
    num_turns = num_graded = num_resolved = 0

    def begin(self, runner: Runner, planned: int, outcomes: Sequence[Outcome]) -> None:
        """Counts the verdicts of a resumed run, and prints the number of attempts to play."""
        self.runner = runner
        self.num_graded = sum(not outcome.error_class for outcome in outcomes)
        self.num_resolved = sum(item.resolved for item in outcomes if not item.error_class)
        self.update(self.bar, total=planned, completed=self.num_graded)
        runner.on_turn = self._add_turn
        num_pending = planned - self.num_graded
        self.console.print(f"{num_pending} attempts to play, up to {runner.concurrency} at a time")

    def add(self, trajectory: Trajectory) -> None:
        """Counts a finished attempt and prints its outcome."""
        self.num_graded += not trajectory.error_class
        self.num_resolved += trajectory.resolved
        self.count(options.outcome(trajectory), self._status())

    def _add_turn(self, _: Turn) -> None:
        self.num_turns += 1
        self.update(self.bar, description=self._status())

    def _status(self) -> str:
        cost = f"  cost {self.runner.cost:.2f}" if self.runner.cost else ""
        return f"resolved {self.num_resolved}/{self.num_graded}  {self.num_turns} turns{cost}"
