import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.evaluation import Report, compare, leaderboard, report
from coding_gym.evaluation.metrics import episode_metrics
from coding_gym.rollout import RunFolder
from coding_gym.task import Task
from coding_gym.trajectory import Turn

MakeRun = Callable[..., RunFolder]


def every(tasks: list[Task], letters: str) -> dict[str, str]:
    return {task.task_id: letters for task in tasks}


def test_measures_of_an_episode(make_run: MakeRun, tasks: list[Task]) -> None:
    good, bad = make_run("a", {"task-00": "Rf"}).trajectories()
    found = episode_metrics(good, tasks[0])
    expected = {
        "resolved": 1, "exact_match": 1, "right_location": 1, "code_similarity": 1,
        "test_similarity": 0, "file_match": 1, "function_match": 1, "tool_call_validity": 1,
        "files_examined": 1, "commands_run": 3, "exploration_efficiency": 1 / 3, "turns": 2,
        "tool_calls": 3, "model_calls": 2, "prompt_tokens": 200, "cost": 0.25, "duration_s": 10,
        "time_to_solution_s": 8, "tool_calls_shell": 3, "tool_success_rate_shell": 2 / 3,
        "shell_cmd_cat": 2, "shell_cmd_grep": 1, "shell_cmd_ls": 1, "shell_cmd_git": 0,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected
    failed = episode_metrics(bad, tasks[0])
    assert (failed["exact_match"], failed["right_location"]) == (0, 1)
    assert 0.9 < failed["code_similarity"] < 1
    assert "time_to_solution_s" not in failed
    elsewhere = replace(bad, patch=bad.patch.replace("shapes.py", "other.py"))
    assert episode_metrics(elsewhere, tasks[0])["right_location"] == 0
    assert "code_similarity" not in episode_metrics(bad)


def test_errors_are_beside_the_score(make_run: MakeRun, tasks: list[Task]) -> None:
    attempts = every(tasks, "RRff") | {"task-01": "eeee", "task-02": "Re"}
    found = report(make_run("a", attempts), tasks)
    assert found.overall.resolved is not None
    assert found.overall.resolved.value == pytest.approx((10 * 0.5 + 1) / 11)
    assert (found.overall.num_attempts, found.overall.num_errors) == (41, 5)
    assert found.error_classes == {"model": 5}
    assert found.stop_reasons == {"submitted": 21, "max_turns": 20}
    assert found.grade_reasons == {"resolved": 21, "tests_failed": 20}
    assert [*found.pass_at_k] == ["1", "2", "4"]
    assert found.pass_at_k["4"].num_tasks == 10
    assert {name: g.num_tasks for name, g in found.by_difficulty.items()} == {"easy": 4, "hard": 7}
    assert {name: g.num_tasks for name, g in found.by_repo.items()} == {"one": 7, "two": 4}
    assert found.by_task["task-01"].resolved is None
    said = "\n".join(found.caveats)
    assert "5 of 46 attempts ended by an error (model 5)" in said
    assert "not complete: 46 of 48 attempts" in said
    assert "Tasks without an attempt that counts: task-01." in said
    assert "Tasks have 1 to 4 attempts that count; pass@k and pass^k leave out tasks" in said


def test_a_chat_without_any_tool_call_is_a_caveat(make_run: MakeRun, tasks: list[Task]) -> None:
    run = make_run("a", {"task-00": "f"})
    (silent,) = (
        replace(one, turns=(replace(one.turns[0], results=()),)) for one in run.trajectories()
    )
    other = make_run("b", {"task-00": ""})
    with other.writer() as writer:
        writer.add(silent)
    assert "No reply had a tool call" in report(other, tasks).summary()
    assert "No reply had a tool call" not in report(run, tasks).summary()
    other.config["episode"]["tool_format"] = "hermes"
    assert "--tool-format" not in report(other, tasks).summary()


def test_a_report_reads_back_and_prints_settings(make_run: MakeRun, tasks: list[Task]) -> None:
    found = report(make_run("a", every(tasks, "Rf")), tasks)
    assert Report.from_json(json.loads(json.dumps(found.to_json()))) == found
    page = found.to_markdown()
    for text in ("cafe", "coding-gym 0.1.0", "| seed | 7 |", "temperature 0.7", "model-a"):
        assert text in page
    assert "| resolved (pass@1) | 50.0 % |" in page
    assert "| pass@2 | 100.0 % |" in page


def test_a_report_says_how_resolved_attempts_were_challenged(
    make_run: MakeRun, tasks: list[Task]
) -> None:
    run = make_run("a", every(tasks, "R"))
    first = next(run.trajectories())
    assert first.grade is not None
    with run.writer() as writer:
        for number, is_calibrated in enumerate((False, True), 1):
            known = {"is_verified": True, "is_calibrated": is_calibrated}
            grade = replace(first.grade, levels={"structure": 3}, **known)
            writer.add(replace(first, attempt=number, grade=grade))
    found = report(run, tasks)
    assert found.levels == {"value": 22, "end": 11, "structure": 3}
    assert "| value | 22 |" in found.to_markdown()
    said = "\n".join(found.caveats)
    assert "12 resolved attempts were graded by an older version" in said
    assert "1 resolved attempts are of tasks with no test that can be negated" in said
    assert "1 resolved attempts were challenged without a gold patch" in said


def test_a_run_without_its_tasks_or_without_verdicts_has_a_report(make_run: MakeRun) -> None:
    found = report(make_run("a", {"task-00": "e"}).path)
    assert found.overall.resolved is None
    assert "could not be loaded" in found.caveats[0]
    assert "| resolved (pass@1) | - |" in found.to_markdown()


def test_a_task_that_changed_since_is_not_compared(make_run: MakeRun, tasks: list[Task]) -> None:
    run = make_run("a", {"task-00": "R"})
    (record,) = run.trajectories()
    with run.writer() as writer:
        writer.add(replace(record, attempt=1, settings={"task_digest": "another"}))
    found = report(run, tasks)
    assert [*found.values("code_similarity").values()] == [[1.0]]
    assert "1 tasks changed since the run, such as task-00" in "\n".join(found.caveats)


def test_a_comparison_warns_of_settings_and_lists_flips(
    make_run: MakeRun, tasks: list[Task]
) -> None:
    same = every(tasks, "R")
    a = report(make_run("a", same | {"task-00": "f", "task-02": "f"}), tasks)
    b = report(make_run("b", same | {"task-01": "f"}), tasks)
    found = compare(a, b)
    assert found.resolved.difference.value == pytest.approx(1 / 12)
    assert [*found.resolved.flips] == ["task-01", "task-00", "task-02"]
    assert not any("differs" in warning for warning in found.warnings)  # but for the model
    other = make_run("c", same, seed=8, episode={"toolset": "bash"})
    warnings = compare(a, report(other, tasks)).warnings
    assert "seed differs: 7 in the first run, 8 in the second." in warnings
    assert "episode.toolset differs: nano in the first run, bash in the second." in warnings
    assert sum("intervals are rough" in warning for warning in warnings) == 1
    page = found.to_markdown()
    assert "| change, second - first | 8.3 % |" in page
    assert "| task-01 | 1 | 0 |" in page


def test_a_leaderboard_ranks_by_resolved_then_similarity(
    make_run: MakeRun, tasks: list[Task], tmp_path: Path
) -> None:
    runs = {"weak": "f", "strong": "R", "broken": "e"}
    folders = [make_run(name, every(tasks, letter)) for name, letter in runs.items()]
    rows = leaderboard([report(run, tasks) for run in folders]).splitlines()[2:5]
    assert [row.split(" | ")[3] for row in rows] == ["model-strong", "model-weak", "model-broken"]
    assert "| 1.000 ± 0.000 | 0.000 ± 0.000 | 220 / 16,384 | 3 / 100 | 12 | 12 | 0 |" in rows[0]
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
