"""``coding-gym fix``: a model repairs a copy of the user's repository in a sandbox."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from coding_gym.agents.built_in import get_player
from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.episode import EpisodeConfig, transcript
from coding_gym.errors import InfrastructureError, InvalidArgumentError
from coding_gym.rollout import Runner
from coding_gym.task import GitTree, Task
from coding_gym.trajectory import Trajectory

_SAMPLING = {"temperature": 0.7, "top_p": 0.95, "max_tokens": 4096}
_LIMITS = {"max_tool_calls": 50, "max_tokens": 32768, "max_seconds": 600}


def fix(
    problem: Annotated[str, typer.Argument(help="A description of the bug.")],
    repo: Annotated[
        Path, typer.Option(exists=True, file_okay=False, help="A folder in the git repository.")
    ] = Path(),
    model: options.Model = "",
    base_url: options.BaseUrl = None,
    sampling: options.Sampling = None,
    tool_format: options.ToolFormat = "auto",
    limits: options.Limits = None,
    sandbox: options.Sandbox = "auto",
) -> None:
    """Let a model repair a copy of your repository in a sandbox, and print the diff.

    The copy contains the last commit; the sandbox has no network. The model's server receives
    contents of files. Your repository does not change; `git apply` applies the diff.

    Example: coding-gym fix "add() subtracts" --base-url http://localhost:8000/v1 --model NAME
    """
    folder, commit = _last_commit(repo)
    settings = _SAMPLING | options.parse_object("--sampling", sampling)
    player = get_player("chat", model=model, base_url=base_url, sampling=settings)
    task = Task(
        task_id=f"{folder.name}-{commit[:8]}",
        tree=GitTree(str(folder)),
        problem_statement=problem,
        base_commit=commit,
    )
    config = EpisodeConfig.from_config(
        tasks=[task],
        tool_format=tool_format,
        max_turns=None,
        sandbox=options.parse_sandbox(sandbox),
        grading="none",
        **options.parse_limits(limits, **_LIMITS),
    )
    records: list[Trajectory] = []
    runner = Runner(
        config=config,
        player=player,
        on_turn=lambda turn: terminal(stderr=True).print(transcript.render(turn.messages)),
    )
    asyncio.run(runner.run([(task, 0)], records.append))
    _finish(records[0])


def _last_commit(folder: Path) -> tuple[Path, str]:
    """Returns the root of the git repository that contains a folder, and its last commit."""
    import git  # takes long to import

    try:
        repository = git.Repo(folder, search_parent_directories=True)
        return Path(repository.working_dir), repository.head.commit.hexsha
    except (git.InvalidGitRepositoryError, ValueError):
        raise InvalidArgumentError(
            f"{folder.absolute()} must be in a git repository with a commit; in the project's "
            "folder, run: git init && git add . && git commit -m start"
        ) from None


def _finish(record: Trajectory) -> None:
    if record.error:
        raise InfrastructureError(f"{record.error_class or 'sandbox'}: {record.error}")
    terminal(stderr=True).print(f"ended: {record.stop_reason} after {len(record.turns)} turns")
    if not record.patch:
        raise typer.Exit(1)
    if sys.stdout.isatty():  # control characters could hide lines of the patch
        terminal().print(record.patch, end="")
    else:
        typer.echo(record.patch.encode("utf-8", "surrogateescape"), nl=False)
