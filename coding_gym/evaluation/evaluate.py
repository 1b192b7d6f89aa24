"""Runs an agent on tasks, and records every attempt in a run folder."""

import hashlib
import json
import logging
import platform
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from pathlib import Path
from typing import Any

from coding_gym.agents.live_episode import Player
from coding_gym.agents.players import get_player
from coding_gym.arguments import at_least_one, check_arguments, is_integer, is_number
from coding_gym.episode import EpisodeConfig
from coding_gym.episode.config import task_digest
from coding_gym.errors import InvalidArgumentError, last_line
from coding_gym.rollout.image_windows import ImageWindows
from coding_gym.rollout.ray_runner import RayRunner
from coding_gym.rollout.run_folder import CONFIG, ROWS, Outcome, RunFolder
from coding_gym.rollout.runner import Runner, run_in_thread
from coding_gym.task import Task
from coding_gym.tasks import load_tasks
from coding_gym.tasks.bundled_tasks import BUNDLED
from coding_gym.trajectory import Trajectory

_log = logging.getLogger(__name__)

_PACKAGES = ("coding-gym", "openai", "transformers", "torch", "gymnasium", "tiktoken")


def _log_error(trajectory: Trajectory) -> None:
    if trajectory.error_class:
        problem = last_line(trajectory.error)
        values = trajectory.task_id, trajectory.attempt, trajectory.error_class, problem
        _log.warning("%s, attempt %d ended with an error (%s): %s", *values)


def evaluate(
    out: str | Path,
    player: Player | str | Mapping[str, Any] | None = None,
    *,
    tasks: str | Mapping[str, Any] | Sequence[Any] | None = None,
    episode: Mapping[str, Any] | None = None,
    attempts: int | None = None,
    seed: int | None = None,
    concurrency: int | None = None,
    max_cost: float | None = None,
    max_tokens: int | None = None,
    max_lost: int | None = None,
    ray: str | None = None,
    images_window: int | None = None,
    resume: bool = False,
    on_start: Callable[[Runner, int, Sequence[Outcome]], None] = lambda *_: None,
    on_done: Callable[[Trajectory], None] = _log_error,
) -> RunFolder:
    """Plays each task one or more times and returns the folder with a record of every attempt.

    After Ctrl-C no more episodes start, and the running ones continue to their end; a second Ctrl-C
    discards them. Python ignores Ctrl-C in a script that a shell started with ``&``.

    ``evaluate(out, resume=True)`` continues a run that Ctrl-C, a budget or SIGKILL ended, with the
    settings of its ``config.json``. Attempts with a verdict are kept; attempts that ended with an
    error are repeated. ``attempts`` may be larger than before, and ``concurrency``, ``max_cost``,
    ``max_tokens``, ``max_lost``, ``ray`` and ``images_window`` may change. A `Player` object and a
    list of tasks must be passed again.

    Args:
        out: The run folder; see `coding_gym.rollout.RunFolder`.
        player: The agent: a `Player`, the name of an agent without a model, or the arguments of
            `coding_gym.agents.players.get_player` as JSON values.
        tasks: The source of the tasks, the arguments of `coding_gym.load_tasks` as JSON values, or
            a list of tasks or rows; by default ``"bundled"``.
        episode: Other arguments of `EpisodeConfig.from_config`: toolset, limits, and so on.
            ``challenge`` is ``"passed"`` by default, so that grades name each test that fails.
        attempts: Number of attempts per task; by default 1.
        seed: Seed of the run, by default 0; each attempt derives its seed from this seed, the task
            and the number of the attempt.
        concurrency: Number of episodes at the same time; by default 8.
        max_cost: Limit on the cost of all requests; see `coding_gym.rollout.Runner`.
        max_tokens: Limit on the tokens of all prompts and replies.
        max_lost: Limit on consecutive attempts that end with an error, by default 25; then the
            cause is probably the server or the machine.
        ray: The address of a Ray cluster whose nodes play the attempts, such as ``"auto"``; see
            `coding_gym.rollout.ray_runner.RayRunner`. By default this machine plays all attempts.
        images_window: Number of images of tasks to pull at a time during the run; images whose
            attempts have ended are removed. See
            `coding_gym.rollout.image_windows.ImageWindows`. By default all images must be present.
        resume: Whether to continue the run in ``out``.
        on_start: Called before the first episode with the runner, the number of attempts of the
            whole run, and the outcomes in the folder.
        on_done: Called with each record after it is written; by default errors are logged.

    Raises:
        InvalidArgumentError: An argument is invalid, the folder contains another run, or an
            argument would change a setting of the resumed run.
    """
    numbers = _bounds(attempts=attempts, images_window=images_window)
    attempts, images_window = numbers.get("attempts"), numbers.get("images_window")
    if seed is not None and not is_integer(seed):
        raise InvalidArgumentError(f"seed must be an integer, got {seed!r}")
    bounds = _bounds(
        concurrency=concurrency, max_cost=max_cost, max_tokens=max_tokens, max_lost=max_lost
    )
    if images_window is not None and ray:
        raise InvalidArgumentError("images_window and ray cannot be combined; remove one of them")
    tasks = {"source": tasks} if isinstance(tasks, str) else tasks
    if isinstance(tasks, Mapping):
        tasks = {"source": BUNDLED, **tasks}
    if resume and (episode is not None or seed is not None):
        raise InvalidArgumentError(
            "a resumed run takes episode and seed from its config.json; remove these arguments"
        )
    with ExitStack() as stack:
        if resume:
            stack.enter_context(RunFolder.open(out).writer())
            folder = RunFolder.open(out)  # the last writer may have changed its settings
            chosen, factory = _reopen(folder, player, tasks, attempts, bounds)
        else:
            source = {"source": BUNDLED} if tasks is None else tasks
            folder, chosen, factory = _create(out, player, source, episode, attempts, seed, bounds)
            stack.enter_context(folder.writer())
        config = folder.config
        runner = (partial(RayRunner, address=ray) if ray else Runner)(
            config=factory,
            player=chosen,
            seed=config["seed"],
            run_id=config["run_id"],
            **config["bounds"],
        )
        folder.save_config()  # a resumed run can have other attempts, bounds and versions
        outcomes, done = list(folder.outcomes()), folder.keys()
        for outcome in outcomes:  # including errors
            runner.usage.cost += outcome.cost or 0.0
            runner.usage.tokens += outcome.tokens
        attempts = config["attempts"]
        planned = [(task, attempt) for attempt in range(attempts) for task in factory.tasks]
        todo = [(task, attempt) for task, attempt in planned if (task.task_id, attempt) not in done]
        on_start(runner, len(planned), outcomes)
        windows = None
        if images_window is not None:
            name, is_over = factory.sandbox.name, lambda: bool(runner.stop_reason)
            windows = ImageWindows(todo, images_window, name, is_over)
            stack.callback(windows.close)

        def keep(trajectory: Trajectory) -> None:
            folder.add(trajectory)
            on_done(trajectory)
            if windows:
                windows.finish(trajectory.task_id)

        run_in_thread(runner.run(windows or todo, keep), on_interrupt=runner.interrupt)
    return folder


