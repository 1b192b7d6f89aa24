"""One call from an agent to a folder with a record of every attempt, and a report."""

import asyncio
import hashlib
import json
import logging
import os
import platform
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from coding_gym.agents.live_episode import Player
from coding_gym.agents.players import get_player
from coding_gym.arguments import at_least_one
from coding_gym.episode import EpisodeFactory
from coding_gym.errors import InvalidArgumentError
from coding_gym.rollout.ray_runner import RayRunner
from coding_gym.rollout.run_folder import Key, Row, RunFolder
from coding_gym.rollout.runner import Runner
from coding_gym.task import Task
from coding_gym.trajectory import Trajectory

_log = logging.getLogger(__name__)

_PACKAGES = ("coding-gym", "openai", "litellm", "transformers", "torch", "gymnasium", "tiktoken")


def evaluate(
    player: Player | str,
    out: str | Path,
    *,
    tasks: str | Sequence[Any] = "bundled",
    episode: Mapping[str, Any] | None = None,
    num_tasks: int | None = None,
    attempts: int = 1,
    concurrency: int = 4,
    seed: int = 0,
    max_cost: float | None = None,
    max_tokens: int | None = None,
    resume: bool = False,
    ray: str | None = None,
    source: Mapping[str, Any] | None = None,
    notes: Mapping[str, Any] | None = None,
    on_start: Callable[[Runner, int, Mapping[Key, Row]], None] = lambda *_: None,
    on_done: Callable[[Trajectory], None] = lambda _: None,
) -> RunFolder:
    """Plays every task some times, and keeps a record of every attempt in a folder.

    A run that was cut off, by Ctrl-C, a budget or SIGKILL, continues with ``resume=True``: attempts
    with a verdict are kept, those that ended by an error are played again, and more tasks or
    attempts may be asked for. Ctrl-C lets the running episodes end and begins no more; a second
    Ctrl-C discards them.

    Args:
        player: The agent, or the name of one that needs no model; see
            `coding_gym.agents.players.get_player`.
        out: The folder; see `coding_gym.rollout.RunFolder`.
        tasks: The source of the tasks, or a list of tasks or rows.
        episode: Other arguments of `EpisodeFactory.from_config`: toolset, limits, and so on.
        num_tasks: Only the first so many tasks; all of them when left out.
        attempts: Attempts at each task.
        concurrency: Episodes at one time.
        seed: Seed of the run; the seed of each attempt follows from it, the task and the attempt.
        max_cost: Bound on the cost of all requests, in the currency of the prices. Once it is
            reached no more episodes begin; those that run are played to their end.
        max_tokens: The same for the tokens of all prompts and replies.
        resume: Whether ``out`` holds a run that is to be continued.
        ray: A cluster whose nodes play the attempts, as `ray.init` takes it, such as ``"auto"``;
            see `coding_gym.rollout.ray_runner.RayRunner`. Without it this machine plays all.
        source: Arguments of `load_tasks` by which the tasks can be loaded again, for the record.
        notes: Other entries of ``config.json``, such as the command line.
        on_start: Is called before the first episode with the runner, the number of attempts of the
            whole run, and the rows that the folder holds already.
        on_done: Is called with every record, after it was written.

    Returns:
        The folder.

    Raises:
        InvalidArgumentError: An argument cannot be used, the folder holds another run, or the
            settings differ from those of the run that is to be continued.
    """
    player = get_player(player) if isinstance(player, str) else player
    factory = EpisodeFactory.from_config(tasks=tasks, **dict(episode or {}))
    most = None if num_tasks is None else at_least_one("num_tasks", num_tasks)
    at_least_one("attempts", attempts)
    at_least_one("concurrency", concurrency)  # before there is a folder
    # With more episodes than cores a grade that waits ahead of time makes the run no faster.
    factory = replace(factory, starts_ahead=concurrency <= (os.cpu_count() or 1))
    source = source or {"source": tasks if isinstance(tasks, str) else "rows"}
    config = _config(player, episode or {}, source, factory.tasks[:most], attempts, seed)
    config = {**(notes or {}), **config}
    folder = (
        _continued(out, config, factory.tasks[:most]) if resume else RunFolder.create(out, config)
    )
    with folder.writer() as writer:
        rows = folder.rows()
        wanted = [(task, attempt) for attempt in range(attempts) for task in factory.tasks[:most]]
        done = {key for key, row in rows.items() if not row.error_class}
        todo = [one for one in wanted if (one[0].task_id, one[1]) not in done]
        make_runner = partial(RayRunner, address=ray) if ray else Runner
        runner = make_runner(
            factory=factory,
            player=player,
            concurrency=concurrency,
            seed=seed,
            run_id=folder.config["run_id"],
            max_cost=max_cost,
            max_tokens=max_tokens,
        )
        for row in folder.all_rows():  # errors cost as much
            runner.spent.cost += row.cost or 0.0
            runner.spent.tokens += row.tokens
        on_start(runner, len(wanted), rows)

        def keep(trajectory: Trajectory) -> None:
            writer.add(trajectory)
            on_done(trajectory)

        # On a thread of its own where an event loop runs already, as in a notebook.
        with ThreadPoolExecutor(1) as thread:
            play = partial(asyncio.run, _interruptible(runner, todo, keep))
            if not _has_loop():
                play()
                return folder
            future = thread.submit(play)
            try:
                future.result()
            except KeyboardInterrupt:  # that thread receives no signals
                runner.stopping = True
                future.result()
    return folder


async def _interruptible(
    runner: Runner, todo: Sequence[tuple[Task, int]], keep: Callable[[Trajectory], None]
) -> None:
    """Runs the attempts; the first Ctrl-C lets those that run end, a second one discards them."""
    task = asyncio.current_task()

    def interrupt() -> None:
        if runner.stopping and task is not None:
            task.cancel()
            return
        _log.warning(
            "interrupted: the running episodes are played to their end; interrupt again to "
            "discard them"
        )
        runner.stopping = True

    with suppress(ValueError, RuntimeError):  # only the main thread receives signals
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
    try:
        await runner.run(todo, keep)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _config(
    player: Player,
    episode: Mapping[str, Any],
    source: Mapping[str, Any],
    tasks: Sequence[Task],
    attempts: int,
    seed: int,
) -> dict[str, Any]:
    created = datetime.now(UTC)
    config = {
        "run_id": f"{created:%Y%m%d-%H%M%S}-{player.name}",
        "created_at": created.isoformat(timespec="seconds"),
        "agent": {"name": player.name, "model": player.model, **player.describe()},
        "tasks": {
            **source,
            "task_ids": [task.task_id for task in tasks],
            "digest": _digest(tasks),
        },
        "attempts": attempts,
        "seed": seed,
        "episode": dict(episode),
        "versions": versions(),
    }
    return {**config, "settings_hash": settings_hash(config)}


def _digest(tasks: Sequence[Task]) -> str:
    rows = json.dumps([task.to_row() for task in tasks], sort_keys=True)
    return hashlib.sha256(rows.encode()).hexdigest()[:16]


def settings_hash(config: Mapping[str, Any]) -> str:
    """Returns a digest of the settings that shape a run's result: agent, episodes and seed.

    Equal for two runs that differ only in their tasks, attempts, time or versions.
    """
    shaping = {name: config[name] for name in ("agent", "episode", "seed")}
    return hashlib.sha256(json.dumps(shaping, sort_keys=True).encode()).hexdigest()[:12]


def versions() -> dict[str, str]:
    """Returns the versions of Python, the system and the packages that a run depends on."""
    found = {"python": platform.python_version(), "system": f"{sys.platform} {platform.release()}"}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _continued(out: str | Path, config: dict[str, Any], tasks: Sequence[Task]) -> RunFolder:
    """Opens a run that is continued, and adds tasks and attempts to its settings."""
    folder = RunFolder.open(out)
    for name in ("agent", "episode", "seed"):
        old, new = folder.config.get(name), json.loads(json.dumps(config[name]))
        if name == "agent":  # a server may have moved
            old, new = ({**(one or {}), "base_url": None} for one in (old, new))
        if old != new:
            raise InvalidArgumentError(
                f"the run in {folder.path} was made with {name}={json.dumps(old)}, got "
                f"{json.dumps(new)}; give the same settings, or name a new folder"
            )
    old_ids, new_ids = folder.config["tasks"]["task_ids"], config["tasks"]["task_ids"]
    if missing := sorted(set(old_ids) - set(new_ids)):
        raise InvalidArgumentError(
            f"the run in {folder.path} has tasks that are not asked for now, such as "
            f"{missing[0]!r}; ask for at least the same tasks"
        )
    by_id = {task.task_id: task for task in tasks}
    if _digest([by_id[task_id] for task_id in old_ids]) != folder.config["tasks"]["digest"]:
        raise InvalidArgumentError(
            f"tasks have changed since the run in {folder.path} began, so that its verdicts are "
            "of other tasks; name a new folder"
        )
    if config["attempts"] < folder.config["attempts"]:
        raise InvalidArgumentError(
            f"the run in {folder.path} has {folder.config['attempts']} attempts at each task, got "
            f"{config['attempts']}; ask for at least as many"
        )
    kept = {name: folder.config[name] for name in ("run_id", "created_at", "versions")}
    folder.config = {**config, **kept}
    folder.save_config()
    return folder
