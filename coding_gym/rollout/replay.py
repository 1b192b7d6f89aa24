"""Recorded actions played again, and all that comes of them compared with the record.

A record may come from anybody. It decides what is done inside a sandbox, but not which sandbox that
is, nor where tasks are loaded from, nor what is imported: backend, image, tasks, and any tokenizer
that is not bundled are the caller's, bounds of the sandbox looser than the defaults are followed
only where the caller says so, and of wrappers only the rewards of this package are made again.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from coding_gym.action import Completion, Stop
from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.episode.settings import task_digest
from coding_gym.errors import InvalidArgumentError
from coding_gym.grade import Grade
from coding_gym.rollout.difference import Difference
from coding_gym.rollout.record_check import check_replayable
from coding_gym.rollout.recorded_env import recorded_env
from coding_gym.rollout.recorded_rewards import rebuilt
from coding_gym.task import Task
from coding_gym.trajectory import StopReason, Trajectory, Turn

_NO_REWARDS = "rewards were not compared: a wrapper of the record is not known"
_PLAYED = "played"
_Pairs = Iterator[tuple[str, Any, Any]]  # what it is, recorded, replayed


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What came of playing a record again.

    Attributes:
        task_id: The task.
        num_turns: How many turns were played again.
        difference: The first difference, or None where all is equal.
        skipped: Why nothing was played, or "".
        note: What was not compared, and which bounds of the record were not followed, or "".
    """

    task_id: str
    num_turns: int = 0
    difference: Difference | None = None
    skipped: str = ""
    note: str = ""


def replay(
    trajectory: Trajectory,
    task: Task,
    *,
    sandbox: str | Mapping[str, Any] = "auto",
    tokenizer: str | None = None,
    trust_limits: bool = False,
) -> Replay:
    """Plays the actions of a record again, up to the first difference.

    Compared are the prompt, every observation, reward and its parts, how the episode ended, the
    patch, and whether it is resolved; times are not. An episode that the clock ended is stopped
    where it ended, and one that our own side ended is not played at all.

    Args:
        trajectory: The record; it may be unfinished.
        task: The task that it is of.
        sandbox: As for ``CodingRepair-v0``. Shell and limits are the record's unless given here.
        tokenizer: The tokenizer's name; by default the record's, where that is the bundled one.
        trust_limits: Whether the record may bound the sandbox and the time of a command less than
            this package does by default. The note says where it would have.

    Raises:
        InvalidArgumentError: The record lacks what a replay needs, or names what there is not.
    """
    if trajectory.stop_reason is not None and trajectory.stop_reason.is_machinery:
        reason = f"our own side failed in it: {trajectory.error}"
        return Replay(task_id=trajectory.task_id, skipped=reason)
    check_replayable(trajectory)
    if trajectory.settings["task_digest"] != task_digest(task):
        there = Difference("the task", "as it was recorded", "another one of the same name")
        return Replay(task_id=trajectory.task_id, difference=there)
    core, unfollowed = recorded_env(
        trajectory, task, sandbox=sandbox, tokenizer=tokenizer, trust_limits=trust_limits
    )
    with closing(core):
        env, is_whole = rebuilt(core, trajectory.settings.get("wrappers", ()))
        played = _Replay(trajectory, core, env, compares_rewards=is_whole)
        difference, num_turns = played.run()
    note = "; ".join(filter(None, (played.note, unfollowed)))
    return Replay(task_id=trajectory.task_id, num_turns=num_turns, difference=difference, note=note)


class _Replay:
    """One record being played again."""

    def __init__(
        self,
        trajectory: Trajectory,
        core: CodingRepairEnv,
        env: gym.Env[Any, str],
        *,
        compares_rewards: bool,
    ) -> None:
        self._record, self._core, self._env = trajectory, core, env
        self._compares_rewards = compares_rewards
        self._is_by_clock = trajectory.stop_reason is StopReason.MAX_TIME
        self.note = "" if compares_rewards else _NO_REWARDS

    def run(self) -> tuple[Difference | None, int]:
        """Returns the first difference, or None, and how many turns were played."""
        num_played = 0
        for name, recorded, replayed in self._pairs():
            if name == _PLAYED:
                num_played = replayed
            elif recorded != replayed:
                return Difference(name, _text(recorded), _text(replayed)), num_played
        return None, num_played

    def _pairs(self) -> _Pairs:
        record = self._record
        _, info = self._env.reset(seed=0)
        yield "the prompt", _opening(record.messages), _opening(info["messages"])
        for number, turn in enumerate(record.turns, 1):
            is_last = number == len(record.turns)
            action = _action(turn, stops=is_last and record.stop_reason is StopReason.STOPPED)
            if is_last and self._is_by_clock and not (turn.calls or turn.observation):
                action = Stop("by the clock")  # it came too late and was not played
            _, reward, terminated, truncated, info = self._env.step(action)
            yield _PLAYED, None, number
            if is_last and self._is_by_clock and _may_be_cut(turn, self._core.episode.turns[-1]):
                self.note = "the clock cut off the last action: what came of it was not compared"
                return
            yield from _turn_pairs(f"turn {number}", turn, self._core.episode.turns[-1])
            ends = is_last and record.stop_reason is not None
            if ends and self._is_by_clock:
                if not (terminated or truncated):
                    _, reward, _, _, info = self._env.step(Stop("by the clock"))
            else:
                recorded = str(record.stop_reason) if ends else "the episode goes on"
                yield f"turn {number}: the end", recorded, _end(info)
            if self._compares_rewards:
                yield f"turn {number}: reward", turn.reward, float(reward)
                parts = {name: float(part) for name, part in info["reward_parts"].items()}
                yield f"turn {number}: reward parts", turn.reward_parts, parts
        if record.stop_reason is not None:
            yield "the patch", record.patch, self._core.episode.trajectory().patch
            yield "the grade", _verdict(record.grade), _verdict(self._core.episode.grade)


def _may_be_cut(recorded: Turn, replayed: Turn) -> bool:
    """Whether the clock cut calls off, or the last command: replayed it has time to end."""
    has_fewer = len(recorded.results) < len(recorded.calls)
    return has_fewer or bool(recorded.calls and recorded.observation != replayed.observation)


def _turn_pairs(name: str, recorded: Turn, replayed: Turn) -> _Pairs:
    yield f"{name}: tool calls", _calls(recorded), _calls(replayed)
    yield f"{name}: observation", recorded.observation, replayed.observation


def _action(turn: Turn, *, stops: bool) -> str:
    """Returns what was handed to ``step``: only a `Stop` is exact without having any tokens."""
    if not turn.exact:
        return turn.action
    if turn.token_ids:
        try:
            return Completion(turn.action, turn.token_ids, turn.logprobs)
        except (ValueError, TypeError) as problem:
            raise InvalidArgumentError(f"the tokens of an action are not: {problem}") from problem
    return Stop(turn.action) if turn.action or stops else Completion("", ())


def _opening(messages: Iterable[Mapping[str, Any]]) -> str:
    texts = []
    for message in messages:
        if message["role"] == "assistant":
            break
        texts.append(f"{message['role']}: {message['content']}")
    return "\n".join(texts[:2])


def _calls(turn: Turn) -> list[dict[str, Any]]:
    return [call.to_json() for call in turn.calls]


def _end(info: Mapping[str, Any]) -> str:
    reason = info["stop_reason"] or "the episode goes on"
    return f"{reason}: {info['error']}" if info["error"] else reason


def _verdict(grade: Grade | None) -> str:
    return "none" if grade is None else f"resolved={grade.resolved} ({grade.reason})"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=1, sort_keys=True)
