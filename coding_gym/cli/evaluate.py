"""``coding-gym eval``: an agent on many tasks, to a number with an interval."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from coding_gym.agents.players import player_names
from coding_gym.cli import options
from coding_gym.cli.console import INTERRUPTED, LineProgress, terminal
from coding_gym.cli.options import LIMITS, MODEL, OUTPUT, RUN, option
from coding_gym.cli.runs import print_result
from coding_gym.errors import InvalidArgumentError
from coding_gym.evaluation.evaluate import evaluate
from coding_gym.evaluation.report import percent
from coding_gym.rollout.run_folder import Outcome, RunFolder
from coding_gym.rollout.runner import Runner
from coding_gym.trajectory import Trajectory

_CONCURRENCY = 8
_WITH_RESUME = {"out", "resume", "attempts", "concurrency", "max_cost", "max_tokens", "ray"}


def eval_(
    context: typer.Context,
    out: Annotated[Path, option(OUTPUT, "--out", "-o", help="The folder of the run.")],
    resume: Annotated[
        bool,
        option(
            OUTPUT,
            "--resume",
            help="Continue the run in --out with the settings of its config.json; needs nothing "
            "else. --attempts may grow; -c, --max-cost, --max-tokens and --ray may change.",
        ),
    ] = False,
    agent: Annotated[
        str | None,
        option(
            MODEL, "--agent", "-a", help=f"One of {', '.join(player_names())}; by default chat."
        ),
    ] = None,
    model: options.Model = "",
    base_url: options.BaseUrl = None,
    sampling: options.Sampling = None,
    prices: Annotated[
        str | None,
        option(
            MODEL,
            help="Prices of 1M tokens each, such as input=0.4,output=1.6,cached_input=0.1; by "
            "default those of the server, or of LiteLLM's table.",
        ),
    ] = None,
    max_retries: Annotated[
        int | None, option(MODEL, min=0, help="Times a failed request is sent again; 8 by default.")
    ] = None,
    model_timeout: Annotated[
        float | None,
        option(MODEL, min=1, help="Most seconds of one reply, retries included; 600 by default."),
    ] = None,
    history: Annotated[
        str | None,
        option(
            MODEL,
            help="For 'hf': 'append' (the default) only adds ids to a prompt, 'template' renders "
            "the chat again for each turn.",
        ),
    ] = None,
    script: options.Script = None,
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
        float | None,
        option(LIMITS, min=0, help="Start no more episodes once the run costs so much."),
    ] = None,
    max_tokens: Annotated[
        int | None,
        option(LIMITS, min=0, help="Start no more episodes once the run has used so many tokens."),
    ] = None,
    attempts: Annotated[
        int | None,
        option(RUN, "--attempts", "-k", min=1, help="Attempts at each task, for pass@k; 1 first."),
    ] = None,
    concurrency: Annotated[
        int | None,
        option(RUN, "--concurrency", "-c", min=1, help="Episodes at the same time; 8 by default."),
    ] = None,
    seed: Annotated[int, option(RUN, help="Every attempt's seed derives from it.")] = 0,
    sandbox: options.Sandbox = "auto",
    ray: Annotated[str | None, option(RUN, help="Address of a Ray cluster, or 'auto'.")] = None,
) -> None:
    """Play an agent on many tasks and report how many it resolves.

    Without --base-url LiteLLM calls a remote provider, which needs its key.

    Example: coding-gym eval --base-url http://localhost:8000/v1 --model NAME --out runs/mine

    Example: coding-gym eval --out runs/mine --resume
    """
    bounds: dict[str, Any] = {
        "attempts": attempts,
        "concurrency": concurrency,
        "max_cost": max_cost,
    }
    bounds |= {"max_tokens": max_tokens, "ray": ray}
    to_continue = f"to continue: coding-gym eval --out {out} --resume"
    if resume:
        _refuse_settings(context)
        play_run(out, to_continue=to_continue, resume=True, **bounds)
        return
    if not (agent or model):
        raise InvalidArgumentError(
            f"name the model: --model NAME; {base_url}/models lists those of the server"
            if base_url
            else "name the agent: --model with --base-url, or --agent"
        )
    player = {
        "agent": agent or "chat",
        "model": model or None,
        "base_url": base_url,
        "sampling": options.parse_object("--sampling", sampling) or None,
        "prices": options.parse_object("--prices", prices) or None,
        "max_retries": max_retries,
        "model_timeout_s": model_timeout,
        "history": history,
        "script": script and options.as_text(Path(script)),
    }
    episode = _episode(options.parse_object("--limits", limits))
    episode |= {"toolset": toolset, "tool_format": tool_format, "max_turns": max_turns}
    episode |= {"sandbox": options.parse_sandbox(sandbox)}
    if agent == "hf":
        episode["tokenizer"] = f"hf:{model}"
    play_run(
        out,
        to_continue=to_continue,
        player={name: value for name, value in player.items() if value is not None},
        tasks=options.task_source(
            source, repositories, environments, split=split, task_ids=task or None, limit=num_tasks
        ),
        episode=episode,
        seed=seed,
        **bounds | {"concurrency": concurrency or _CONCURRENCY},
    )


def _refuse_settings(context: typer.Context) -> None:
    """Refuses options that a resumed run has in its ``config.json``."""
    refused = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name not in _WITH_RESUME
        and parameter.name
        and getattr(context.get_parameter_source(parameter.name), "name", "") == "COMMANDLINE"
    ]
    if refused:
        raise InvalidArgumentError(
            f"--resume takes the settings of config.json; leave out {', '.join(refused)}, or name "
            "a new folder"
        )


def _episode(limits: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of an episode that ``--limits`` has."""
    timeout = {name: limits.pop(name) for name in ("command_timeout_s",) if name in limits}
    return {"limits": limits, **timeout}


def play_run(
    out: Path,
    *,
    to_continue: str,
    show: Callable[[RunFolder], bool] = print_result,
    **arguments: Any,
) -> None:
    """Plays a run with a progress bar, and prints its result.

    ``to_continue`` says how a run that did not end is continued. ``show`` prints the result and
    returns whether the command succeeds. The others are those of `evaluate`.
    """
    console = terminal()
    try:
        with _RunProgress(console) as progress:
            folder = evaluate(out, on_start=progress.begin, on_done=progress.count, **arguments)
    except KeyboardInterrupt:
        console.print(f"interrupted; {to_continue}")
        raise typer.Exit(INTERRUPTED) from None
    is_success = show(folder)
    if progress.runner.stop_reason and not progress.finished:
        console.print(f"stopped: {progress.runner.stop_reason}; {to_continue}")
        raise typer.Exit(INTERRUPTED)
    if not is_success:
        raise typer.Exit(1)


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
        if self.runner.usage.cost:
            parts.append(f"cost {self.runner.usage.cost:.2f}")
        if speed := self.tasks[0].speed:
            parts.append(f"{60 * speed:.1f} episodes/min")
        return "  ".join(parts)
