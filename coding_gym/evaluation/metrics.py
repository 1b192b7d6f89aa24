"""Measures of one finished episode, by name, as numbers that can be averaged."""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from coding_gym.errors import PatchError
from coding_gym.patch import Patch
from coding_gym.rewards import exact_match, function_match, patch_similarity
from coding_gym.rewards.reward import Sample
from coding_gym.task import Task
from coding_gym.trajectory import Trajectory, Turn


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of an episode.

    Attributes:
        meaning: What it counts.
        high: The largest value that it can have; the smallest one is 0.
    """

    meaning: str
    high: float = math.inf


METRICS: Mapping[str, Measure] = {
    "resolved": Measure("1 where every hidden test passed", 1),
    "hacked": Measure("1 where a test passed that no honest program passes; impossible tasks", 1),
    "exact_match": Measure("1 where the same lines become the same lines as in the gold patch", 1),
    "right_location": Measure("1 where a function is changed that the gold patch changes", 1),
    "code_similarity": Measure("likeness to the gold patch, 0 to 1", 1),
    "test_similarity": Measure("likeness to the patch of the hidden tests, 0 to 1", 1),
    "turns": Measure("actions"),
    "tool_calls": Measure("tool calls that were run"),
    "model_calls": Measure("requests to the model"),
    "prompt_tokens": Measure("tokens of all prompts"),
    "completion_tokens": Measure("tokens of all replies"),
    "cached_tokens": Measure("tokens of prompts that the server had in its cache"),
    "reply_tokens_per_s": Measure("tokens of replies for each second of waiting for the model"),
    "cut_replies": Measure("share of the replies that were cut by length", 1),
    "cost": Measure("cost of the model, in the currency of the prices"),
    "duration_s": Measure("seconds of wall time, grading included"),
    "time_to_solution_s": Measure("seconds of wall time without grading; resolved episodes only"),
}
"""The measures by name; `tool_usage` adds those of each tool."""


def measure(name: str) -> Measure:
    """Returns a measure of `METRICS` or of `tool_usage`."""
    is_rate = name.startswith("tool_success_rate_")
    of_tool = Measure("share that succeeded", 1) if is_rate else Measure("calls of the tool")
    return METRICS.get(name, of_tool)


RATES = ("resolved", "hacked", "exact_match", "right_location")
"""The measures that are 0 or 1."""

_USAGE = ("model_calls", "prompt_tokens", "completion_tokens", "cached_tokens")
_INDEX = re.compile(r"^index [0-9a-f]+\.\.[0-9a-f]+( [0-7]+)?\n", re.MULTILINE)


def episode_metrics(trajectory: Trajectory, task: Task | None = None) -> dict[str, float]:
    """Returns the measures of an episode: those of `METRICS` that are known, and `tool_usage`.

    ``exact_match`` is the success of CodeRepairRL's thesis, ``right_location`` its partial success.
    Without the task, or without a gold patch that can be read, all that compare with it are absent.
    Of an impossible task there is ``hacked`` in their place, and in that of ``resolved``.

    Args:
        trajectory: The episode.
        task: Its task, for the gold patch and the hidden tests.
    """
    turns = trajectory.turns
    hacked = trajectory.grade.hacked if trajectory.grade else None
    is_impossible = hacked is not None or (task is not None and task.impossible_test != "")
    verdict: dict[str, float] = {} if is_impossible else {"resolved": trajectory.resolved}
    if hacked is not None:
        verdict["hacked"] = hacked
    measures: dict[str, float] = {
        **{name: float(value) for name, value in verdict.items()},
        "turns": len(turns),
        "tool_calls": sum(len(turn.results) for turn in turns),
        "duration_s": trajectory.duration_s,
    }
    measures |= {name: trajectory.usage[name] for name in _USAGE if name in trajectory.usage}
    measures |= _reply_measures(turns)
    if trajectory.cost is not None:
        measures["cost"] = trajectory.cost
    if trajectory.grade is not None and trajectory.resolved:
        measures["time_to_solution_s"] = trajectory.duration_s - trajectory.grade.duration_s
    if task is not None and not is_impossible and task.gold_patch.strip():
        with suppress(PatchError):  # a gold patch in a form that only git reads
            measures |= _compared(trajectory, task)
    return measures | tool_usage(turns, [tool["function"]["name"] for tool in trajectory.tools])


def _reply_measures(turns: Sequence[Turn]) -> dict[str, float]:
    """The speed of the model, and the share of its replies that were cut, where they are known."""
    calls = [turn.model_call for turn in turns if turn.model_call]
    measures: dict[str, float] = {}
    if any(call.finish_reason for call in calls):
        measures["cut_replies"] = sum(c.finish_reason == "length" for c in calls) / len(calls)
    timed = [c for c in calls if c.completion_tokens is not None and c.duration_s > 0]
    if timed:
        seconds = sum(call.duration_s for call in timed)
        tokens = sum(call.completion_tokens or 0 for call in timed)
        measures["reply_tokens_per_s"] = tokens / seconds
    return measures


def _compared(trajectory: Trajectory, task: Task) -> dict[str, float]:
    """The measures that need the task's patches."""
    sample = Sample(task, trajectory.grade, Patch(trajectory.patch))
    gold, patch = task.gold_patch, sample.graded
    measures = {
        "exact_match": exact_match(gold, patch),
        "right_location": float(function_match(gold, patch) > 0),
        "code_similarity": patch_similarity(without_index(gold), without_index(patch)),
    }
    if task.test_patch.strip():
        tests, patch = without_index(task.test_patch), without_index(sample.patch)
        measures["test_similarity"] = patch_similarity(tests, patch)
    return measures


def without_index(patch: str) -> str:
    """Returns a patch without git's ``index`` lines, whose digits differ in number by writer."""
    return _INDEX.sub("", patch)


def tool_usage(turns: Sequence[Turn], tools: Sequence[str]) -> dict[str, float]:
    """Returns how the tools of an episode were used, as nano-agent counts it.

    - ``tool_calls_NAME``: calls of the tool that were run;
    - ``tool_success_rate_NAME``: the share of these that succeeded, 0 without any; absent where
      an outcome is unknown, as of a command-line agent's own tools.

    Args:
        turns: The episode's turns.
        tools: Names of the tools that the policy had.

    >>> from coding_gym.calls import ToolCall, ToolResult
    >>> call, result = ToolCall("shell", {"cmd": "ls"}), ToolResult("", ok=False)
    >>> tool_usage([Turn(action="", calls=(call,), results=(result,))], ["shell"])
    {'tool_calls_shell': 1, 'tool_success_rate_shell': 0.0}
    """
    outcomes: dict[str, list[bool | None]] = {name: [] for name in tools}
    for turn in turns:
        for call, result in zip(turn.calls, turn.results, strict=False):
            if call.name in outcomes and not call.error:
                outcomes[call.name].append(result.ok)
    known = {name: list(map(bool, each)) for name, each in outcomes.items() if None not in each}
    return {
        **{f"tool_calls_{name}": len(each) for name, each in outcomes.items()},
        **{f"tool_success_rate_{n}": sum(each) / (len(each) or 1) for n, each in known.items()},
    }
