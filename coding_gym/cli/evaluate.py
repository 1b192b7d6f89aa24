"""``coding-gym eval``: an agent on many tasks, to a number with an interval."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from coding_gym.cli.runs import summary, write_report
from coding_gym.errors import InvalidArgumentError
from coding_gym.evaluation.evaluate import evaluate
from coding_gym.evaluation.statistics import wilson_interval
from coding_gym.rollout.run_folder import Key, Row, RunFolder
from coding_gym.rollout.runner import Runner
from coding_gym.tasks import load_tasks
from coding_gym.trajectory import Trajectory

_LINE_EVERY_S = 30.0  # where the output is no terminal
_RUN_ARGUMENTS = ("num_tasks", "concurrency", "seed", "max_cost", "max_tokens", "ray")
_INTERRUPTED = 130  # as in shells, for a program that Ctrl-C ended

_MODEL, _EPISODE, _RUN = "Model", "Episode", "Run"


def _option(help_text: str, panel: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help_text, rich_help_panel=panel, **more)


def eval_(
    context: typer.Context,
    agent: Annotated[
        str | None,
        _option(
            f"One of {', '.join(player_names())}; 'chat' with --model.", _MODEL, "--agent", "-a"
        ),
    ] = None,
    model: Annotated[str | None, _option("The model's name.", _MODEL, "--model", "-m")] = None,
    base_url: Annotated[
        str | None,
        _option(
            "An OpenAI-compatible server, such as http://localhost:8000/v1; its key is "
            "OPENAI_API_KEY. Without it the model is one of LiteLLM's, such as anthropic/….",
            _MODEL,
        ),
    ] = None,
    temperature: Annotated[float | None, _option("Sampling temperature.", _MODEL)] = None,
    top_p: Annotated[float | None, _option("Nucleus sampling.", _MODEL)] = None,
    top_k: Annotated[int | None, _option("As vLLM and SGLang take it.", _MODEL)] = None,
    min_p: Annotated[float | None, _option("As vLLM and SGLang take it.", _MODEL)] = None,
    response_limit: Annotated[int | None, _option("Tokens of one reply.", _MODEL)] = None,
    reasoning_effort: Annotated[str | None, _option("Such as low.", _MODEL)] = None,
    thinking: Annotated[
        bool | None, _option("Chat template's enable_thinking.", _MODEL, "--thinking/--no-thinking")
    ] = None,
    extra_body: Annotated[
        str | None, _option("JSON object of other fields of the request.", _MODEL)
    ] = None,
    input_price: Annotated[float | None, _option("Of a million tokens of prompts.", _MODEL)] = None,
    output_price: Annotated[
        float | None, _option("Of a million tokens of replies.", _MODEL)
    ] = None,
    cached_price: Annotated[
        float | None, _option("Of a million cached tokens of prompts.", _MODEL)
    ] = None,
    model_timeout: Annotated[
        float, _option("Seconds for one reply, retries included.", _MODEL)
    ] = 600.0,
    max_retries: Annotated[int, _option("Times a request is sent again.", _MODEL)] = 8,
    device: Annotated[str, _option("For the agent 'hf': such as cpu or cuda.", _MODEL)] = "auto",
    dtype: Annotated[str, _option("For the agent 'hf': such as bfloat16.", _MODEL)] = "auto",
    history: Annotated[
        str,
        _option(
            "For the agent 'hf': 'append' only adds ids to a prompt, 'template' renders the chat "
            "again for each turn.",
            _MODEL,
        ),
    ] = "append",
    script: Annotated[
        str | None, _option("For the agent 'scripted': a JSONL file of actions.", _MODEL)
    ] = None,
    toolset: Annotated[str, _option("The tools.", _EPISODE)] = "nano",
    tool_format: Annotated[
        str, _option("'auto': native tool calls; else how they are written.", _EPISODE, "--format")
    ] = "auto",
    max_turns: Annotated[int, _option("Replies in an episode.", _EPISODE)] = 50,
    limits: options.Limits = None,
    episode_timeout: Annotated[
        float | None, _option("Seconds of one episode, the model's included.", _EPISODE)
    ] = None,
    command_timeout: Annotated[float, _option("Seconds of one command.", _EPISODE)] = 120.0,
    sandbox: options.Sandbox = "auto",
    source: options.Source = "bundled",
    task: Annotated[
        list[str] | None, _option("Only this task; may be repeated.", _RUN, "--task", "-t")
    ] = None,
    split: options.Split = None,
    repositories: options.Repositories = None,
    environments: options.Environments = None,
    num_tasks: Annotated[
        int | None, _option("Only the first so many tasks.", _RUN, "-n", "--num-tasks", min=1)
    ] = None,
    attempts: Annotated[
        int | None,
        _option("Attempts at each task; 1 when left out.", _RUN, "--attempts", "-k", min=1),
    ] = None,
    concurrency: Annotated[
        int, _option("Episodes at one time.", _RUN, "--concurrency", "-c", min=1)
    ] = 8,
    seed: Annotated[int, _option("Seed of the run.", _RUN)] = 0,
    golden: Annotated[
        bool,
        _option("Grade the gold patch and the empty patch of each task instead.", _RUN, "--golden"),
    ] = False,
    max_cost: Annotated[
        float | None, _option("Begin no more episodes once the run has cost this much.", _RUN)
    ] = None,
    max_tokens: Annotated[
        int | None, _option("The same for tokens of prompts and replies.", _RUN)
    ] = None,
    ray: Annotated[
        str | None,
        _option("Play on the nodes of this Ray cluster, such as auto.", _RUN),
    ] = None,
    out: Annotated[Path | None, _option("The new folder of the run.", _RUN, "--out", "-o")] = None,
    resume: Annotated[
        Path | None,
        _option("Continue this run, with its settings; takes a larger -n or --attempts.", _RUN),
    ] = None,
) -> None:
    """Play an agent on many tasks and report how many it resolves."""
    given = {k: v for k, v in locals().items() if k not in ("context", "out", "resume")}
    if (resume is None) == (out is None):
        raise InvalidArgumentError("name the folder of the run: --out for a new one, or --resume")
    if resume is not None:
        saved = RunFolder.open(resume).config.get("command", {})
        sources = {name: context.get_parameter_source(name) for name in given}
        typed = [
            name for name, source in sources.items() if source and source.name == "COMMANDLINE"
        ]
        given |= {name: value for name, value in saved.items() if name not in typed}
    path = Path(resume or out or "")
    run = {
        "source": _source(given),
        "task_ids": given["task"] or None,
        "episode": _episode(given),
        "command": _json(given),
        **{name: given[name] for name in _RUN_ARGUMENTS},
    }
    if given["golden"]:
        check_tasks(path, run, is_resumed=resume is not None)
        return
    play_run(_player(given), path, attempts=given["attempts"] or 1, is_resumed=bool(resume), **run)


def play_run(
    player: Player,
    path: Path,
    *,
    source: Mapping[str, Any],
    task_ids: Sequence[str] | None = None,
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
    with ShownProgress(console) as progress, _hint(console, path):
        folder = evaluate(
            player,
            path,
            tasks=loaded,
            resume=is_resumed,
            source=_json(source),
            notes={"command": command},
            on_start=progress.begin,
            on_done=progress.show,
            **arguments,
        )
    if folder.rows():
        console.print(summary(write_report(path)), style="bold")
        console.print(f"report: {path / 'report.md'}")
    if progress.stopped:
        console.print(f"stopped: {progress.stopped}; continue with --resume {path}")
        raise typer.Exit(_INTERRUPTED)
    return folder


@contextmanager
def _hint(console: Console, path: Path) -> Iterator[None]:
    """Says how a run that is interrupted twice can be continued."""
    try:
        yield
    except KeyboardInterrupt:
        console.print(f"interrupted; continue with --resume {path}")
        raise typer.Exit(_INTERRUPTED) from None


def check_tasks(path: Path, run: Mapping[str, Any], *, is_resumed: bool) -> None:
    """Grades the gold patch and the empty patch of every task, as a gate for a set of tasks.

    Raises:
        typer.Exit: A gold patch is not resolved, or an empty one is.
    """
    loaded = load_tasks(**run["source"], task_ids=run["task_ids"])
    failed: list[str] = []
    for name, expected in (("gold", True), ("empty", False)):
        patches = {one.task_id: [one.gold_patch if expected else ""] for one in loaded}
        terminal().rule(f"{name} patches")
        folder = play_run(PatchAgent(name, patches), path / name, is_resumed=is_resumed, **run)
        rows = folder.rows().values()
        failed += [f"{name}: {row.task_id}" for row in rows if row.resolved is not expected]
    if failed:
        terminal().print("not as expected:\n" + "\n".join(failed))
        raise typer.Exit(1)
    terminal().print("every gold patch is resolved, and no empty one")


def _player(given: Mapping[str, Any]) -> Player:
    return get_player(
        given["agent"] or ("chat" if given["model"] else "template-repair"),
        model=given["model"] or "",
        base_url=given["base_url"],
        sampling=_sampling(given),
        prices=_prices(given),
        model_timeout_s=given["model_timeout"],
        **{name: given[name] for name in ("max_retries", "device", "dtype", "history", "script")},
    )


def _source(given: Mapping[str, Any]) -> dict[str, Any]:
    names = ("source", "split", "repositories", "environments")
    return {name: given[name] for name in names if given[name] is not None}


def _json(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options as JSON values, paths as seen from anywhere."""
    return {k: str(v.absolute()) if isinstance(v, Path) else v for k, v in given.items()}


