"""Run folders without a run: many made-up episodes, or one that attacks what displays it.

    python -m checks.synthetic_runs OUT --tasks 1000 --attempts 10
    python -m checks.synthetic_runs OUT --hostile

Tests and benchmarks of the viewer use them; the same arguments make the same folder.
"""

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.rollout.run_folder import ERRORS, INDEX, Row, RunFolder
from coding_gym.trajectory import Message, ModelCall, StopReason, Trajectory, Turn

_REPOS = ("alder/parser", "birch/ledger", "cedar/cache", "dogwood/router")
_DIFFICULTIES = ("easy", "medium", "hard")
_SHARD_BYTES = 256 << 20
_BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_GOLD = (
    "diff --git a/area.py b/area.py\n--- a/area.py\n+++ b/area.py\n@@ -1,2 +1,2 @@\n"
    " def area(width, height):\n-    return width + height\n+    return width * height\n"
)
_SOURCE = "def area(width, height):\n    return width + height\n"
_PYTEST = (
    "\x1b[1m=== test session starts ===\x1b[0m\n\x1b[32m.\x1b[0m\x1b[31mF\x1b[0m\n"
    "\x1b[31m>       assert area(3, 5) == 15\x1b[0m\nE       assert 8 == 15\n"
    "\x1b[31m=== \x1b[1m1 failed\x1b[0m, \x1b[32m1 passed\x1b[0m ===\x1b[0m\n"
)


def make_run(
    path: str | Path,
    num_tasks: int = 100,
    attempts: int = 1,
    *,
    skill: float = 0.4,
    seed: int = 0,
) -> Path:
    """Makes a run of a chat model, and beside it a file with the rows of its tasks.

    Args:
        path: The folder.
        num_tasks: Tasks with attempts.
        attempts: Attempts at each task.
        skill: Chance that an attempt resolves a task of medium difficulty.
        seed: Seeds all that varies.
    """
    path = Path(path)
    ids = [_task_id(number) for number in range(num_tasks)]
    rows = path.with_name(f"{num_tasks}-tasks.jsonl")
    rows.parent.mkdir(parents=True, exist_ok=True)
    with rows.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(_task_row(number)) + "\n" for number in range(len(ids)))
    model = f"example/coder-{round(100 * skill)}b"
    folder = RunFolder.create(path, _config(path.name, model, str(rows), ids, attempts))
    rng = random.Random(seed)
    shapes = {
        (resolved, turns): _episode(rng, resolved=resolved, num_turns=turns)
        for resolved, turns in product((False, True), range(2, 9))
    }

    def episodes() -> Iterator[Trajectory]:
        for clock, (number, attempt) in enumerate(product(range(num_tasks), range(attempts))):
            chance = skill + 0.2 * (1 - number % len(_DIFFICULTIES))
            is_error = rng.random() < 0.02
            shape = shapes[rng.random() < chance and not is_error, rng.randint(2, 8)]
            prompt_tokens = rng.randint(2_000, 40_000)
            changes: dict[str, Any] = {
                "task_id": ids[number],
                "attempt": attempt,
                "model": model,
                "run_id": path.name,
                "started_at": (_BEGAN + timedelta(seconds=clock)).isoformat(),
                "usage": {"turns": len(shape.turns), "prompt_tokens": prompt_tokens},
                "cost": round(prompt_tokens * 2e-6, 6),
                "duration_s": round(rng.uniform(5, 120), 3),
            }
            if is_error:
                changes |= {"grade": None, "patch": "", "stop_reason": None}
                changes |= {"error": "HTTP 503: overloaded", "error_class": "model"}
            yield replace(shape, **changes)

    _write(folder, episodes())
    return path


def make_hostile_run(
    path: str | Path, *, output_chars: int = 50 << 20, num_lines: int = 1_000_000
) -> Path:
    """Makes a run whose every text attacks what displays it.

    Its one task has two attempts: the first is full of markup, control sequences and characters
    that turn the direction of writing; the second has outputs of ``output_chars`` characters in one
    line, of ``num_lines`` lines, and of a tenth as many coloured words.
    """
    path = Path(path)
    name = "task<script>alert(1)</script>"
    folder = RunFolder.create(path, _config(ATTACKS[0], ATTACKS[1], ATTACKS[2], [name], 2))
    attack = "\n".join(ATTACKS)
    turns = tuple(map(_hostile_turn, ATTACKS))
    grade = Grade(
        resolved=False,
        reason=GradeReason.TESTS_FAILED,
        fail_to_pass=dict.fromkeys(ATTACKS, TestStatus.FAILED),
        detail=attack,
        dropped_paths=ATTACKS,
    )
    messages: tuple[Message, ...] = tuple(
        {"role": role, "content": attack} for role in ("system", "user")
    )
    patch = f"diff --git a/{ATTACKS[0]} b/x\n--- a/{ATTACKS[0]}\n+++ b/x\n@@ -1 +1 @@\n" + "".join(
        f"+{line}\n" for line in attack.splitlines()
    )
    first = Trajectory(
        task_id=name,
        agent=ATTACKS[0],
        model=ATTACKS[1],
        toolset=ATTACKS[2],
        messages=messages,
        turns=turns,
        stop_reason=StopReason.SUBMITTED,
        patch=patch,
        grade=grade,
        error=attack,
    )
    words = "\x1b[31mred\x1b[0m " * (num_lines // 10)
    outputs = ("y" * output_chars, "a line\n" * num_lines, words)
    second = replace(first, attempt=1, turns=tuple(map(_large_turn, outputs)))
    _write(folder, iter((first, second)))
    return path


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
"""Texts that a viewer must show without obeying them."""


def _task_id(number: int) -> str:
    return f"{_REPOS[number % len(_REPOS)].replace('/', '__')}-{number:06}"


def _task_row(number: int) -> dict[str, Any]:
    return {
        "instance_id": _task_id(number),
        "problem_statement": "area(3, 5) gives 8",
        "files": {"area.py": _SOURCE},
        "patch": _GOLD,
        "test_patch": "",
        "FAIL_TO_PASS": ["test_area.py::test_wide"],
        "PASS_TO_PASS": ["test_area.py::test_square"],
        "repo": _REPOS[number % len(_REPOS)],
        "difficulty": _DIFFICULTIES[number % len(_DIFFICULTIES)],
    }


def _config(name: str, model: str, source: str, ids: list[str], attempts: int) -> dict[str, Any]:
    return {
        "run_id": name,
        "created_at": _BEGAN.isoformat(),
        "agent": {"name": "chat", "model": model},
        "tasks": {"source": source, "task_ids": ids},
        "attempts": attempts,
        "seed": 0,
        "episode": {"toolset": "nano", "max_turns": 50},
        "settings_hash": "synthetic",
        "versions": {},
    }


def _episode(rng: random.Random, *, resolved: bool, num_turns: int) -> Trajectory:
    turns = [
        _turn(number, rng.choice(("grep -rn area .", "cat area.py", "python -m pytest -q")), rng)
        for number in range(num_turns)
    ]
    turns[-1] = replace(
        turns[-1],
        action="The product is right now; I submit.",
        calls=(ToolCall("submit", {}, "last"),),
        results=(ToolResult("submitted", call_id="last", submitted=True),),
        observation="",
        reward=float(resolved),
    )
    status = TestStatus.PASSED if resolved else TestStatus.FAILED
    return Trajectory(
        task_id="",
        agent="chat",
        seed=0,
        messages=(
            {"role": "system", "content": "You repair bugs with the tools that you have."},
            {"role": "user", "content": "area(3, 5) gives 8\n\nI expected 15."},
            *({"role": "assistant", "content": turn.action} for turn in turns),
        ),
        turns=tuple(turns),
        stop_reason=StopReason.SUBMITTED if resolved or num_turns < 8 else StopReason.MAX_TURNS,
        patch=_GOLD if resolved else _GOLD.replace("width * height", "height + width"),
        grade=Grade(
            resolved=resolved,
            reason=GradeReason.RESOLVED if resolved else GradeReason.TESTS_FAILED,
            fail_to_pass={"test_area.py::test_wide": status},
            pass_to_pass={"test_area.py::test_square": TestStatus.PASSED},
            levels={"value": 1},
            is_verified=resolved,
            is_calibrated=True,
            detail="" if resolved else "test_area.py::test_wide failed",
            duration_s=1.5,
        ),
        toolset="nano",
        settings={"limits": {"max_turns": 50, "max_tokens": 100_000}},
    )


def _turn(number: int, command: str, rng: random.Random) -> Turn:
    output = {"grep -rn area .": "area.py:1:def area(width, height):", "cat area.py": _SOURCE}.get(
        command, _PYTEST
    )
    return Turn(
        action=f"Step {number}: I look at the code with `{command}`.",
        calls=(ToolCall("shell", {"cmd": command}, f"call_{number}"),),
        results=(ToolResult(output, call_id=f"call_{number}", duration_s=0.1),),
        observation=output,
        duration_s=round(rng.uniform(0.1, 3.0), 3),
        model_call=ModelCall(
            prompt_tokens=800 + 400 * number,
            completion_tokens=rng.randint(20, 400),
            finish_reason="tool_calls",
            duration_s=round(rng.uniform(0.5, 4.0), 3),
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


def _large_turn(text: str) -> Turn:
    return Turn(
        action="cat log",
        calls=(ToolCall("shell", {"cmd": "cat log"}, "a"),),
        results=(ToolResult(text, call_id="a"),),
    )


def _write(folder: RunFolder, episodes: Iterator[Trajectory]) -> None:
    """Writes the files as `RunFolder.add` does, but opens them only once."""
    with (folder.path / INDEX).open("wb") as index, (folder.path / ERRORS).open("wb") as errors:
        shards = 0
        shard = (folder.path / "trajectories-0000.jsonl").open("wb")
        for episode in episodes:
            file = errors if episode.error_class else shard
            line = json.dumps(episode.to_json()).encode() + b"\n"
            row = Row.of(episode, Path(file.name).name, file.tell(), len(line))
            file.write(line)
            index.write(json.dumps(row.to_json()).encode() + b"\n")
            if shard.tell() >= _SHARD_BYTES:
                shard.close()
                shards += 1
                shard = (folder.path / f"trajectories-{shards:04}.jsonl").open("wb")
        shard.close()


def main() -> None:
    """Makes a folder as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--attempts", type=int, default=1)
    parser.add_argument("--skill", type=float, default=0.4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hostile", action="store_true")
    options = parser.parse_args()
    if options.hostile:
        make_hostile_run(options.out)
    else:
        make_run(
            options.out, options.tasks, options.attempts, skill=options.skill, seed=options.seed
        )


if __name__ == "__main__":
    main()
