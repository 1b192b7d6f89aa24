"""``coding-gym fix``: a model repairs a repository of one's own, in a sealed copy of it."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import platformdirs
import typer
from rich.console import Console

from coding_gym.agents.chat import Sampling
from coding_gym.agents.players import get_player
from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.cli.options import LIMITS, OUTPUT, RUN, option
from coding_gym.episode import EpisodeFactory, Outcome, transcript
from coding_gym.errors import InvalidArgumentError, PatchError
from coding_gym.rollout import Runner, append_trajectory
from coding_gym.task import GitTree, Task
from coding_gym.trajectory import Trajectory

_RESERVE_TOKENS = 600  # nano-agent's loop ends below
_MAX_LINES = 12  # of an action and its results, without --verbose


def fix(
    problem: Annotated[str, typer.Argument(help="What is wrong, in your own words.")],
    repo: Annotated[
        Path, option(RUN, exists=True, file_okay=False, help="A folder of the git repository.")
    ] = Path(),
    model: options.Model = "openrouter/qwen/qwen3-coder",
    base_url: options.BaseUrl = None,
    token_limit: Annotated[int, option(LIMITS, min=1, help="Most tokens of the chat.")] = 32768,
    tool_limit: Annotated[int, option(LIMITS, min=1, help="Most tool calls.")] = 50,
    episode_timeout: options.EpisodeTimeout = 120,
    response_limit: options.ResponseLimit = 4096,
    thinking: options.Thinking = False,
    temperature: options.Temperature = 0.7,
    top_p: options.TopP = 0.95,
    min_p: options.MinP = None,
    top_k: options.TopK = None,
    tool_format: options.ToolFormat = "auto",
    sandbox: options.Sandbox = "auto",
    apply: Annotated[
        bool, option(OUTPUT, "--apply", help="Apply the change; the tree must be clean.")
    ] = False,
    verbose: Annotated[
        bool, option(OUTPUT, "--verbose", "-v", help="Print whole results, not their first lines.")
    ] = False,
    log: Annotated[bool, option(OUTPUT, "--log/--no-log", help="Record the chat.")] = True,
) -> None:
    """Let a model repair your repository in a sealed copy, and print the change as a diff.

    The copy has what the last commit has, and no network.
    Nothing of yours is changed without --apply.

    The model reads your files. The default one is remote: OpenRouter, by OPENROUTER_API_KEY.

    Example: coding-gym fix "add() subtracts" --base-url http://localhost:8000/v1 --model NAME
    """
    if not problem.strip():
        raise InvalidArgumentError("say what is wrong: the problem must not be empty")
    repository = _repository(repo)
    changes = repository.git.status("--porcelain")
    console = terminal(stderr=True)
    if changes and apply:
        raise InvalidArgumentError(
            f"{repository.working_dir} has changes that are not committed; commit or stash them, "
            "or leave --apply out"
        )
    if changes:
        console.print("note: changes that are not committed are not part of the copy")
    sampling = Sampling(
        temperature=temperature,
        top_p=top_p,
        min_p=min_p,
        top_k=top_k,
        max_tokens=response_limit,
        thinking=thinking or None,
    )
    player = get_player("chat", model=model, base_url=base_url, sampling=sampling)
    limits = {
        "max_turns": None,
        "max_tool_calls": tool_limit,
        "max_tokens": token_limit,
        "reserve_tokens": _RESERVE_TOKENS if token_limit > _RESERVE_TOKENS else 0,
        "response_limit": response_limit,
        "max_seconds": episode_timeout,
        "clock": "wall",
        "warn_tokens": True,
        "warn_tool_calls": True,
    }
    factory = EpisodeFactory.from_config(
        tasks=[_task(repository, problem)],
        tool_format=tool_format,
        max_turns=None,
        limits=limits,
        sandbox=options.parse_sandbox(sandbox),
        grading="none",
    )
    runner = Runner(factory=factory, player=player, on_outcome=_printer(console, verbose=verbose))
    records: list[Trajectory] = []
    asyncio.run(runner.run([(factory.tasks[0], 0)], records.append))
    (record,) = records
    if log:
        file = platformdirs.user_state_path("coding-gym") / "fix.jsonl"
        append_trajectory(file, record)
        console.print(f"record: {file}")
    _finish(repository, record, console, apply=apply)


def _finish(repository: Any, record: Trajectory, console: Console, *, apply: bool) -> None:
    if record.error:
        raise InvalidArgumentError(f"{record.error_class or 'sandbox'}: {record.error}")
    console.print(f"ended: {record.stop_reason} after {len(record.turns)} turns")
    if not record.patch:
        console.print("nothing was changed")
        raise typer.Exit(1)
    if sys.stdout.isatty():  # where its characters could hide lines
        terminal().print(record.patch, end="")
    else:
        typer.echo(record.patch.encode("utf-8", "surrogateescape"), nl=False)
    if apply:
        _apply(repository, record.patch)
        console.print("applied; see: git diff")
    else:
        console.print("not applied; call it again with --apply, or pipe the diff to: git apply")


def _apply(repository: Any, patch: str) -> None:
    from git.exc import GitCommandError

    process = repository.git.apply("--whitespace=nowarn", "-", as_process=True, istream=-1)
    try:
        process.proc.communicate(patch.encode("utf-8", "surrogateescape"))
        process.wait()
    except GitCommandError as problem:
        raise PatchError(f"the change does not apply to the tree: {problem.stderr}") from None


def _repository(path: Path) -> Any:
    import git

    try:
        repository = git.Repo(path, search_parent_directories=True)
        repository.head.commit  # noqa: B018 - raises where there is none
    except (git.InvalidGitRepositoryError, git.NoSuchPathError, ValueError):
        raise InvalidArgumentError(
            f"{path.absolute()} is in no git repository with a commit; make one with: "
            "git init && git add -A && git commit"
        ) from None
    return repository


def _task(repository: Any, problem: str) -> Task:
    folder = str(repository.working_dir)
    name = Path(folder).name
    commit = repository.head.commit.hexsha
    return Task(
        task_id=f"{name}-{commit[:8]}",
        tree=GitTree(folder),
        problem_statement=problem,
        base_commit=commit,
        repo=name,
    )


def _printer(console: Console, *, verbose: bool) -> Callable[[Outcome], None]:
    def show(outcome: Outcome) -> None:
        lines = transcript.render(outcome.messages).splitlines()
        if not verbose and len(lines) > _MAX_LINES:
            lines[_MAX_LINES:] = [f"… {len(lines) - _MAX_LINES} more lines"]
        console.print("\n".join(lines))

    return show
