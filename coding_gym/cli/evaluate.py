"""``coding-gym eval``: an agent on many tasks, to a number with an interval."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from coding_gym.agents.chat import Sampling
from coding_gym.agents.live_episode import Player
from coding_gym.agents.model_client import Prices
from coding_gym.agents.players import get_player, player_names
from coding_gym.cli import options
from coding_gym.cli.console import INTERRUPTED, LineProgress, terminal
from coding_gym.cli.options import LIMITS, MODEL, RUN, SAMPLING, option
from coding_gym.cli.runs import print_result
from coding_gym.errors import InvalidArgumentError
from coding_gym.evaluation.evaluate import evaluate
from coding_gym.evaluation.report import percent
from coding_gym.rollout.run_folder import Outcome, RunFolder
from coding_gym.rollout.runner import Runner
from coding_gym.task import Task
from coding_gym.tasks import load_tasks
from coding_gym.trajectory import Trajectory

_PLAYER = ("base_url", "max_retries", "history", "script")
_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "reasoning_effort", "thinking")
_EPISODE = ("toolset", "tool_format", "max_turns")
_RUN = ("concurrency", "seed", "max_cost", "max_tokens", "ray")


def _saved(context: typer.Context, folder: Path | None) -> Path | None:
    """Makes the options of the run that is resumed the defaults of this command."""
    if folder is not None:
        context.default_map = RunFolder.open(folder).config.get("command", {})
    return folder


def _price(kind: str) -> Any:
    return option(MODEL, min=0, help=f"Price of 1M {kind} tokens.")


def eval_(
    agent: Annotated[
        str | None,
        option(
            MODEL, "--agent", "-a", help=f"One of {', '.join(player_names())}; by default chat."
        ),
    ] = None,
    model: options.Model = "",
    base_url: options.BaseUrl = None,
    input_price: Annotated[float | None, _price("prompt")] = None,
    output_price: Annotated[float | None, _price("reply")] = None,
    cached_price: Annotated[float | None, _price("cached prompt")] = None,
    max_retries: Annotated[
        int, option(MODEL, min=0, help="Times a failed request is sent again.")
    ] = 8,
    history: Annotated[
        str,
        option(
            MODEL,
            help="For 'hf': 'append' only adds ids to a prompt, 'template' renders the chat again "
            "for each turn.",
        ),
    ] = "append",
    script: options.Script = None,
    toolset: options.Toolset = "nano",
    tool_format: options.ToolFormat = "auto",
    source: options.Source = "bundled",
    task: options.TaskIds = None,
    split: options.Split = None,
    repositories: options.Repositories = None,
    environments: options.Environments = None,
    num_tasks: options.NumTasks = None,
    temperature: options.Temperature = None,
    top_p: options.TopP = None,
    top_k: options.TopK = None,
    min_p: options.MinP = None,
    response_limit: options.ResponseLimit = None,
    reasoning_effort: Annotated[
        str | None, option(SAMPLING, help="How long it thinks, such as low.")
    ] = None,
    thinking: options.Thinking = None,
    extra_body: Annotated[
        str | None, option(SAMPLING, help="Other fields of a request, as JSON.")
    ] = None,
    max_turns: options.MaxTurns = 50,
    limits: options.Limits = None,
    episode_timeout: options.EpisodeTimeout = None,
    command_timeout: options.CommandTimeout = 120.0,
    model_timeout: Annotated[
        float, option(LIMITS, min=1, help="Most seconds of one reply, retries included.")
    ] = 600.0,
    max_cost: Annotated[
        float | None,
        option(LIMITS, min=0, help="Start no more episodes once the run costs so much."),
    ] = None,
    max_tokens: Annotated[
        int | None,
        option(LIMITS, min=0, help="Start no more episodes once the run has used so many tokens."),
    ] = None,
    attempts: Annotated[
        int, option(RUN, "--attempts", "-k", min=1, help="Attempts at each task, for pass@k.")
    ] = 1,
    concurrency: options.Concurrency = 8,
    seed: Annotated[int, option(RUN, help="Every attempt's seed derives from it.")] = 0,
    sandbox: options.Sandbox = "auto",
    ray: Annotated[str | None, option(RUN, help="Address of a Ray cluster, or 'auto'.")] = None,
    resume: Annotated[
        Path | None,
        option(
            RUN,
            is_eager=True,
            callback=_saved,
            help="Continue the run in this folder, with its settings; -n and --attempts may grow.",
        ),
    ] = None,
    out: options.Folder = None,
) -> None:
    """Play an agent on many tasks and report how many it resolves.

    Without --base-url LiteLLM calls a remote provider, which needs its key.

    Example: coding-gym eval --base-url http://localhost:8000/v1 --model NAME --out runs/mine
    """
    arguments = {k: v for k, v in locals().items() if k not in ("out", "resume")}
    arguments["source"] = options.located(source)
    if (resume is None) == (out is None):
        raise InvalidArgumentError("name one folder: --out for a new run, or --resume")
    if not (agent or model):
        raise InvalidArgumentError(
            f"name the model: --model NAME; {base_url}/models lists those of the server"
            if base_url
            else "name the agent: --model with --base-url, or --agent"
        )
    play_run(
        lambda _: _player(arguments),
        resume or out or Path(),
        to_continue=f"to continue: coding-gym eval --resume {resume or out}",
        source=options.task_source(
            source, repositories, environments, split=split, task_ids=task or None, limit=num_tasks
        ),
        command={k: options.as_text(v) for k, v in arguments.items() if v is not None},
        resume=resume is not None,
        episode=_episode(arguments),
        attempts=attempts,
        **{name: arguments[name] for name in _RUN},
    )


def play_run(
    make_player: Callable[[Sequence[Task]], Player],
    path: Path,
    *,
    to_continue: str,
    source: Mapping[str, Any],
    command: Mapping[str, Any],
    show: Callable[[RunFolder], bool] = print_result,
    **arguments: Any,
) -> None:
    """Plays a run with a progress bar, and prints its result.

    ``to_continue`` says how a run that did not end is continued. ``source`` has the arguments of
    `load_tasks`. ``show`` prints the result and returns whether the command succeeds. The others
    are those of `evaluate`.
    """
    loaded = load_tasks(**source)
    console = terminal()
    player = make_player(loaded)
    try:
        with _RunProgress(console) as progress:
            folder = evaluate(
                player,
                path,
                tasks=loaded,
                source=source,
                notes={"command": command},
                on_start=progress.begin,
                on_done=progress.count,
                **arguments,
            )
    except KeyboardInterrupt:
        console.print(f"interrupted; {to_continue}")
        raise typer.Exit(INTERRUPTED) from None
    is_success = show(folder)
    if progress.runner.stop_reason and not progress.finished:
        console.print(f"stopped: {progress.runner.stop_reason}; {to_continue}")
        raise typer.Exit(INTERRUPTED)
    if not is_success:
        raise typer.Exit(1)


def _player(arguments: Mapping[str, Any]) -> Player:
    price, output, cached = (arguments[f"{name}_price"] for name in ("input", "output", "cached"))
    prices = Prices(input=price or 0.0, output=output or 0.0, cached_input=cached)
    sampling = Sampling(
        **{name: arguments[name] for name in _SAMPLING},
        max_tokens=arguments["response_limit"],
        extra=options.parse_object("--extra-body", arguments["extra_body"]),
    )
    return get_player(
        arguments["agent"] or "chat",
        model=arguments["model"],
        sampling=sampling,
        prices=None if price is None and output is None else prices,
        model_timeout_s=arguments["model_timeout"],
        **{name: arguments[name] for name in _PLAYER},
    )


def _episode(arguments: Mapping[str, Any]) -> dict[str, Any]:
    limits = options.parse_object("--limits", arguments["limits"])
    if arguments["episode_timeout"] is not None:
        limits |= {"max_seconds": arguments["episode_timeout"], "clock": "wall"}
    own = {"tokenizer": f"hf:{arguments['model']}"} if arguments["agent"] == "hf" else {}
    return {
        **own,
        **{name: arguments[name] for name in _EPISODE},
        "limits": limits,
        "sandbox": options.parse_sandbox(arguments["sandbox"]),
        "command_timeout_s": arguments["command_timeout"],
    }


class _RunProgress(LineProgress):
    """The progress of a run, with the rate so far."""

    runner: Runner

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._counts = Counter[str]()

    def begin(self, runner: Runner, planned: int, outcomes: Sequence[Outcome]) -> None:
        """Begins to count, with the verdicts that a resumed run keeps."""
        self.runner = runner
        kept = [one for one in outcomes if not one.error_class]
        self._counts.update(graded=len(kept), resolved=sum(one.resolved for one in kept))
        self.update(self.bar, total=planned, completed=len(kept))
        if outcomes:
            self.console.print(f"kept {len(kept)} of {planned} attempts")

    def count(self, trajectory: Trajectory) -> None:
        """Counts an attempt that has ended."""
        if trajectory.error_class:
            self._counts["errors"] += 1
            last = trajectory.error.strip().rpartition("\n")[2]
            self.console.print(
                f"✘ {trajectory.task_id} #{trajectory.attempt}: {trajectory.error_class}: {last}"
            )
        else:
            self._counts.update(graded=1, resolved=trajectory.resolved)
        self.show(self._summary(), self.tasks[0].completed + 1)

    def _summary(self) -> str:
        """Returns the rate so far, the errors, the cost and the speed in one line."""
        resolved, graded = self._counts["resolved"], self._counts["graded"]
        rate = f" = {percent(resolved / graded)}" if graded else ""
        parts = [f"resolved {resolved}/{graded}{rate}"]
        if self._counts["errors"]:
            parts.append(f"{self._counts['errors']} errors")
        if self.runner.spent.cost:
            parts.append(f"cost {self.runner.spent.cost:.2f}")
        if speed := self.tasks[0].speed:
            parts.append(f"{60 * speed:.1f} episodes/min")
        return "  ".join(parts)