def _bounds(**bounds: float | None) -> dict[str, Any]:
    """Returns the bounds that are not None.

    Raises:
        InvalidArgumentError: A bound is invalid.
    """
    known = {name: bound for name, bound in bounds.items() if bound is not None}
    for name, bound in known.items():
        if name not in ("max_cost", "max_tokens"):
            known[name] = at_least_one(name, bound)
        elif not is_number(bound) or not bound >= 0:
            raise InvalidArgumentError(f"{name} must be a number of at least 0, got {bound!r}")
    return known


def _create(
    out: str | Path,
    player: Player | str | Mapping[str, Any] | None,
    source: Mapping[str, Any] | Sequence[Any],
    episode: Mapping[str, Any] | None,
    attempts: int | None,
    seed: int | None,
    bounds: Mapping[str, Any],
) -> tuple[RunFolder, Player, EpisodeConfig]:
    if player is None:
        raise InvalidArgumentError("a new run needs a player, such as player='gold'")
    described, chosen = _player(player)
    episode = {"challenge": "passed", **(episode or {})}  # grades name failing tests
    factory = _factory(source, episode)
    chosen.check(factory.limits)
    config = {
        "agent": _agent(chosen),
        "player": described,
        "tasks": {
            **(source if isinstance(source, Mapping) else {"source": ROWS}),
            "task_ids": [task.task_id for task in factory.tasks],
            "digest": _tasks_digest(factory.tasks),
        },
        "attempts": attempts or 1,
        "seed": int(seed or 0),
        "episode": dict(episode),
        "bounds": {"concurrency": 8, "max_lost": 25, **bounds},
        "versions": _versions(),
    }
    return RunFolder.create(out, config), chosen, factory


