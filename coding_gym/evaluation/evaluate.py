"""Runs an agent on tasks and records every attempt in a run folder."""

import hashlib
import json
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, nullcontext, suppress
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from itertools import product
from pathlib import Path
from typing import Any

from coding_gym.agents.built_in import get_player
from coding_gym.agents.hf import HuggingFaceAgent
from coding_gym.agents.player import Player
from coding_gym.arguments import at_least_one, check_arguments, is_integer, is_number
from coding_gym.episode import EpisodeConfig
from coding_gym.episode.config import task_digest
from coding_gym.errors import InvalidArgumentError
from coding_gym.rollout.image_windows import ImageWindows
from coding_gym.rollout.ray_runner import RayRunner
from coding_gym.rollout.runner import Runner, run_in_thread
from coding_gym.run_folder import CONFIG, ROWS, Outcome, RunFolder
from coding_gym.tasks import load_tasks
from coding_gym.tasks.bundled_tasks import BUNDLED
from coding_gym.trajectory import Trajectory

_PlayerSpec = Player | str | Mapping[str, Any]
_Source = str | Mapping[str, Any] | Sequence[Any]
_PACKAGES = ("coding-gym", "openai", "transformers", "torch", "gymnasium", "tiktoken")


def evaluate(
    out: str | Path,
    player: _PlayerSpec | None = None,
    *,
    tasks: _Source | None = None,
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
    on_done: Callable[[Trajectory], None] = lambda _: None,
) -> RunFolder:
    """Plays each task one or more times and returns the run folder, which records every attempt.

    After Ctrl-C no episode starts, and running episodes continue to their end; a second Ctrl-C
    discards running episodes. Python ignores Ctrl-C in a script that a shell started with ``&``.

    ``evaluate(out, resume=True)`` continues a run that Ctrl-C, a budget or SIGKILL ended, with the
    settings of its ``config.json``. Attempts with a verdict are kept; attempts that ended with an
    error are repeated. ``attempts`` can increase, and ``concurrency``, ``max_cost``,
    ``max_tokens``, ``max_lost``, ``ray`` and ``images_window`` can change. A `Player` object and a
    list of tasks must be passed again.

    Args:
        out: The run folder; see `coding_gym.run_folder.RunFolder`.
        player: The agent: a `Player`, the name of an agent without a model, or the arguments of
            `coding_gym.agents.built_in.get_player` as JSON values.
        tasks: The task source, the arguments of `coding_gym.load_tasks` as JSON values, or a list
            of tasks or rows; by default ``"bundled"``.
        episode: Arguments of `EpisodeConfig.from_config` except ``tasks``, such as ``toolset``.
            ``challenge`` is ``"passed"`` by default, so that grades name each failing test;
            the default of ``tokenizer`` is the tokenizer of a model that runs in this process.
        attempts: Number of attempts per task; by default 1.
        seed: Seed of the run, by default 0. An attempt's seed is derived from this seed, the task
            and the number of the attempt.
        concurrency: Number of episodes at the same time; by default 8.
        max_cost: Limit on the cost of all requests; see `coding_gym.rollout.Runner`.
        max_tokens: Limit on the tokens of all prompts and replies.
        max_lost: Number of consecutive attempts with errors that stops the run, by default 25;
            consecutive errors usually have a common cause, such as the model server.
        ray: The address of a Ray cluster whose nodes play the attempts, such as ``"auto"``; see
            `coding_gym.rollout.ray_runner.RayRunner`. By default this machine plays all attempts.
        images_window: Number of task images to pull at a time during the run; pulled images are
            removed after their last attempts. By default all images must be present.
        resume: Whether to continue the run in ``out``.
        on_start: Called before the first episode. The arguments are the runner, the number of
            attempts of the whole run, and the outcomes in the folder.
        on_done: Called with each record after it is written.

    Raises:
        InvalidArgumentError: An argument is invalid, the folder contains another run, or an
            argument would change a setting of the resumed run.
    """
    bounds = _checked(
        attempts=attempts,
        images_window=images_window,
        concurrency=concurrency,
        max_cost=max_cost,
        max_tokens=max_tokens,
        max_lost=max_lost,
    )
    attempts, images_window = bounds.pop("attempts", None), bounds.pop("images_window", None)
    if seed is not None and not is_integer(seed):
        raise InvalidArgumentError(f"seed must be an integer, got {seed!r}")
    if images_window is not None and ray:
        raise InvalidArgumentError("images_window and ray cannot be combined; remove one of them")
    if resume and (episode is not None or seed is not None):
        raise InvalidArgumentError("resume takes episode and seed from config.json; omit both")
    with ExitStack() as stack:
        folder = None
        if resume:
            folder = RunFolder.open(out)
            if "player" not in folder.config:
                problem = "is imported or recorded, so it cannot be resumed; name a new folder"
                raise InvalidArgumentError(f"the run in {out} {problem}")
            stack.enter_context(folder.writer())
            folder = RunFolder.open(out)  # the last writer can have saved settings
            player, tasks, episode = _recorded(folder, player, tasks)
        config, agent, episode_config = _settings(player, tasks, episode or {})
        if folder:
            _update(folder, config, attempts, bounds)
        else:
            config["bounds"] = {"concurrency": 8, "max_lost": 25, **bounds}
            numbers = {"attempts": attempts or 1, "seed": int(seed or 0)}
            folder = RunFolder.create(out, numbers | config)
            stack.enter_context(folder.writer())
        _play(folder, agent, episode_config, ray, images_window, on_start, on_done)
    return folder


def _play(
    folder: RunFolder,
    player: Player,
    episode_config: EpisodeConfig,
    ray: str | None,
    images_window: int | None,
    on_start: Callable[[Runner, int, Sequence[Outcome]], None],
    on_done: Callable[[Trajectory], None],
) -> None:
    """Plays and records the attempts that have no verdict."""
    outcomes, graded_keys = list(folder.outcomes()), folder.keys()
    runner = (partial(RayRunner, address=ray) if ray else Runner)(
        config=episode_config,
        player=player,
        seed=folder.config["seed"],
        run_id=folder.config["run_id"],
        cost=sum(outcome.cost or 0.0 for outcome in outcomes),  # errors count, too
        tokens=sum(outcome.tokens for outcome in outcomes),
        **folder.config["bounds"],
    )
    folder.save_config()  # a resumed run can change attempts, bounds and versions
    planned = [*product(range(folder.config["attempts"]), episode_config.tasks)]
    pending = [(task, n) for n, task in planned if (task.task_id, n) not in graded_keys]
    on_start(runner, len(planned), outcomes)
    if images_window is not None:
        runner.images = ImageWindows(
            pending, images_window, runner.config.sandbox.name, lambda: bool(runner.stop_reason)
        )
        pending = runner.images.attempts

    def record(trajectory: Trajectory) -> None:
        folder.add(trajectory)
        on_done(trajectory)

    with closing(runner.images) if runner.images else nullcontext():
        run_in_thread(runner.run(pending, record), on_interrupt=runner.interrupt)


def _checked(**bounds: float | None) -> dict[str, Any]:
    """Returns the bounds that are not None.

    Raises:
        InvalidArgumentError: A bound is invalid.
    """
    checked = {name: bound for name, bound in bounds.items() if bound is not None}
    for name, bound in checked.items():
        if name not in ("max_cost", "max_tokens"):
            checked[name] = at_least_one(name, bound)
        elif not is_number(bound) or not bound >= 0:
            raise InvalidArgumentError(f"{name} must be a number and at least 0, got {bound!r}")
    return checked


def _recorded(
    folder: RunFolder, player: _PlayerSpec | None, tasks: _Source | None
) -> tuple[_PlayerSpec, _Source, Mapping[str, Any]]:
    """Returns player, tasks and episode of a run; an argument replaces the recorded value.

    Raises:
        InvalidArgumentError: The settings do not contain the player or the tasks.
    """
    config, path = folder.config, folder.path / CONFIG
    player = player or config["player"]
    if player is None:
        raise InvalidArgumentError(
            f"{path} cannot store a Player; pass the same object, or run coding-gym grade again"
        )
    if tasks is None:
        tasks = {name: value for name, value in config["tasks"].items() if name != "digest"}
        if tasks["source"] == ROWS:
            raise InvalidArgumentError(
                f"{path} does not contain the tasks; pass the same tasks again"
            )
    return player, tasks, config["episode"]


def _settings(
    player: _PlayerSpec | None, tasks: _Source | None, episode: Mapping[str, Any]
) -> tuple[dict[str, Any], Player, EpisodeConfig]:
    """Returns settings for ``config.json``, the agent and the settings of its episodes."""
    if player is None:
        raise InvalidArgumentError("a new run needs a player, such as player='gold'")
    arguments, agent = _player(player)
    defaults = {"challenge": "passed"}  # grades then name failing tests
    if isinstance(agent, HuggingFaceAgent):
        defaults["tokenizer"] = agent.tokenizer
    episode = {**defaults, **episode}
    tasks = {"source": tasks} if isinstance(tasks, str) else {} if tasks is None else tasks
    if isinstance(tasks, Mapping):
        tasks = {"source": BUNDLED, **tasks}
    episode_config = _episode_config(tasks, episode)
    agent.check(episode_config.limits)
    digests = json.dumps(sorted(map(task_digest, episode_config.tasks)))
    digest = hashlib.sha256(digests.encode()).hexdigest()[:16]
    agent_settings = {"name": agent.name, "model": agent.model, **agent.describe()}
    config = {
        "agent": json.loads(json.dumps(agent_settings)),
        "player": arguments,
        "tasks": {
            **(tasks if isinstance(tasks, Mapping) else {"source": ROWS}),
            "task_ids": [task.task_id for task in episode_config.tasks],
            "digest": digest,
        },
        "episode": episode,
        "versions": _versions(),
    }
    return config, agent, episode_config


def _update(
    folder: RunFolder, new: Mapping[str, Any], attempts: int | None, bounds: Mapping[str, Any]
) -> None:
    """Updates attempts, bounds and versions of a resumed run in memory.

    Raises:
        InvalidArgumentError: The agent or the tasks changed, or ``attempts`` was lowered.
    """
    old = folder.config
    agents = ({**config["agent"], "base_url": None} for config in (old, new))  # a server can move
    changed = [f"the agent's {name}" for name in _differing(*agents)]
    if old["tasks"]["digest"] != new["tasks"]["digest"]:
        changed.append("the tasks")
    if changed:
        raise InvalidArgumentError(
            f"{', '.join(changed)} changed after the start of the run in {folder.path}; use a new "
            "folder"
        )
    if attempts is not None and attempts < old["attempts"]:
        raise InvalidArgumentError(
            f"attempts must be at least {old['attempts']}, as in {folder.path / CONFIG}, got "
            f"{attempts}"
        )
    old["attempts"] = attempts or old["attempts"]
    old["bounds"] = {**old["bounds"], **bounds}
    versions = old["versions"]
    for name in _differing(versions, new["versions"]):
        before, now = versions.get(name, "none"), new["versions"].get(name, "none")
        versions[name] = before if before.split(", then ")[-1] == now else f"{before}, then {now}"


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return [name for name in {**old, **new} if old.get(name) != new.get(name)]


def _player(player: _PlayerSpec) -> tuple[dict[str, Any] | None, Player]:
    """Returns the arguments of `get_player` (None for a `Player` object), and the agent."""
    arguments = {"agent": player} if isinstance(player, str) else player
    if isinstance(arguments, Mapping):
        check_arguments("player", arguments, signature(get_player).parameters)
        return dict(arguments), get_player(**{"agent": "", **arguments})
    return None, arguments


def _episode_config(
    source: Mapping[str, Any] | Sequence[Any], episode: Mapping[str, Any]
) -> EpisodeConfig:
    tasks: Sequence[Any]
    names = signature(EpisodeConfig.from_config).parameters.keys() - {"tasks", "unknown"}
    check_arguments("episode", episode, sorted(names))
    if isinstance(source, Mapping):
        names = signature(load_tasks).parameters.keys() - {"needs_tests"}
        check_arguments("tasks", source, sorted(names))
        tasks = load_tasks(**source, needs_tests=False)  # `from_config` checks the tests
        source_name = str(source["source"])
    else:
        tasks, source_name = source, ROWS
    return replace(EpisodeConfig.from_config(tasks=tasks, **episode), source=source_name)


def _versions() -> dict[str, str]:
    """Returns the versions of Python, the operating system and the packages of `_PACKAGES`."""
    system = f"{sys.platform} {platform.release()}"
    versions = {"python": platform.python_version(), "system": system}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions
