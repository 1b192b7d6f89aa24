"""A policy in each format repairs bundled tasks: every call of the episode goes through it."""

import base64

import pytest

from coding_gym.calls import ToolCall
from coding_gym.envs import CodingRepairEnv
from coding_gym.tasks import load_tasks
from coding_gym.tools.formats import TOOL_FORMATS, render_calls

TASKS = sorted(load_tasks(), key=lambda task: task.task_id)[:3]
DONE = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def envelope_of(patch: str) -> str:
    """Writes a unified diff as Codex does."""
    lines = [line for line in patch.splitlines() if not line.startswith(("diff ", "index ", "---"))]
    files = (
        "*** Update File: " + line[6:] if line.startswith("+++ b/") else line for line in lines
    )
    hunks = ("@@" if line.startswith("@@") else line for line in files)
    return "\n".join(["*** Begin Patch", *hunks, "*** End Patch"])


def calls_of(tool_format: str, patch: str) -> list[ToolCall]:
    """Returns the calls that repair a task and submit, of tools that the format can call."""
    if tool_format == "apply_patch":
        return [ToolCall("apply_patch", {"patch": envelope_of(patch)})]
    encoded = base64.b64encode(patch.encode()).decode()
    command = f"echo {encoded} | base64 -d | git apply -"
    if tool_format == "bash_block":
        return [ToolCall("bash", {"command": command}), ToolCall("bash", {"command": DONE})]
    return [ToolCall("shell", {"cmd": command}), ToolCall("submit")]


@pytest.mark.parametrize("tool_format", TOOL_FORMATS)
def test_a_policy_in_this_format_resolves_three_tasks(tool_format: str) -> None:
    toolset = {"apply_patch": "codex", "bash_block": "bash"}.get(tool_format, "nano")
    max_turns = 1 if tool_format == "apply_patch" else 2  # the format carries no submit
    env = CodingRepairEnv(toolset=toolset, tool_format=tool_format, max_turns=max_turns)
    for task in TASKS:
        env.reset(seed=0, options={"task_id": task.task_id})
        for call in calls_of(tool_format, task.gold_patch):
            text = render_calls([call], tool_format, env.toolset.schemas)
            _, reward, terminated, truncated, info = env.step(text)
        assert (reward, terminated or truncated) == (1.0, True), (task.task_id, info["text"])
    env.close()
