from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from grading_fixtures import made_task

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.grade import Grade, GradeReason
from coding_gym.rollout import RunFolder
from coding_gym.task import Task
from coding_gym.tools.schemas import function
from coding_gym.trajectory import ModelCall, StopReason, Trajectory, Turn

BASE = {"shapes.py": "def area(a, b):\n    return a + b\n\n\ndef edge(a):\n    return 4 * a\n"}
FIXED = {"shapes.py": BASE["shapes.py"].replace("a + b", "a * b")}
HIDDEN = {
    "test_hidden.py": "from shapes import area\n\n\ndef test_area(): assert area(2, 3) == 6\n"
}

Attempts = Mapping[str, str]
"""A letter for each attempt at a task, by its id: ``R`` resolved, ``f`` failed, ``e`` error."""


@pytest.fixture
def tasks() -> list[Task]:
    return [made_task(f"task-{n:02}", BASE, FIXED, HIDDEN) for n in range(12)]


def turn(*commands: str, end: str = "tool_calls") -> Turn:
    calls = tuple(ToolCall("shell", {"cmd": command}) for command in commands)
    results = tuple(ToolResult("", ok="missing" not in command) for command in commands)
    call = ModelCall(prompt_tokens=100, completion_tokens=10, duration_s=0.5, finish_reason=end)
    return Turn(action="", calls=calls, results=results, model_call=call)


def attempt(task: Task, number: int, letter: str) -> Trajectory:
    """Returns an attempt of two turns; a failed attempt changes the right line wrongly."""
    is_resolved = letter == "R"
    patch = task.gold_patch if is_resolved else task.gold_patch.replace("a * b", "a - b")
    reason = GradeReason.RESOLVED if is_resolved else GradeReason.TESTS_FAILED
    grade = Grade(resolved=is_resolved, reason=reason, levels={"value": 2, "end": 1}, duration_s=2)
    return Trajectory(
        task_id=task.task_id,
        attempt=number,
        seed=number,
        turns=(
            turn("ls", "cat shapes.py missing.py"),
            turn("cat shapes.py | grep area", end="length"),
        ),
        tools=(function("shell", "Runs a command.", cmd="The command."),),
        stop_reason=StopReason.SUBMITTED if is_resolved else StopReason.MAX_TURNS,
        patch="" if letter == "e" else patch,
        grade=None if letter == "e" else grade,
        usage={"model_calls": 2, "prompt_tokens": 200, "completion_tokens": 20},
        cost=0.25,
        error="no reply" if letter == "e" else "",
        error_class="model" if letter == "e" else "",
        duration_s=10.0,
    )


@pytest.fixture
def make_run(tmp_path: Path, tasks: list[Task]) -> Callable[..., RunFolder]:
    """Writes a run into a folder of the given name."""
    by_id = {task.task_id: task for task in tasks}

    def make(name: str, attempts: Attempts, **changes: Any) -> RunFolder:
        settings: dict[str, Any] = {
            "run_id": name,
            "created_at": "2026-01-02T03:04:05Z",
            "agent": {"name": "chat", "model": f"model-{name}", "sampling": {"temperature": 0.7}},
            "tasks": {"source": "nowhere.jsonl", "task_ids": [*attempts], "digest": "d1"},
            "attempts": max(map(len, attempts.values())),
            "seed": 7,
            "episode": {"toolset": "nano", "limits": {"max_tokens": 16384, "max_tool_calls": 100}},
            "versions": {"coding-gym": "0.1.0"},
        }
        folder = RunFolder.create(tmp_path / name, settings | changes)
        with folder.writer() as writer:
            for task_id, letters in attempts.items():
                for number, letter in enumerate(letters):
                    writer.add(attempt(by_id[task_id], number, letter))
        return folder

    return make
