"""``coding-gym eval``: an agent on many tasks, to a number with an interval."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from coding_gym.agents.chat import Sampling
from coding_gym.agents.live_episode import Player
from coding_gym.agents.model_client import Prices
from coding_gym.agents.players import get_player, player_names
from coding_gym.agents.predictions import PatchAgent
from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.cli.runs import write_report
from coding_gym.errors import InvalidArgumentError
from coding_gym.evaluation.evaluate import evaluate
from coding_gym.evaluation.statistics import wilson_interval
from coding_gym.rollout.run_folder import CONFIG, Key, Row, RunFolder
from coding_gym.rollout.runner import Runner
from coding_gym.tasks import load_tasks
from coding_gym.tasks.no_repair import NO_REPAIR
from coding_gym.trajectory import Trajectory

_LINE_EVERY_S = 30.0  # where the output is no terminal
_SPEED_PERIOD_S = 600.0
_GATES = ("gold", "empty")  # folders of a run with --golden
_INTERRUPTED = 130  # as in shells, for a program that Ctrl-C ended

_PLAYER = ("base_url", "max_retries", "device", "dtype", "history", "script")
_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "reasoning_effort", "thinking")
_EPISODE = ("toolset", "tool_format", "max_turns")
_RUN = ("num_tasks", "concurrency", "seed", "max_cost", "max_tokens", "ray")


def _continued(context: typer.Context, folder: Path | None) -> Path | None:
    """Takes what is not on the command line from the run that is continued."""
    if folder is not None:
        is_gate = not (folder / CONFIG).exists() and (folder / _GATES[0] / CONFIG).exists()
        saved = RunFolder.open(folder / _GATES[0] if is_gate else folder)
        context.default_map = saved.config.get("command", {})
    return folder


def eval_(
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent", "-a", help=f"One of {', '.join(player_names())}; 'chat' with --model."
        ),
    ] = None,
    model: options.Model = "",
    base_url: options.BaseUrl = None,
    temperature: options.Temperature = None,
    top_p: options.TopP = None,
    top_k: options.TopK = None,
    min_p: options.MinP = None,
    response_limit: options.ResponseLimit = None,
    reasoning_effort: Annotated[str | None, typer.Option(help="Such as low.")] = None,
    thinking: options.Thinking = None,
    extra_body: Annotated[
        str | None, typer.Option(help="JSON object of other fields of the request.")
    ] = None,
    input_price: Annotated[
        float | None, typer.Option(help="Of a million tokens of prompts.")
    ] = None,
    output_price: Annotated[
        float | None, typer.Option(help="Of a million tokens of replies.")
    ] = None,
    cached_price: Annotated[
        float | None, typer.Option(help="Of a million cached tokens of prompts.")
    ] = None,
    model_timeout: Annotated[
        float, typer.Option(help="Seconds for one reply, retries included.")
    ] = 600.0,
    max_retries: Annotated[int, typer.Option(help="Times a request is sent again.")] = 8,
    device: Annotated[str, typer.Option(help="For the agent 'hf': such as cpu or cuda.")] = "auto",
    dtype: Annotated[str, typer.Option(help="For the agent 'hf': such as bfloat16.")] = "auto",
    history: Annotated[
        str,
        typer.Option(
            help="For the agent 'hf': 'append' only adds ids to a prompt, 'template' renders the "
            "chat again for each turn."
        ),
    ] = "append",
    script: options.Script = None,
    toolset: options.Toolset = "nano",
    tool_format: options.ToolFormat = "auto",
    max_turns: options.MaxTurns = 50,
    limits: options.Limits = None,
    episode_timeout: Annotated[
        float | None, typer.Option(help="Seconds of one episode, the model's included.")
    ] = None,
    command_timeout: Annotated[float, typer.Option(help="Seconds of one command.")] = 120.0,
    sandbox: options.Sandbox = "auto",
    source: options.Source = "bundled",
    task: Annotated[
        list[str] | None, typer.Option("--task", "-t", help="Only this task; may be repeated.")
    ] = None,
    split: options.Split = None,
    repositories: options.Repositories = None,
    environments: options.Environments = None,
    num_tasks: Annotated[
        int | None,
        typer.Option("-n", "--num-tasks", min=1, help="Only the first so many tasks."),
    ] = None,
    attempts: Annotated[
        int, typer.Option("--attempts", "-k", min=1, help="Attempts at each task.")
    ] = 1,
    concurrency: options.Concurrency = 8,
    seed: Annotated[int, typer.Option(help="Seed of the run.")] = 0,
    golden: Annotated[
        bool,
        typer.Option(
            "--golden", help="Grade the gold patch and the empty patch of each task instead."
        ),
    ] = False,
    max_cost: Annotated[
        float | None, typer.Option(help="Begin no more episodes once the run has cost this much.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="The same for tokens of prompts and replies.")
    ] = None,
    ray: Annotated[
        str | None, typer.Option(help="Play on the nodes of this Ray cluster, such as auto.")
    ] = None,
    out: options.Folder = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            is_eager=True,
            callback=_continued,
            help="Continue this run, with its settings; takes a larger -n or --attempts.",
        ),
    ] = None,
) -> None:
    """Play an agent on many tasks and report how many it resolves."""
    given = {k: v for k, v in locals().items() if k not in ("out", "resume")}
    given["source"] = options.located(source)
    if (resume is None) == (out is None):
        raise InvalidArgumentError("name one folder: --out for a new run, or --resume")
    if not (agent or model or golden):
        raise InvalidArgumentError("name who plays: --model with --base-url, or --agent")
    path = Path(resume or out or "")
    run = {
        "source": options.task_places(source, split, repositories, environments),
        "task_ids": task or None,
        "episode": _episode(given),
        "command": {k: options.as_text(v) for k, v in given.items() if v is not None},
        **{name: given[name] for name in _RUN},
    }
    if golden:
        check_tasks(path.parent if resume and path.name in _GATES else path, run)
    else:
        played = play_run(_player(given), path, is_resumed=bool(resume), attempts=attempts, **run)
        if all(row.error_class for row in played.rows().values()):
            raise typer.Exit(1)


def play_run(
    player: Player,
    path: Path,
    *,
    source: Mapping[str, Any],
    task_ids: Sequence[str] | None,
    command: Mapping[str, Any],
    is_resumed: bool,
    **arguments: Any,
) -> RunFolder:
    """Plays a run with a progress bar, and prints its result.

    Args:
        player: The agent.
        path: The folder of the run.
        source: Arguments of `load_tasks`.
        task_ids: Only these tasks.
        command: The options of the command, for the record.
        is_resumed: Whether the folder holds the run already.
        **arguments: Others of `evaluate`.

    Raises:
        typer.Exit: The run was interrupted, or a budget ended it.
    """
    loaded = load_tasks(**source, task_ids=task_ids)
    console = terminal()
    try:
        with ShownProgress(console) as progress:
            folder = evaluate(
                player,
                path,
                tasks=loaded,
                resume=is_resumed,
                source=source,
                notes={"command": command},
                on_start=progress.begin,
                on_done=progress.show,
                **arguments,
            )
    except KeyboardInterrupt:
        console.print(f"interrupted; continue with --resume {path}")
        raise typer.Exit(_INTERRUPTED) from None
    if folder.rows():
        console.print(write_report(path).summary(), style="bold")
        console.print(f"report: {path / 'report.md'}")
    if progress.stopped:
        console.print(f"stopped: {progress.stopped}")
        console.print(f"continue with --resume {path}, and a larger bound where one was reached")
        raise typer.Exit(_INTERRUPTED)
    return folder


def check_tasks(path: Path, run: Mapping[str, Any]) -> None:
    """Grades every gold patch, and the base with a file that nothing uses: a gate for tasks.

    An empty patch would not be run, and so would tell nothing of the hidden tests.

    Called again for the same folder, it continues where it stopped.

    Raises:
        typer.Exit: A gold patch is not resolved, an empty one is, or either has no verdict.
    """
    loaded = load_tasks(**run["source"], task_ids=run["task_ids"])
    failed: list[str] = []
    for name, expected in zip(_GATES, (True, False), strict=True):
        patches = {one.task_id: [one.gold_patch if expected else NO_REPAIR.text] for one in loaded}
        terminal().rule(f"{name} patches")
        is_resumed = (path / name / CONFIG).exists()
        folder = play_run(PatchAgent(name, patches), path / name, is_resumed=is_resumed, **run)
        rows = folder.rows().values()
        wrong = [row for row in rows if row.error_class or row.resolved is not expected]
        failed += [f"{name}: {row.task_id} {row.error_class}".rstrip() for row in wrong]
    if failed:
        terminal().print("not as expected:\n" + "\n".join(failed))
        raise typer.Exit(1)
    terminal().print("every gold patch is resolved, and no empty one")


def _player(given: Mapping[str, Any]) -> Player:
    price, output, cached = (given[f"{name}_price"] for name in ("input", "output", "cached"))
    prices = Prices(input=price or 0.0, output=output or 0.0, cached_input=cached)
    sampling = Sampling(
        **{name: given[name] for name in _SAMPLING},
        max_tokens=given["response_limit"],
        extra=options.parse_object("--extra-body", given["extra_body"]),
    )
    return get_player(
        given["agent"] or "chat",
        model=given["model"],
        sampling=sampling,
        prices=None if price is None and output is None else prices,
        model_timeout_s=given["model_timeout"],
        **{name: given[name] for name in _PLAYER},
    )


def _episode(given: Mapping[str, Any]) -> dict[str, Any]:
    limits = options.parse_object("--limits", given["limits"])
    if given["episode_timeout"] is not None:
        limits |= {"max_seconds": given["episode_timeout"], "clock": "wall"}
    own = {"tokenizer": f"hf:{given['model']}"} if given["agent"] == "hf" else {}
    return {
        **own,
        **{name: given[name] for name in _EPISODE},
        "limits": limits,
        "sandbox": options.parse_sandbox(given["sandbox"]),
        "command_timeout_s": given["command_timeout"],
    }


class ShownProgress(Progress):
    """A bar with the rate so far; where the output is no terminal, a line now and then."""

    def __init__(self, console: Console) -> None:
        super().__init__(
            BarColumn(30),
            MofNCompleteColumn(),
            TextColumn("{task.percentage:>3.0f}%  {task.fields[text]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            speed_estimate_period=_SPEED_PERIOD_S,
        )
        self._bar = self.add_task("attempts", total=None, text="")
        self._counts = Counter[str]()
        self._runner: Runner | None = None
        self._last_line = time.monotonic()

    def begin(self, runner: Runner, planned: int, rows: Mapping[Key, Row]) -> None:
        """Begins to count; says what a continued run keeps."""
        self._runner = runner
        kept = [row for row in rows.values() if not row.error_class]
        self._counts.update(graded=len(kept), resolved=sum(row.resolved for row in kept))
        self.update(self._bar, total=planned, completed=len(kept))
        if rows:
            self.console.print(
                f"kept {len(kept)} of {planned} attempts; {len(rows) - len(kept)} that ended by an "
                "error are played again"
            )

    def show(self, trajectory: Trajectory) -> None:
        """Counts an attempt that has ended."""
        if trajectory.error_class:
            self._counts["errors"] += 1
            last = trajectory.error.strip().rpartition("\n")[2]
            self.console.print(
                f"✘ {trajectory.task_id} #{trajectory.attempt}: {trajectory.error_class}: "
                f"{last:.160}"
            )
        else:
            self._counts.update(graded=1, resolved=trajectory.resolved)
        self.advance(self._bar)
        self.update(self._bar, text=self.summary())
        if not self.console.is_terminal and time.monotonic() - self._last_line > _LINE_EVERY_S:
            self._last_line = time.monotonic()
            (bar,) = self.tasks
            self.console.print(f"{bar.completed:.0f}/{bar.total:.0f}  {self.summary()}")

    @property
    def stopped(self) -> str:
        """Why the run ended before all attempts were played, or ""."""
        (bar,) = self.tasks
        is_complete = bar.total is not None and bar.completed >= bar.total
        return "" if self._runner is None or is_complete else self._runner.stop_reason

    def summary(self) -> str:
        """Returns the rate with its interval, the errors, the cost and the speed in one line."""
        resolved, graded = self._counts["resolved"], self._counts["graded"]
        parts = [f"resolved {resolved}/{graded}"]
        if graded:
            low, high = wilson_interval(resolved, graded)
            parts[0] += f" = {100 * resolved / graded:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        if self._counts["errors"]:
            parts.append(f"{self._counts['errors']} errors")
        if self._runner is not None and self._runner.spent.cost:
            parts.append(f"cost {self._runner.spent.cost:.2f}")
        if speed := self.tasks[0].speed:
            parts.append(f"{60 * speed:.1f}/min")
        return "  ".join(parts)
