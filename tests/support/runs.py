"""Writes run folders with invented episodes, and with episodes that attack the viewer."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from episodes import TINY_ROW
from sandbox_fixtures import write_rows

from coding_gym.calls import ModelCall, ToolCall, ToolResult
from coding_gym.grade import Grade, GradeReason
from coding_gym.run_folder import RunFolder
from coding_gym.tools.schemas import function
from coding_gym.trajectory import StopReason, Trajectory, Turn

TASK = "birch__ledger-000001"
HOSTILE_TASK = "task<script>alert(1)</script>"
GOLD = TINY_ROW["patch"]
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
_TOOLS = (
    function("shell", "Runs a command.", {"cmd": "The command."}),
    function("submit", "Ends the episode.", {}),
)


def write_run(path: Path, episodes: Iterable[Trajectory], **settings: Any) -> RunFolder:
    """Writes episodes as a run and returns the run; ``settings`` replace defaults."""
    episodes = list(episodes)
    task_ids = list(dict.fromkeys(episode.task_id for episode in episodes))
    config = {
        "run_id": path.name,
        "created_at": "2026-01-02T03:04:05+00:00",
        "agent": {"name": "chat", "model": f"model-{path.name}", "sampling": {"temperature": 0.7}},
        "tasks": {"source": "nowhere.jsonl", "task_ids": task_ids},
        "attempts": max((episode.attempt for episode in episodes), default=0) + 1,
        "seed": 0,
        "episode": {"limits": {"max_tokens": 16384, "max_tool_calls": 100}},
        "versions": {"coding-gym": "0.1.0"},
    }
    folder = RunFolder.create(path, config | settings)
    for episode in episodes:
        folder.add(episode)
    return folder


def task_row(task_id: str) -> dict[str, Any]:
    """Returns the row of an invented task; the task id begins with the repository."""
    repo = task_id.rpartition("-")[0].replace("__", "/")
    return TINY_ROW | {"instance_id": task_id, "repo": repo, "difficulty": "easy"}


def episode(task_id: str, attempt: int = 0, letter: str = "R", num_turns: int = 3) -> Trajectory:
    """Returns an attempt of a chat model.

    Args:
        task_id: The id of the task.
        attempt: The number of the attempt.
        letter: ``R``: resolved; ``f``: failed by a wrong change of the right line; ``e``: an error.
        num_turns: Number of turns; the last turn has no call.
    """
    resolved = letter == "R"
    end = Turn(action="I submit." if resolved else "I stop.", reward=float(resolved))
    turns = (*map(_turn, range(num_turns - 1)), end)
    record = Trajectory(
        task_id=task_id,
        attempt=attempt,
        messages=(
            {"role": "user", "content": TINY_ROW["problem_statement"]},
            *({"role": "assistant", "content": turn.action} for turn in turns),
        ),
        tools=_TOOLS,
        turns=turns,
        stop_reason=StopReason.SUBMITTED if resolved else StopReason.MAX_TURNS,
        patch=GOLD if resolved else GOLD.replace("width * height", "width - height"),
        grade=Grade(
            resolved=resolved,
            reason=GradeReason.RESOLVED if resolved else GradeReason.TESTS_FAILED,
            fail_to_pass={"test_hidden.py::test_tall": "passed" if resolved else "failed"},
            levels={"value": 2, "known": 1},
            duration_s=2.0,
        ),
        usage={
            "model_calls": num_turns,
            "tokens": 5000,
            "prompt_tokens": 200 * num_turns,
            "completion_tokens": 20,
        },
        cost=0.25,
        duration_s=10.0,
    )
    if letter != "e":
        return record
    return replace(record, grade=None, patch="", error="HTTP 503", error_class="model")


def _turn(index: int) -> Turn:
    command, output = (
        ("python -m pytest -q", _PYTEST) if index % 2 else ("cat shapes.py", "def area")
    )
    return Turn(
        action=f"Step {index}: I look at the code with `{command}`.",
        calls=(ToolCall("shell", {"cmd": command}, "a"),),
        results=(ToolResult(output, ok=index % 2 == 0, call_id="a"),),
        observation=output,
        duration_s=1.5,
        model_call=ModelCall(
            prompt_tokens=800 + 400 * index,
            completion_tokens=10,
            finish_reason="length" if index else "stop",
            duration_s=0.5,
        ),
    )


def make_run(path: Path, num_tasks: int = 6, attempts: int = 2, *, skill: int = 2) -> Path:
    """Writes a run of a chat model and, next to it, a file with the task rows; returns the run.

    Of five consecutive attempts, ``skill`` are resolved; each 17th attempt ends with an error.
    """
    repos = [_REPOS[number % len(_REPOS)] for number in range(num_tasks)]
    ids = [f"{repo.replace('/', '__')}-{number:06}" for number, repo in enumerate(repos)]
    rows = write_rows(path.with_name(f"{path.name}-tasks.jsonl"), *map(task_row, ids))
    episodes = []
    for number, key in enumerate(product(ids, range(attempts))):
        letter = "e" if number % 17 == 16 else "R" if number % 5 < skill else "f"
        started_at = f"2026-01-02T03:{number // 60:02}:{number % 60:02}+00:00"
        record = episode(*key, letter, num_turns=2 + number % 7)
        episodes.append(replace(record, started_at=started_at))
    return write_run(path, episodes, tasks={"source": str(rows), "task_ids": ids}).path


def make_hostile_run(path: Path, num_chars: int = 1_000_000) -> Path:
    """Writes a run whose texts attack the viewer, and returns its path.

    The run has two attempts at one task: the first contains markup, control sequences and
    characters that change the direction of writing; the second has outputs of ``num_chars``
    characters in one line, in many lines and in many colours.
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
    settings = {
        "run_id": ATTACKS[0],
        "agent": {"name": "chat", "model": ATTACKS[1]},
        "tasks": {"source": ATTACKS[2], "task_ids": [HOSTILE_TASK]},
    }
    return write_run(path, (first, replace(first, attempt=1, turns=turns)), **settings).path


