"""A scripted policy in each format solves a bundled task."""

import itertools
from collections.abc import Iterator

import gymnasium as gym
import pytest

from coding_gym import Stop, Task, load_tasks
from coding_gym.calls import ToolCall
from coding_gym.patch import Patch
from coding_gym.tools import get_toolset
from coding_gym.tools.formats import TOOL_FORMATS, render_calls

TASKS = itertools.cycle(["waypoint-two-words", "braid-empty-side", "stockroom-heavy-flour"])
SUBMIT_LINE = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
TOOLSETS = {"bash_block": "bash", "apply_patch": "codex"}


def hunks(task: Task) -> Iterator[tuple[str, list[str]]]:
    """The gold patch as (path, lines of a hunk)."""
    for change in Patch(task.gold_patch).files:
        for hunk in change.text.split("\n@@ ")[1:]:
            yield change.path, hunk.removesuffix("\n").split("\n")[1:]


def side(lines: list[str], sign: str) -> str:
    return "\n".join(line[1:] for line in lines if line[:1] in (" ", sign))


def nano_calls(task: Task) -> list[ToolCall]:
    edits = (
        {"search": side(lines, "-"), "replace": side(lines, "+"), "file": path}
        for path, lines in hunks(task)
    )
    return [
        ToolCall("shell", {"cmd": "ls"}),
        *(ToolCall("apply_patch", edit) for edit in edits),
        ToolCall("submit"),
    ]


def bash_calls(task: Task) -> list[ToolCall]:
    patch = f"cat <<'END' | git apply\n{task.gold_patch}END"
    return [ToolCall("bash", {"command": command}) for command in (patch, SUBMIT_LINE)]


def codex_calls(task: Task) -> list[ToolCall]:
    body = [
        line for path, lines in hunks(task) for line in (f"*** Update File: {path}", "@@", *lines)
    ]
    patch = "\n".join(["*** Begin Patch", *body, "*** End Patch"])
    return [ToolCall("apply_patch", {"patch": patch})]


POLICIES = {"nano": nano_calls, "bash": bash_calls, "codex": codex_calls}


@pytest.mark.parametrize(
    ("tool_format", "task_id"),
    list(zip((name for name in TOOL_FORMATS if name != "auto"), TASKS, strict=False)),
)
def test_a_scripted_policy_in_each_format_solves_a_task(tool_format: str, task_id: str) -> None:
    toolset = TOOLSETS.get(tool_format, "nano")
    (task,) = load_tasks("bundled", task_ids=task_id)
    with gym.make(
        "coding_gym:CodingRepair-v0", toolset=toolset, tool_format=tool_format, task_ids=[task_id]
    ) as env:
        env.reset()
        for call in POLICIES[toolset](task):
            action = render_calls([call], tool_format, get_toolset(toolset).schemas)
            _, reward, terminated, truncated, info = env.step(action)
            assert info["tool_calls"] == info["turn"]
        can_submit = tool_format != "apply_patch"  # which says nothing but patches
        if not can_submit:
            _, reward, terminated, truncated, info = env.step(Stop("done"))
        assert (terminated, truncated, reward) == (can_submit, not can_submit, 1.0), info["text"]
