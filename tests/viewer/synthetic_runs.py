"""Run folders without a run: invented episodes, and episodes that attack the viewer."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.grade import Grade, GradeReason
from coding_gym.rollout import RunFolder
from coding_gym.trajectory import ModelCall, StopReason, Trajectory, Turn

TASK = "birch__ledger-000001"
HOSTILE_TASK = "task<script>alert(1)</script>"
GOLD = (
    "diff --git a/area.py b/area.py\n--- a/area.py\n+++ b/area.py\n@@ -1,2 +1,2 @@\n"
    " def area(width, height):\n-    return width + height\n+    return width * height\n"
)
ATTACKS = (
    "<script>window.attacked = 1</script>",
    "<img src=x onerror='window.attacked = 2'><svg onload='window.attacked = 3'>",
    "[link](javascript:window.attacked=4) <a href='javascript:window.attacked=5'>link</a>",
    "</script></pre></textarea><iframe srcdoc='<script>parent.attacked = 6</script>'></iframe>",
    "<style>body { display: none }</style><base href='https://attacker.example/'>",
    "<meta http-equiv=refresh content='0; url=https://attacker.example/'><form action=x><input>",
    "\x1b]0;title\x07\x1b]52;c;YXR0YWNr\x07\x1b[2J\x1b[1;1H\x1b]8;;https://attacker.example\x07x",
    "\x1b[31;1mred\x1b[0m \x1b[38;5;208morange\x1b[0m \x1b[48;2;1;2;3mblue\x1b[0m \x9b31m\x90q\x9c",
    "admin\u202e\u2066// only\u2069\u2066 txt.exe \u200b\u200f\ufeff\u2028\u2029\x00\x07\x08\r\x7f",
    "../../../../etc/passwd\x00 file:///etc/passwd {{7*7}} ${7*7} %s %n \ud800 \U000e0041",
)
_REPOS = ("alder/parser", "birch/ledger", "cedar/cache", "dogwood/router")
_PYTEST = "\x1b[31m>       assert area(3, 5) == 15\x1b[0m\n\x1b[31m1 failed\x1b[0m, 1 passed\n"


def make_run(path: Path, num_tasks: int = 6, attempts: int = 2, *, skill: int = 2) -> Path:
    """Makes a run of a chat model, and next to it a file with the rows of its tasks.

    Of five attempts in a row, ``skill`` resolve their task; each 17th attempt ends with an error.
    """
    repos = [_REPOS[number % len(_REPOS)] for number in range(num_tasks)]
    ids = [f"{repo.replace('/', '__')}-{number:06}" for number, repo in enumerate(repos)]
    rows = path.with_name(f"{path.name}-tasks.jsonl")
    rows.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(_row(*pair)) + "\n" for pair in zip(ids, repos, strict=True))
    rows.write_text("".join(lines), encoding="utf-8")
    keys = enumerate(product(ids, range(attempts)))
    episodes = (_episode(*key, number, skill) for number, key in keys)
    return write_run(path, config(path.name, f"example/coder-{skill}", str(rows), ids), episodes)


def make_hostile_run(path: Path, num_chars: int = 1_000_000) -> Path:
    """Makes a run whose texts attack the viewer.

    Its one task has two attempts: the first is full of markup, control sequences and characters
    that change the direction of writing; the second has outputs of ``num_chars`` characters in one
    line, in many lines and in many colours.
    """
    attack = "\n".join(ATTACKS)
    first = Trajectory(
        task_id=HOSTILE_TASK,
        agent=ATTACKS[0],
        model=ATTACKS[1],
        toolset=ATTACKS[2],
        messages=({"role": "system", "content": attack}, {"role": "user", "content": attack}),
        turns=tuple(map(_hostile_turn, ATTACKS)),
        patch=f"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n+{attack}\n",
        grade=Grade(
            resolved=False,
            reason=GradeReason.TESTS_FAILED,
            fail_to_pass=dict.fromkeys(ATTACKS, "failed"),
            detail=attack,
            dropped_paths=ATTACKS,
        ),
        error=attack,
    )
    outputs = ("y" * num_chars, "line\n" * (num_chars // 5), "\x1b[31mred\x1b[0m " * 10_000)
    turns = tuple(
        Turn(action="", calls=(ToolCall("shell", {}, "a"),), results=(ToolResult(output),))
        for output in outputs
    )
    settings = config(ATTACKS[0], ATTACKS[1], ATTACKS[2], [HOSTILE_TASK])
    return write_run(path, settings, (first, replace(first, attempt=1, turns=turns)))


def write_run(path: Path, settings: Mapping[str, Any], episodes: Iterable[Trajectory]) -> Path:
    folder = RunFolder.create(path, settings)
    for episode in episodes:
        folder.add(episode)
    return path


def add(path: Path, episode: Trajectory) -> None:
    """Writes one more attempt of a run."""
    RunFolder.open(path).add(episode)


def config(name: str, model: str, source: str, ids: list[str], attempts: int = 2) -> dict[str, Any]:
    return {
        "run_id": name,
        "created_at": "2026-01-02T03:04:05+00:00",
        "agent": {"name": "chat", "model": model},
        "tasks": {"source": source, "task_ids": ids},
        "attempts": attempts,
        "seed": 0,
        "episode": {"toolset": "nano", "max_turns": 50},
        "versions": {},
    }


def _row(task: str, repo: str) -> dict[str, Any]:
    return {
        "instance_id": task,
        "problem_statement": "area(3, 5) gives 8",
        "files": {"area.py": "def area(width, height):\n    return width + height\n"},
        "patch": GOLD,
        "test_patch": "",
        "FAIL_TO_PASS": ["test_area.py::test_wide"],
        "repo": repo,
        "difficulty": "easy",
    }


def _episode(task: str, attempt: int, number: int, skill: int) -> Trajectory:
    resolved, num_turns = number % 5 < skill, 2 + number % 7
    end = Turn(action="I submit." if resolved else "I stop.", reward=float(resolved))
    turns = (*map(_turn, range(num_turns - 1)), end)
    episode = Trajectory(
        task_id=task,
        attempt=attempt,
        messages=(
            {"role": "user", "content": "area(3, 5) gives 8\n\nI expected 15."},
            *({"role": "assistant", "content": turn.action} for turn in turns),
        ),
        turns=turns,
        stop_reason=StopReason.SUBMITTED if resolved else StopReason.MAX_TURNS,
        patch=GOLD if resolved else GOLD.replace("width * height", "height + width"),
        grade=Grade(
            resolved=resolved,
            reason=GradeReason.RESOLVED if resolved else GradeReason.TESTS_FAILED,
            fail_to_pass={"test_area.py::test_wide": "passed" if resolved else "failed"},
        ),
        usage={"prompt_tokens": 1000 * (number % 40 + 2)},
        cost=0.002 * (number % 40 + 2),
        started_at=f"2026-01-02T03:{number // 60:02}:{number % 60:02}+00:00",
        duration_s=5.0,
    )
    if number % 17 < 16:
        return episode
    return replace(episode, grade=None, patch="", error="HTTP 503", error_class="model")


def _turn(place: int) -> Turn:
    command, output = ("python -m pytest -q", _PYTEST) if place % 2 else ("cat area.py", "def area")
    return Turn(
        action=f"Step {place}: I look at the code with `{command}`.",
        calls=(ToolCall("shell", {"cmd": command}, "a"),),
        results=(ToolResult(output, call_id="a"),),
        observation=output,
        duration_s=1.5,
        model_call=ModelCall(
            prompt_tokens=800 + 400 * place,
            completion_tokens=48,
            finish_reason="length" if place else "stop",
            duration_s=4.9,
        ),
    )


def _hostile_turn(text: str) -> Turn:
    return Turn(
        action=text,
        calls=(ToolCall(text[:200], {text[:50]: text}, "a"), ToolCall("shell", {}, "b", text)),
        results=(ToolResult(text, call_id="a"), ToolResult(text[:1000], ok=False, call_id="b")),
        observation=text,
        reward_parts={text[:50]: 1.0},
    )