def _sampling(given: Mapping[str, Any]) -> Sampling:
    names = ("temperature", "top_p", "top_k", "min_p", "reasoning_effort", "thinking")
    extra = options.parse_object("--extra-body", given["extra_body"])
    settings = {name: given[name] for name in names}
    return Sampling(**settings, max_tokens=given["response_limit"], extra=extra)


def _prices(given: Mapping[str, Any]) -> Prices | None:
    price, output = given["input_price"], given["output_price"]
    if price is None and output is None:
        return None
    return Prices(input=price or 0.0, output=output or 0.0, cached_input=given["cached_price"])


def _episode(given: Mapping[str, Any]) -> dict[str, Any]:
    limits = options.parse_object("--limits", given["limits"])
    if given["episode_timeout"] is not None:
        limits |= {"max_seconds": given["episode_timeout"], "clock": "wall"}
    own = {"tokenizer": f"hf:{given['model']}"} if given["agent"] == "hf" else {}
    return {
        **own,
        "toolset": given["toolset"],
        "tool_format": given["tool_format"],
        "max_turns": given["max_turns"],
        "limits": limits,
        "sandbox": options.parse_sandbox(given["sandbox"]),
        "command_timeout_s": given["command_timeout"],
    }


class ShownProgress(Progress):
    """A bar with the rate so far; where the output is no terminal, a line now and then.

    Attributes:
        stopped: Why the run began no more episodes before the end, or "".
    """

    def __init__(self, console: Any) -> None:
        columns = ("{task.percentage:>3.0f}%", "{task.fields[text]}")
        super().__init__(
            BarColumn(30),
            MofNCompleteColumn(),
            *(TextColumn(column) for column in columns),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self.stopped = ""
        self._bar = self.add_task("attempts", total=None, text="")
        self._num_resolved = self._num_graded = self._num_errors = self._num_kept = 0
        self._runner: Runner | None = None
        self._began = self._last_line = time.monotonic()

    def begin(self, runner: Runner, planned: int, rows: Mapping[Key, Row]) -> None:
        """Begins to count; says what a continued run keeps."""
        self._runner = runner
        kept = [row for row in rows.values() if not row.error_class]
        self._num_graded, self._num_resolved = len(kept), sum(row.resolved for row in kept)
        self._num_kept = len(kept)
        self.update(self._bar, total=planned, completed=len(kept))
        if rows:
            self.console.print(
                f"kept {len(kept)} of {planned} attempts; {len(rows) - len(kept)} that ended by an "
                "error are played again"
            )

    def show(self, trajectory: Trajectory) -> None:
        """Counts an attempt that has ended."""
        self._num_graded += not trajectory.error_class
        self._num_resolved += trajectory.resolved
        if trajectory.error_class:
            self._num_errors += 1
            last = trajectory.error.strip().splitlines()[-1:] or [""]
            self.console.print(
                f"✘ {trajectory.task_id} #{trajectory.attempt}: {trajectory.error_class}: "
                f"{last[0]:.160}"
            )
        self.update(self._bar, advance=1, text=self.summary())
        if not self.console.is_terminal and time.monotonic() - self._last_line > _LINE_EVERY_S:
            self._last_line = time.monotonic()
            (bar,) = self.tasks
            self.console.print(f"{bar.completed:.0f}/{bar.total:.0f}  {self.summary()}")
        if self._runner is not None:
            self.stopped = self._runner.stop_reason

    def summary(self) -> str:
        """Returns the rate with its interval, the errors, the cost and the speed in one line."""
        resolved, graded = self._num_resolved, self._num_graded
        parts = [f"resolved {resolved}/{graded}"]
        if graded:
            low, high = wilson_interval(resolved, graded)
            parts[0] += f" = {100 * resolved / graded:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        if self._num_errors:
            parts.append(f"{self._num_errors} errors")
        if self._runner is not None and self._runner.spent.cost:
            parts.append(f"cost {self._runner.spent.cost:.2f}")
        minutes = (time.monotonic() - self._began) / 60
        parts.append(f"{(graded - self._num_kept + self._num_errors) / minutes:.1f}/min")
        return "  ".join(parts)
