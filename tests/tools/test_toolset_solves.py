"""A scripted policy on each toolset solves a bundled task."""

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import pytest

from coding_gym import Task, load_tasks
from coding_gym.calls import ToolCall
from coding_gym.patch import FileChange, Patch
from coding_gym.tools import toolset_names

TASKS = itertools.cycle(["waypoint-two-words", "braid-empty-side", "stockroom-heavy-flour"])


def edits(change: FileChange) -> list[tuple[str, str]]:
    """What a file's hunks replace, and by what: (old text, new text)."""
    pairs = []
    for hunk in change.text.split("\n@@ ")[1:]:
        lines = hunk.removesuffix("\n").split("\n")[1:]
        old, new = ([line[1:] for line in lines if line[:1] in (" ", s)] for s in "-+")
        pairs.append(("\n".join(old), "\n".join(new)))
    return pairs


def replacements(task: Task) -> Iterator[tuple[str, str, str]]:
    """The gold patch as (path, old text, new text)."""
    for change in Patch(task.gold_patch).files:
        for old, new in edits(change):
            yield change.path, old, new


def by_bash(task: Task) -> list[ToolCall]:
    patch = f"cat <<'END' | git apply\n{task.gold_patch}END\ngit diff --stat"
    submit = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
    return [ToolCall("bash", {"command": c}) for c in ("ls", patch, submit)]


def by_codex(task: Task) -> list[ToolCall]:
    path = Patch(task.gold_patch).files[0].path
    return [
        ToolCall("inspect_tree"),
        ToolCall("read_file", {"path": path}),
        ToolCall("apply_patch", {"patch": task.gold_patch}),
        ToolCall("run_command", {"command": f"python -m py_compile {path}"}),
        ToolCall("submit", {"status": "solved"}),
    ]


def by_editor(task: Task) -> list[ToolCall]:
    def edit(command: str, **arguments: Any) -> ToolCall:
        return ToolCall("str_replace_editor", {"command": command, **arguments})

    changes = list(replacements(task))
    return [
        edit("view", path="."),
        edit("view", path=changes[0][0], view_range=[1, 5]),
        *(edit("str_replace", path=p, old_str=old, new_str=new) for p, old, new in changes),
        ToolCall("bash", {"command": "git diff --stat"}),
        ToolCall("submit"),
    ]


def by_heavy(task: Task) -> list[ToolCall]:
    changes = list(replacements(task))
    return [
        ToolCall("repo_map", {"paths": [changes[0][0]], "max_tokens": 300}),
        ToolCall("note", {"text": f"The fault may be in {changes[0][0]}."}),
        *(ToolCall("edit", {"path": p, "old": old, "new": new}) for p, old, new in changes),
        ToolCall("bash", {"command": "git diff --stat"}),
        ToolCall("submit"),
    ]


def by_nano(task: Task) -> list[ToolCall]:
    return [
        ToolCall("shell", {"cmd": "ls"}),
        *(
            ToolCall("apply_patch", {"search": old, "replace": new, "file": path})
            for path, old, new in replacements(task)
        ),
        ToolCall("submit"),
    ]


def by_pdb(task: Task) -> list[ToolCall]:
    change = Patch(task.gold_patch).files[0]
    [(old, new)] = edits(change)  # one hunk: lines of the file are then those of the patch
    first = int(change.text.split("@@ -")[1].split(",")[0])
    last = first + old.count("\n")
    return [
        ToolCall("view", {"path": change.path, "start": first, "end": last}),
        ToolCall("pdb", {"command": f"start -m py_compile {change.path}\nc"}),
        ToolCall("rewrite", {"path": change.path, "start": first, "end": last, "new_code": new}),
        ToolCall("eval", {"command": f"python -m py_compile {change.path}"}),
        ToolCall("submit"),
    ]


def by_thesis(task: Task) -> list[ToolCall]:
    changes = list(replacements(task))
    return [
        ToolCall("view_file", {"path": changes[0][0]}),
        *(
            ToolCall("str_replace", {"path": path, "old_str": old, "new_str": new})
            for path, old, new in changes
        ),
        ToolCall("bash", {"command": "git diff --stat"}),
        ToolCall("submit"),
    ]


POLICIES: dict[str, Callable[[Task], list[ToolCall]]] = {
    "bash": by_bash,
    "codex": by_codex,
    "editor": by_editor,
    "heavy": by_heavy,
    "nano": by_nano,
    "pdb": by_pdb,
    "thesis": by_thesis,
}


def test_every_toolset_has_its_policy() -> None:
    assert POLICIES.keys() == set(toolset_names())


@pytest.mark.parametrize(("toolset", "task_id"), list(zip(POLICIES, TASKS, strict=False)))
def test_a_scripted_policy_on_each_toolset_solves_a_task(toolset: str, task_id: str) -> None:
    (task,) = load_tasks("bundled", task_ids=task_id)
    with gym.make("coding_gym:CodingRepair-v0", toolset=toolset, task_ids=[task_id]) as env:
        env.reset()
        for call in POLICIES[toolset](task):
            action = json.dumps({"name": call.name, "arguments": dict(call.arguments)})
            _, reward, terminated, truncated, info = env.step(action)
        assert (terminated, truncated, reward) == (True, False, 1.0), info["text"]
        assert info["resolved"] is True