def _reopen(
    folder: RunFolder,
    player: Player | str | Mapping[str, Any] | None,
    tasks: Mapping[str, Any] | Sequence[Any] | None,
    attempts: int | None,
    bounds: Mapping[str, Any],
) -> tuple[Player, EpisodeConfig]:
    """Prepares to resume a run, with the new attempts, bounds and versions in its settings."""
    config, path = folder.config, folder.path / CONFIG
    if "player" not in config:
        raise InvalidArgumentError(
            f"the run in {folder.path} is imported and has no player; start a new run elsewhere"
        )
    player = player or config["player"]
    if player is None:
        raise InvalidArgumentError(
            f"{path} cannot store a Player object; pass the same player, or repeat coding-gym grade"
        )
    _, chosen = _player(player)
    source = {name: value for name, value in config["tasks"].items() if name != "digest"}
    if tasks is None and source["source"] == ROWS:
        raise InvalidArgumentError(f"{path} does not contain the tasks; pass the same tasks again")
    factory = _factory(source if tasks is None else tasks, config["episode"])
    _check_unchanged(folder, chosen, factory)
    if attempts is not None and attempts < config["attempts"]:
        raise InvalidArgumentError(
            f"attempts must be at least {config['attempts']}, as in {path}, got {attempts}"
        )
    config["attempts"] = attempts or config["attempts"]
    config["bounds"] = {**config["bounds"], **bounds}
    known, current = config["versions"], _versions()
    for name in {**known, **current}:
        before, now = known.get(name, "none"), current.get(name, "none")
        known[name] = before if before.split(", then ")[-1] == now else f"{before}, then {now}"
    return chosen, factory


def _player(player: Player | str | Mapping[str, Any]) -> tuple[dict[str, Any] | None, Player]:
    """Returns the arguments of `get_player` (None for a `Player` object), and the agent."""
    described = {"agent": player} if isinstance(player, str) else player
    if isinstance(described, Mapping):
        check_arguments("player", described, signature(get_player).parameters)
        return dict(described), get_player(**{"agent": "", **described})
    return None, described


def _check_unchanged(folder: RunFolder, player: Player, factory: EpisodeConfig) -> None:
    """Raises an error if the agent or the tasks changed after the start of the run."""
    # The address of the same model may change.
    old, new = ({**agent, "base_url": None} for agent in (folder.config["agent"], _agent(player)))
    if changed := [name for name in old | new if old.get(name) != new.get(name)]:
        raise InvalidArgumentError(
            f"the agent's {', '.join(changed)} changed after the start of the run in "
            f"{folder.path}; use a new folder"
        )
    if _tasks_digest(factory.tasks) != folder.config["tasks"]["digest"]:
        raise InvalidArgumentError(
            f"the tasks changed after the start of the run in {folder.path}; use a new folder"
        )


def _factory(
    source: Mapping[str, Any] | Sequence[Any], episode: Mapping[str, Any]
) -> EpisodeConfig:
    tasks: Sequence[Any]
    known = signature(EpisodeConfig.from_config).parameters.keys() - {"tasks", "unknown"}
    check_arguments("episode", episode, sorted(known))
    if isinstance(source, Mapping):
        known = signature(load_tasks).parameters.keys() - {"needs_tests"}
        check_arguments("tasks", source, sorted(known))
        tasks = load_tasks(**source, needs_tests=episode.get("grading") != "none")
        name = str(source["source"])
    else:
        tasks, name = source, ROWS
    return replace(EpisodeConfig.from_config(tasks=tasks, **episode), source=name)


def _agent(player: Player) -> dict[str, Any]:
    """Returns the description of an agent for the settings of a run, as JSON values."""
    described = {"name": player.name, "model": player.model, **player.describe()}
    return dict(json.loads(json.dumps(described)))


def _tasks_digest(tasks: Iterable[Task]) -> str:
    digests = json.dumps(sorted(map(task_digest, tasks)))
    return hashlib.sha256(digests.encode()).hexdigest()[:16]


def _versions() -> dict[str, str]:
    """Returns the versions of Python, the system and the packages that a run depends on."""
    system = f"{sys.platform} {platform.release()}"
    versions = {"python": platform.python_version(), "system": system}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions
