"""Replay of recorded actions, and comparison of every result with the record.

A record is not trusted. It decides what runs inside a sandbox; it cannot load an image, a tokenizer
or a path of this machine, it cannot set a limit looser than the defaults, and of wrappers only the
rewards of this package are made.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from typing import Any

import gymnasium as gym

from coding_gym import wrappers
from coding_gym.action import Completion, Stop
from coding_gym.agents.protocol import Agent
from coding_gym.agents.registry import fixed
from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.episode import Limits
from coding_gym.episode.factory import Settings, task_digest
from coding_gym.episode.limits import MAX_TURNS
from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.rollout.play import play_episode
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.sandbox.protocol import DEFAULT_TIMEOUT_S
from coding_gym.sandbox.spec import SandboxLimits
from coding_gym.task import Task
from coding_gym.text.tokenizers import DEFAULT_TOKENIZER
from coding_gym.trajectory import StopReason, Trajectory

_NO_REWARDS = "rewards were not compared: a wrapper of the record is not known"
_WIDTH = 160  # characters of a line that are printed


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a replay first differed from the record, and what stands there.

    Attributes:
        where: The thing that differs: a command by its turn and text, or ``turn 3: reward``.
        recorded: Its value in the record.
        replayed: Its value now.
    """

    where: str
    recorded: str
    replayed: str

    def __str__(self) -> str:
        sides = [text.splitlines(keepends=True) for text in (self.recorded, self.replayed)]
        pairs = enumerate(zip_longest(*sides))
        number, lines = next((pair for pair in pairs if len(set(pair[1])) > 1), (0, ("", "")))
        characters = enumerate(zip_longest(*(line or "" for line in lines)))
        column = next((i for i, pair in characters if len(set(pair)) > 1), 0)
        part = slice(max(0, column - _WIDTH // 2), column + _WIDTH // 2)
        texts = ["(nothing more)" if line is None else ascii(line[part]) for line in lines]
        return f"{self.where}\nline {number + 1}:\n- {texts[0]}\n+ {texts[1]}"


@dataclass(frozen=True, slots=True)
class Replay:
    """The outcome of playing a record again.

    Attributes:
        task_id: The task.
        num_turns: How many turns were played again.
        difference: The first difference, or None where all is equal.
        note: What was not compared, and which limits of the record were not followed, or "".
        skipped: Why nothing was played, or "".
    """

    task_id: str
    num_turns: int = 0
    difference: Difference | None = None
    note: str = ""
    skipped: str = ""


def replay(trajectory: Trajectory, task: Task, **options: Any) -> Replay:
    """Plays the actions of a record again and compares every result.

    Compared are the prompt, the output of every command, every observation, reward and its parts,
    how the episode ended, the patch, and whether it is resolved; times are not. An episode that
    the clock ended is stopped where it ended, and one that our own side ended is not played.

    Args:
        trajectory: The record; it may be unfinished.
        task: The task that it is of.
        **options: Those of `recorded_env`.

    Raises:
        InvalidArgumentError: The record lacks what a replay needs, or names what there is not.
    """
    env, notes = recorded_env(trajectory, task, **options)
    task_id = trajectory.task_id
    with closing(env):
        if trajectory.stop_reason is not None and trajectory.stop_reason.is_machinery:
            return Replay(task_id, skipped=f"our own side failed in it: {trajectory.error}")
        if trajectory.settings["task_digest"] != task_digest(task):
            another = "another one of the same name, or an older version recorded it"
            there = Difference("the task", "as it was recorded", another)
            return Replay(task_id, difference=there)
        actions = list(_actions(trajectory))
        now = play_episode(env, Agent("record", lambda _: fixed(actions)), seed=0)
    compared = ((name, _text(old), _text(new)) for name, old, new in _pairs(trajectory, now, notes))
    difference = next((Difference(*each) for each in compared if each[1] != each[2]), None)
    num_turns = min(len(trajectory.turns), len(now.turns))
    return Replay(task_id, num_turns, difference, "; ".join(notes))


def _actions(record: Trajectory) -> Iterator[str]:
    for number, turn in enumerate(record.turns, 1):
        is_last = number == len(record.turns)
        if is_last and _is_by_clock(record) and not (turn.calls or turn.observation):
            return  # it came too late and was not played
        if not turn.exact:
            yield turn.action
        elif turn.token_ids:
            try:
                yield Completion(turn.action, turn.token_ids, turn.logprobs)
            except (ValueError, TypeError) as problem:
                raise InvalidArgumentError(f"turn {number} is no completion: {problem}") from None
        else:  # only a Stop is exact without having any tokens
            is_stop = turn.action or (is_last and record.stop_reason is StopReason.STOPPED)
            yield Stop(turn.action) if is_stop else Completion("", ())


def _pairs(record: Trajectory, now: Trajectory, notes: list[str]) -> Iterator[tuple[str, Any, Any]]:
    """Yields what is compared: a name, the recorded value, and the replayed one."""
    yield "the prompt", _opening(record), _opening(now)
    for number, (old, new) in enumerate(zip(record.turns, now.turns, strict=False), 1):
        name, is_last = f"turn {number}", number == len(record.turns)
        if is_last and _is_by_clock(record):
            is_cut = len(old.results) < len(old.calls)
            if is_cut or (old.calls and old.observation != new.observation):
                notes.append("the clock cut off the last action: what came of it was not compared")
                return
            new = replace(new, reward=now.turns[-1].reward, reward_parts=now.turns[-1].reward_parts)
        calls = [[call.to_json() for call in turn.calls] for turn in (old, new)]
        yield f"{name}: tool calls", calls[0], calls[1]
        for call, was, came in zip(old.calls, old.results, new.results, strict=False):
            yield f"{name}: {call.name} {json.dumps(call.arguments)}", was.content, came.content
        yield f"{name}: observation", old.observation, new.observation
        if _NO_REWARDS not in notes:
            yield f"{name}: reward", old.reward, new.reward
            yield f"{name}: reward parts", old.reward_parts, new.reward_parts
    if not _is_by_clock(record):
        end = (len(record.turns), record.stop_reason)
        if record.stop_reason is None:  # the script had nothing more to say, and stopped it
            end = (len(record.turns) + 1, StopReason.STOPPED)
        yield f"turn {len(record.turns)}: the end", end, (len(now.turns), now.stop_reason)
    if record.stop_reason is not None:
        yield "the patch", record.patch, now.patch
        yield "the grade", _verdict(record), _verdict(now)


def recorded_env(
    trajectory: Trajectory,
    task: Task,
    *,
    sandbox: str | Mapping[str, Any] = "auto",
    tokenizer: str | None = None,
    trust_limits: bool = False,
) -> tuple[gym.Env[Any, str], list[str]]:
    """Returns the env that a record was made in, and notes on what differs from that.

    Args:
        trajectory: The record.
        task: The task that it is of.
        sandbox: As for ``CodingRepair-v0``. Shell and limits are the record's unless given here.
        tokenizer: The tokenizer's name; by default the record's, where that is the bundled one.
        trust_limits: Whether limits of the record that are looser than the defaults are followed.

    Raises:
        InvalidArgumentError: The record lacks what a replay needs, or names what there is not.
    """
    if not trajectory.settings:
        raise InvalidArgumentError("it does not say how its env was made; record it again")
    settings = Settings.from_json(trajectory.settings)
    overrides = {"name": sandbox} if isinstance(sandbox, str) else dict(sandbox)
    if settings.sandbox.image and not overrides.get("image"):
        option = json.dumps({"image": settings.sandbox.image})
        raise InvalidArgumentError(
            f"it names an image; if you trust that, give --sandbox '{option}'"
        )
    if tokenizer is None and trajectory.tokenizer != DEFAULT_TOKENIZER:
        raise InvalidArgumentError(
            f"it names the tokenizer {trajectory.tokenizer!r:.80}; if you trust that, give it by "
            "--tokenizer"
        )
    recorded = {"shell": settings.sandbox.shell, "limits": settings.sandbox.limits}
    try:
        options = SandboxOptions.parse({k: v for k, v in recorded.items() if k not in overrides})
        bounds = {**options.limits, "command_timeout_s": settings.command_timeout_s}
        loose = {k: v for k, v in bounds.items() if not trust_limits and _is_loose(k, v)}
        kept: dict[str, Any] = {k: v for k, v in bounds.items() if k not in loose}
        core = CodingRepairEnv(
            tasks=[task.to_row()],
            toolset=trajectory.toolset,
            tokenizer=tokenizer or trajectory.tokenizer,
            tool_format=settings.tool_format,
            command_timeout_s=kept.pop("command_timeout_s", DEFAULT_TIMEOUT_S),
            sandbox={"shell": options.shell, "limits": kept, **overrides},
            grading=settings.grading,
            challenge=settings.challenge,
        )
        # Without the clock, which would stop another machine elsewhere.
        limits = Limits(**{**settings.limits, "max_seconds": None})
        # The turns of the record, and one to stop it; other bounds have no default.
        most = max(MAX_TURNS, len(trajectory.turns) + 1)
        if not trust_limits and (limits.max_turns is None or limits.max_turns > most):
            loose["max_turns"] = limits.max_turns
            limits = replace(limits, max_turns=most)
        core.limits = limits
        env: gym.Env[Any, str] = core
        kinds = [_reward_wrapper(entry.name) for entry in settings.wrappers]
        for kind, entry in zip(kinds, settings.wrappers, strict=True):
            env = env if None in kinds else kind(env, **entry.kwargs)
    except (UnknownNameError, TypeError) as problem:
        raise InvalidArgumentError(f"it was made with what there is not: {problem}") from problem
    notes = [_NO_REWARDS] if None in kinds else []
    if loose:
        names = ", ".join(f"{name}={bound}" for name, bound in loose.items())
        notes.append(f"not followed, as looser than the defaults: {names}; see --trust-limits")
    return env, notes


def _is_loose(name: str, bound: float | None) -> bool:
    default = {**asdict(SandboxLimits()), "command_timeout_s": DEFAULT_TIMEOUT_S}[name]
    return default is not None and (bound is None or bound > default)


def _reward_wrapper(name: str) -> Any:
    kind = getattr(wrappers, name, None) if name in wrappers.__all__ else None
    return kind if hasattr(kind, "shaping_weight") else None


def _is_by_clock(record: Trajectory) -> bool:
    return record.stop_reason is StopReason.MAX_TIME


def _verdict(record: Trajectory) -> Any:
    return record.grade and [record.grade.resolved, record.grade.reason]


def _opening(record: Trajectory) -> list[Any]:
    return [[message.get("role"), message.get("content")] for message in record.messages[:2]]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=1, sort_keys=True)
