"""One call from an agent to a folder with a record of every attempt, and a report."""

import asyncio
import hashlib
import json
import logging
import platform
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from pathlib import Path
from typing import Any

from coding_gym.agents.live_episode import Player
from coding_gym.agents.players import get_player
from coding_gym.arguments import at_least_one, check_arguments
from coding_gym.episode import EpisodeFactory
from coding_gym.episode.factory import task_digest
from coding_gym.errors import InvalidArgumentError, last_line
from coding_gym.rollout.ray_runner import RayRunner
from coding_gym.rollout.run_folder import Outcome, RunFolder
from coding_gym.rollout.runner import Runner
from coding_gym.task import Task
from coding_gym.trajectory import Trajectory

_log = logging.getLogger(__name__)

_PACKAGES = ("coding-gym", "openai", "litellm", "transformers", "torch", "gymnasium", "tiktoken")


def _log_error(trajectory: Trajectory) -> None:
    if trajectory.error_class:
        said = last_line(trajectory.error)
        of = trajectory.task_id, trajectory.attempt, trajectory.error_class, said
        _log.warning("%s, attempt %d ended by an error (%s): %s", *of)


def evaluate(
    player: Player | str,
    out: str | Path,
    *,
    tasks: str | Sequence[Any] = "bundled",
    episode: Mapping[str, Any] | None = None,
    attempts: int = 1,
    concurrency: int = 4,
    seed: int = 0,
    max_cost: float | None = None,
    max_tokens: int | None = None,
    resume: bool = False,
    ray: str | None = None,
    source: Mapping[str, Any] | None = None,
    notes: Mapping[str, Any] | None = None,
    on_start: Callable[[Runner, int, Sequence[Outcome]], None] = lambda *_: None,
    on_done: Callable[[Trajectory], None] = _log_error,
) -> RunFolder:
    """Plays every task a number of times and returns the folder with a record of every attempt.

    ``resume=True`` continues a run that Ctrl-C, a budget or SIGKILL ended: attempts with a verdict
    are kept, those that ended by an error are played again, and more tasks or attempts may be
    added. Ctrl-C lets the running episodes end and begins no more; a second one discards them.

    Args:
        player: The agent, or the name of one that needs no model; see
            `coding_gym.agents.players.get_player`.
        out: The folder; see `coding_gym.rollout.RunFolder`.
        tasks: The source of the tasks, or a list of tasks or rows.
        episode: Other arguments of `EpisodeFactory.from_config`: toolset, limits, and so on.
        attempts: Attempts at each task.
        concurrency: Episodes at one time.
        seed: Seed of the run; the seed of each attempt follows from it, the task and the attempt.
        max_cost: Bound on the cost of all requests; see `coding_gym.rollout.Runner`.
        max_tokens: Bound on the tokens of all prompts and replies.
        resume: Whether to continue the run in ``out``.
        ray: A cluster whose nodes play the attempts, as `ray.init` takes it, such as ``"auto"``;
            see `coding_gym.rollout.ray_runner.RayRunner`. Without it this machine plays all.
        source: Arguments of `load_tasks` by which the tasks can be loaded again, for the record.
        notes: Other entries of ``config.json``, such as the command line.
        on_start: Called before the first episode with the runner, the number of attempts of the
            whole run, and the outcomes that the folder holds already.
        on_done: Called with every record, after it was written; by default those that ended by an
            error are logged.

    Raises:
        InvalidArgumentError: An argument cannot be used, the folder holds another run, or the
            settings differ from those of the run that is to be continued.
    """
    player = get_player(player) if isinstance(player, str) else player
    known = signature(EpisodeFactory.from_config).parameters.keys() - {"tasks"}
    check_arguments("episode", episode or {}, sorted(known))
    factory = EpisodeFactory.from_config(tasks=tasks, **dict(episode or {}))
    at_least_one("attempts", attempts)
    at_least_one("concurrency", concurrency)  # before there is a folder
    source = source or {"source": tasks if isinstance(tasks, str) else "rows"}
    factory = replace(factory, source=factory.source or str(source["source"]))
    own = _config(player, episode or {}, source, factory, attempts, seed, Path(out))
    config = {**(notes or {}), **own}
    folder = _continued(out, config, factory) if resume else RunFolder.create(out, config)
    with folder.writer() as writer:
        outcomes = [*folder.outcomes()]
        done = folder.keys()
        todo = [
            (task, attempt)
            for attempt in range(attempts)
            for task in factory.tasks
            if (task.task_id, attempt) not in done
        ]
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
        for _, outcome in outcomes:  # errors cost as much
            runner.spent.cost += outcome.cost or 0.0
            runner.spent.tokens += outcome.tokens
        on_start(runner, attempts * len(factory.tasks), [outcome for _, outcome in outcomes])

        def keep(trajectory: Trajectory) -> None:
            writer.add(trajectory)
            on_done(trajectory)

        _play(runner, todo, keep)
    return folder


def _play(
    runner: Runner, todo: Sequence[tuple[Task, int]], keep: Callable[[Trajectory], None]
) -> None:
    """Plays the attempts; the first Ctrl-C lets those that run end, a second one discards them.

    The event loop has its own thread, as the caller may have a loop too, such as a notebook.
    """
    playing: list[asyncio.Task[Any]] = []

    async def play() -> None:
        playing.append(asyncio.ensure_future(runner.run(todo, keep)))
        await playing[0]

    with ExitStack() as after, ThreadPoolExecutor(1) as thread:
        with suppress(ValueError):  # only the main thread receives signals
            before = signal.signal(signal.SIGINT, signal.default_int_handler)  # "&" ignores it
            after.callback(signal.signal, signal.SIGINT, before or signal.SIG_DFL)
        future = thread.submit(lambda: asyncio.run(play()))
        try:
            future.result()
        except KeyboardInterrupt:
            _log.warning(
                "interrupted: the running episodes are played to their end; interrupt again to "
                "discard them"
            )
            runner.stopping = True
            try:
                future.result()
            except KeyboardInterrupt:
                playing[0].get_loop().call_soon_threadsafe(playing[0].cancel)
                raise


def _config(
    player: Player,
    episode: Mapping[str, Any],
    source: Mapping[str, Any],
    factory: EpisodeFactory,
    attempts: int,
    seed: int,
    out: Path,
) -> dict[str, Any]:
    created = datetime.now(UTC)
    config = {
        "run_id": f"{out.absolute().name}-{created:%Y%m%d-%H%M%S}",
        "created_at": created.isoformat(timespec="seconds"),
        "agent": {"name": player.name, "model": player.model, **player.describe()},
        "tasks": {
            **source,
            "task_ids": [task.task_id for task in factory.tasks],
            "digest": _tasks_digest(factory.tasks),
        },
        "attempts": attempts,
        "seed": seed,
        "episode": dict(episode),
        "versions": _versions(),
    }
    # Equal for two runs that differ only in their tasks, attempts, time or versions.
    shaping = {name: config[name] for name in ("agent", "episode", "seed")}
    return {**config, "settings_hash": _digest(shaping)[:12]}


def _tasks_digest(tasks: Iterable[Task]) -> str:
    return _digest([*map(task_digest, tasks)])[:16]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _versions() -> dict[str, str]:
    """Returns the versions of Python, the system and the packages that a run depends on."""
    found = {"python": platform.python_version(), "system": f"{sys.platform} {platform.release()}"}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _difference(name: str, old: Any, new: Any) -> str:
    """Returns where two settings differ, as ``name.key=old, got new``."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return f"{name}={json.dumps(old)}, got {json.dumps(new)}"
    keys = [k for k in {**old, **new} if k not in old or k not in new or old[k] != new[k]]
    return "; ".join(_difference(f"{name}.{key}", old.get(key), new.get(key)) for key in keys)


def _continued(out: str | Path, config: dict[str, Any], factory: EpisodeFactory) -> RunFolder:
    """Opens a run that is continued, and adds tasks, attempts and versions to its settings."""
    folder = RunFolder.open(out)
    for name in ("agent", "episode", "seed"):
        old, new = folder.config[name], json.loads(json.dumps(config[name]))
        if name == "agent":  # a server may have moved
            old, new = ({**one, "base_url": None} for one in (old, new))
            if old != new and {**old, "patches": new.get("patches")} == new:
                raise InvalidArgumentError(
                    f"the patches have changed since the run in {folder.path}; name a new folder"
                )
        if old != new:
            raise InvalidArgumentError(
                f"the run in {folder.path} was made with {_difference(name, old, new)}; give the "
                "same settings, or name a new folder"
            )
    old_ids, new_ids = folder.config["tasks"]["task_ids"], config["tasks"]["task_ids"]
    if missing := sorted(set(old_ids) - set(new_ids)):
        raise InvalidArgumentError(
            f"the run in {folder.path} has tasks that are not asked for now, such as "
            f"{missing[0]!r}; ask for at least the same tasks"
        )
    by_id = {task.task_id: task for task in factory.tasks}
    if _tasks_digest(map(by_id.__getitem__, old_ids)) != folder.config["tasks"]["digest"]:
        raise InvalidArgumentError(
            f"tasks have changed since the run in {folder.path} began, so that its verdicts are "
            "of other tasks, or an older version of this package made it; name a new folder"
        )
    if config["attempts"] < folder.config["attempts"]:
        raise InvalidArgumentError(
            f"the run in {folder.path} has {folder.config['attempts']} attempts at each task, got "
            f"{config['attempts']}; ask for at least as many"
        )
    found = folder.config["versions"]
    for name, new in config["versions"].items():
        old = found.get(name, "none")
        found[name] = old if old.split(", then ")[-1] == new else f"{old}, then {new}"
    kept = {name: folder.config[name] for name in ("run_id", "created_at", "versions")}
    folder.config = {**config, **kept}
    folder.save_config()
    return folder
