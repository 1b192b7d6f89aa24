import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from grading_fixtures import made_task
from made_runs import run_config

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.evaluation import Report, compare, leaderboard, report
from coding_gym.evaluation.comparison import setting_differences
from coding_gym.evaluation.metrics import episode_metrics
from coding_gym.grade import Grade, GradeReason
from coding_gym.rollout import RunFolder
from coding_gym.task import Task
from coding_gym.tools.schemas import function
from coding_gym.trajectory import ModelCall, StopReason, Trajectory, Turn

MakeRun = Callable[..., RunFolder]
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
        config = run_config(
            agent={"name": "chat", "model": f"model-{name}", "sampling": {"temperature": 0.7}},
            tasks={"source": "nowhere.jsonl", "task_ids": [*attempts]},
            attempts=max(map(len, attempts.values())),
            episode={"limits": {"max_tokens": 16384, "max_tool_calls": 100}},
        )
        folder = RunFolder.create(tmp_path / name, config | changes)
        with folder.writer() as writer:
            for task_id, letters in attempts.items():
                for number, letter in enumerate(letters):
                    writer.add(attempt(by_id[task_id], number, letter))
        return folder

    return make


def every(tasks: list[Task], letters: str) -> dict[str, str]:
    return {task.task_id: letters for task in tasks}


def test_measures_of_an_episode(make_run: MakeRun, tasks: list[Task]) -> None:
    good, bad = make_run("a", {"task-00": "Rf"}).trajectories()
    measures = episode_metrics(good, tasks[0])
    expected = {
        "resolved": 1, "exact_match": 1, "right_location": 1, "code_similarity": 1,
        "test_similarity": 0, "turns": 2,
        "tool_calls": 3, "model_calls": 2, "prompt_tokens": 200, "cost": 0.25, "duration_s": 10,
        "reply_tokens_per_s": 20, "cut_replies": 0.5, "time_to_solution_s": 8,
        "tool_calls_shell": 3, "tool_success_rate_shell": 2 / 3,
        "shell_cmd_cat": 2, "shell_cmd_grep": 1, "shell_cmd_ls": 1, "shell_cmd_git": 0,
    }  # fmt: skip
    assert {name: measures[name] for name in expected} == expected
    failed = episode_metrics(bad, tasks[0])
    assert (failed["exact_match"], failed["right_location"]) == (0, 1)
    assert 0.9 < failed["code_similarity"] < 1
    assert "time_to_solution_s" not in failed
    elsewhere = replace(bad, patch=bad.patch.replace("shapes.py", "other.py"))
    assert episode_metrics(elsewhere, tasks[0])["right_location"] == 0
    assert "code_similarity" not in episode_metrics(bad)


def test_errors_are_excluded_from_rates(make_run: MakeRun, tasks: list[Task]) -> None:
    attempts = every(tasks, "RRff") | {"task-01": "eeee", "task-02": "Re"}
    result = report(make_run("a", attempts), tasks)
    assert result.resolved is not None
    assert result.resolved.value == pytest.approx((10 * 0.5 + 1) / 11)
    assert (result.num_attempts, result.num_resolved, result.num_errors) == (41, 21, 5)
    assert result.error_classes == {"model": 5}
    assert result.stop_reasons == {"submitted": 21, "max_turns": 20}
    assert result.grade_reasons == {"resolved": 21, "tests_failed": 20}
    assert [*result.pass_at_k] == ["1", "2", "4"]
    assert result.pass_at_k["4"].num_tasks == 10
    caveats = " ".join(result.caveats)
    assert "5 of 46" in caveats
    assert "46 of 48" in caveats


@pytest.mark.parametrize(
    ("changes", "num_new"),
    [
        ({"grade": Grade(resolved=True, reason=GradeReason.RESOLVED, levels={"structure": 3})}, 1),
        (
            {
                "grade": Grade(
                    resolved=True, reason=GradeReason.RESOLVED, levels={"structure": 3, "end": 1}
                )
            },
            0,
        ),
        ({"grade": Grade(resolved=False, reason=GradeReason.NOT_GRADED)}, 1),
        ({"settings": {"task_digest": "another"}}, 1),
    ],
)
def test_suspicious_attempts_add_caveats(
    changes: dict[str, Any], num_new: int, make_run: MakeRun, tasks: list[Task]
) -> None:
    run, other = make_run("a", {"task-00": "R"}), make_run("b", {"task-00": ""})
    (record,) = run.trajectories()
    with other.writer() as writer:
        writer.add(replace(record, **changes))
    known = set(report(run, tasks).caveats)
    new = {*report(other, tasks).caveats} - known
    assert len(new) == num_new
    assert not any("1 attempts" in caveat or "1 tasks" in caveat for caveat in new)


def test_report_survives_json(make_run: MakeRun, tasks: list[Task]) -> None:
    result = report(make_run("a", every(tasks, "Rf")), tasks)
    assert Report.from_json(json.loads(json.dumps(result.to_json()))) == result
    page = result.to_markdown()
    for text in ("coding-gym 0.1.0", "| seed | 0 |", "temperature 0.7", "model-a"):
        assert text in page
    for row in ("| reply_tokens_per_s | 20 |", "| cut_replies | 0.5 |"):
        assert row in page
    assert "50.0 %" in result.summary()


def test_run_without_tasks_or_verdicts_has_a_report(make_run: MakeRun) -> None:
    result = report(make_run("a", {"task-00": "e"}).path)
    assert result.resolved is None
    assert "nowhere.jsonl" in result.caveats[0]
    assert "| - |" in result.to_markdown()


def test_changed_task_is_not_compared(make_run: MakeRun, tasks: list[Task]) -> None:
    run = make_run("a", {"task-00": "R"})
    (record,) = run.trajectories()
    with run.writer() as writer:
        writer.add(replace(record, attempt=1, settings={"task_digest": "another"}))
    result = report(run, tasks)
    assert [*result.values("code_similarity").values()] == [[1.0]]


def test_comparison_warns_of_settings_and_lists_flips(make_run: MakeRun, tasks: list[Task]) -> None:
    same = every(tasks, "R")
    a = report(make_run("a", same | {"task-00": "f", "task-02": "f"}), tasks)
    b = report(make_run("b", same | {"task-01": "f"}), tasks)
    comparison = compare(a, b)
    assert comparison.paired.difference.value == pytest.approx(1 / 12)
    assert [*comparison.paired.flips] == ["task-01", "task-00", "task-02"]
    assert setting_differences(a.config, b.config) == []  # the model is excluded
    other = make_run("c", same, seed=8, episode=a.config["episode"] | {"toolset": "bash"})
    toolset, seed = setting_differences(a.config, other.config)
    assert toolset.startswith("episode.toolset ")
    assert seed.startswith("seed ")
    assert {toolset, seed} <= {*compare(a, report(other, tasks)).warnings}
    page = comparison.to_markdown()
    assert "8.3 %" in page
    assert "| task-01 | 1 | 0 |" in page


def test_a_leaderboard_ranks_by_resolved_then_similarity(
    make_run: MakeRun, tasks: list[Task]
) -> None:
    runs = {"weak": "f", "strong": "R", "broken": "e"}
    folders = [make_run(name, every(tasks, letter)) for name, letter in runs.items()]
    rows = leaderboard([report(run, tasks) for run in folders]).splitlines()[2:5]
    assert [row.split(" | ")[3] for row in rows] == ["model-strong", "model-weak", "model-broken"]
    assert "| 1 | 0 | 220 / 16,384 | 3 / 100 |" in rows[0]
    assert rows[0].split(" | ")[-1].startswith("cat 2, grep 1, ls 1")


def test_rates_have_intervals_within_their_bounds(make_run: MakeRun, tasks: list[Task]) -> None:
    run = make_run("a", every(tasks[:4], "R"))
    clean = Turn(action="", calls=(ToolCall("shell", {"cmd": "ls"}),), results=(ToolResult(""),))
    with run.writer() as writer:
        for record in [*run.trajectories()][1:]:  # rates of 2/3, 1, 1 and 1
            writer.add(replace(record, turns=(clean,)))
    measured = report(run, tasks).metrics["tool_success_rate_shell"]
    assert measured.high is not None
    assert 0 <= measured.low <= measured.value <= measured.high <= 1
