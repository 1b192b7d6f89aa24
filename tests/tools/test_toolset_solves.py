"""A scripted policy on each toolset repairs a task, by the toolset's own ways to look and edit."""

import json
from typing import Any

import gymnasium as gym
import pytest

from coding_gym.calls import ToolCall
from coding_gym.tools import toolset_names

OLD, NEW = "    return width + height", "    return width * height"
SUBMIT = ToolCall("submit")


def bash(command: str) -> ToolCall:
    return ToolCall("bash", {"command": command})


def editor(command: str, path: str, **arguments: Any) -> ToolCall:
    return ToolCall("str_replace_editor", {"command": command, "path": path, **arguments})


def policies(gold_patch: str) -> dict[str, list[ToolCall]]:
    """The calls of a policy by the toolset that it plays with."""
    file = {"path": "shapes.py"}
    return {
        "bash": [
            bash("ls"),
            bash(f"cat <<'END' | git apply\n{gold_patch}END\ngit diff --stat"),
            bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),
        ],
        "codex": [
            ToolCall("inspect_tree"),
            ToolCall("read_file", file),
            ToolCall("apply_patch", {"patch": gold_patch}),
            ToolCall("run_command", {"command": "python -m py_compile shapes.py"}),
            ToolCall("submit", {"status": "solved"}),
        ],
        "editor": [
            editor("view", "."),
            editor("view", "shapes.py", view_range=[1, 2]),
            editor("str_replace", "shapes.py", old_str=OLD, new_str=NEW),
            SUBMIT,
        ],
        "heavy": [
            ToolCall("repo_map", {"paths": ["shapes.py"], "max_tokens": 300}),
            ToolCall("note", {"text": "The fault may be in shapes.py."}),
            ToolCall("edit", file | {"old": OLD, "new": NEW}),
            SUBMIT,
        ],
        "nano": [
            ToolCall("apply_patch", {"search": OLD, "replace": NEW, "file": "shapes.py"}),
            SUBMIT,
        ],
        "pdb": [
            ToolCall("view", file | {"start": 1, "end": 2}),
            ToolCall("pdb", {"command": "start -m py_compile shapes.py\nc"}),
            ToolCall("rewrite", file | {"start": 2, "end": 2, "new_code": NEW}),
            ToolCall("eval", {"command": "python -m py_compile shapes.py"}),
            SUBMIT,
        ],
        "thesis": [
            ToolCall("view_file", file),
            ToolCall("str_replace", file | {"old_str": OLD, "new_str": NEW}),
            SUBMIT,
        ],
    }


@pytest.mark.parametrize("toolset", toolset_names())
def test_a_scripted_policy_on_each_toolset_solves_a_task(
    tiny_row: dict[str, Any], toolset: str
) -> None:
    with gym.make("coding_gym:CodingRepair-v0", toolset=toolset, tasks=[tiny_row]) as env:
        env.reset()
        for call in policies(tiny_row["patch"])[toolset]:
            action = json.dumps({"name": call.name, "arguments": dict(call.arguments)})
            _, reward, terminated, truncated, info = env.step(action)
        assert (terminated, truncated, reward) == (True, False, 1.0), info["text"]
        assert info["resolved"] is True