def _hostile_turn(text: str) -> Turn:
    return Turn(
        action=text,
        calls=(ToolCall(text[:200], {text[:50]: text}, "a"), ToolCall("shell", {}, "b", text)),
        results=(ToolResult(text, call_id="a"), ToolResult(text[:1000], ok=False, call_id="b")),
        observation=text,
        reward_parts={text[:50]: 1.0},
    )


def native_episode() -> Trajectory:
    """Returns a resolved attempt with native calls; one call of the first turn is unreadable."""

    def call_entry(call_id: str, name: str, arguments: str) -> dict[str, Any]:
        function = {"name": name, "arguments": arguments}
        return {"id": call_id, "type": "function", "function": function}

    counts = ModelCall(
        prompt_tokens=3, completion_tokens=2, cached_tokens=1, finish_reason="tool_calls"
    )
    look = Turn(
        action="look",
        calls=(ToolCall("shell", {"cmd": "ls"}, "a"), ToolCall("shell", {}, "b", "no JSON")),
        results=(ToolResult("shapes.py", call_id="a"), ToolResult("no JSON", False, "b")),
        model_call=counts,
    )
    submit = Turn(
        action="done",
        calls=(ToolCall("submit", {}, "a"),),
        results=(ToolResult("submitted", call_id="a", submitted=True),),
        reward=1.0,
        model_call=ModelCall(prompt_tokens=6),
    )
    calls = [call_entry("a", "shell", '{"cmd": "ls"}'), call_entry("b", "shell", "{cmd")]
    reply = {"role": "assistant", "content": "Look.", "reasoning_content": "Hm."}
    return Trajectory(
        task_id=TASK,
        usage={"model_calls": 2, "prompt_tokens": 9},
        agent="chat",
        model="owner/model",
        messages=(
            {"role": "system", "content": "Repair it."},
            {"role": "user", "content": "It adds. \ud800"},
            {**reply, "tool_calls": calls},
            {"role": "tool", "tool_call_id": "a", "content": "shapes.py"},
            {"role": "tool", "tool_call_id": "b", "content": "no JSON"},
            {"role": "assistant", "content": "", "tool_calls": [call_entry("a", "submit", "{}")]},
            {"role": "tool", "tool_call_id": "a", "content": "submitted"},
        ),
        tools=_TOOLS,
        turns=(look, submit),
        stop_reason=StopReason.SUBMITTED,
        patch=GOLD,
        grade=Grade(
            resolved=True,
            reason=GradeReason.RESOLVED,
            fail_to_pass={"test_hidden.py::test": "passed"},
            levels={"value": 2, "structure": 1},
            is_verified=True,
            plan="0123456789abcdef",
        ),
        started_at="2026-01-02T03:04:05+00:00",
        cost=0.5,
    )


def make_exported_run(path: Path) -> Path:
    """Writes two attempts at each of four tasks: one resolved, two failed, one with an error."""
    attempts = (
        native_episode(),
        replace(episode("empty", letter="f"), patch=""),
        replace(episode("wrong", letter="f"), patch="diff \udcff"),
        Trajectory(task_id="lost", error="x", error_class="model"),
    )
    episodes = (replace(record, attempt=number) for number in range(2) for record in attempts)
    return write_run(path, episodes, agent={"name": "chat", "model": "owner/model"}).path
