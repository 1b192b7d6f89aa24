import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from episodes import run_command
from runs import episode, task_row, write_run

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.evaluation import Report, compare, leaderboard, report
from coding_gym.evaluation.comparison import setting_differences
from coding_gym.evaluation.metrics import episode_metrics
from coding_gym.grade import Grade, GradeReason
from coding_gym.run_folder import RunFolder
from coding_gym.task import Task
from coding_gym.tasks.task_row import read_task
from coding_gym.trajectory import Turn

MakeRun = Callable[..., RunFolder]
TASK_IDS = [f"task-{number:02}" for number in range(12)]


@pytest.fixture
def tasks() -> list[Task]:
    return [read_task(task_row(task_id)) for task_id in TASK_IDS]


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """A function that writes a run from letters, one per attempt, by task; see `episode`."""

    def make(name: str, attempts: Mapping[str, str], **settings: Any) -> RunFolder:
        pairs = [(task_id, *pair) for task_id in attempts for pair in enumerate(attempts[task_id])]
        return write_run(tmp_path / name, [episode(*pair) for pair in pairs], **settings)

    return make


def every(letters: str) -> dict[str, str]:
    return dict.fromkeys(TASK_IDS, letters)


def test_measures_of_an_episode(tasks: list[Task]) -> None:
    good, bad = (episode("task-00", letter=letter) for letter in "Rf")
    measures = episode_metrics(good, tasks[0])
    expected = {
        "resolved": 1, "exact_match": 1, "right_location": 1, "code_similarity": 1,
        "test_similarity": 0, "turns": 3,
        "tool_calls": 2, "model_calls": 3, "tokens": 5000, "prompt_tokens": 600,
        "cost": 0.25, "duration_s": 10, "time_to_solution_s": 8,
        "tool_calls_shell": 2, "tool_success_rate_shell": 1 / 2,
        "shell_cmd_cat": 1, "shell_cmd_python": 1, "shell_cmd_git": 0,
    }  # fmt: skip
    assert {name: measures[name] for name in expected} == expected
    failed = episode_metrics(bad, tasks[0])
    assert (failed["exact_match"], failed["right_location"]) == (0, 1)
    assert 0.9 < failed["code_similarity"] < 1
    assert "time_to_solution_s" not in failed
    other_file = replace(bad, patch=bad.patch.replace("shapes.py", "other.py"))
    assert episode_metrics(other_file, tasks[0])["right_location"] == 0
    assert "code_similarity" not in episode_metrics(bad)


def test_errors_are_excluded_from_rates(make_run: MakeRun, tasks: list[Task]) -> None:
    attempts = every("RRff") | {"task-01": "eeee", "task-02": "Re"}
    result = report(make_run("a", attempts, player={"agent": "chat"}), tasks)
    assert result.resolved is not None
    assert result.resolved.value == pytest.approx((10 * 0.5 + 1) / 11)
    assert (result.num_attempts, result.num_resolved, result.num_errors) == (41, 21, 5)
    assert result.error_classes == {"model": 5}
    assert result.stop_reasons == {"submitted": 21, "max_turns": 20}
    assert result.grade_reasons == {"resolved": 21, "tests_failed": 20}
    assert [*result.pass_at_k] == ["2", "4"]
    assert result.pass_at_k["4"].num_tasks == 10
    for page in (result.summary(), result.to_markdown()):
        assert "k = 1, 2, 4;" in page
        assert "--attempts" in page
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
                    resolved=True, reason=GradeReason.RESOLVED, levels={"structure": 3, "known": 1}
                )
            },
            0,
        ),
        ({"grade": Grade(resolved=False, reason=GradeReason.NOT_GRADED)}, 1),
    ],
)
def test_suspicious_attempts_add_caveats(
    changes: dict[str, Any], num_new: int, make_run: MakeRun, tasks: list[Task], tmp_path: Path
) -> None:
    record = episode("task-00")
    other = write_run(tmp_path / "b", [replace(record, **changes)])
    usual = set(report(make_run("a", {"task-00": "R"}), tasks).caveats)
    new = {*report(other, tasks).caveats} - usual
    assert len(new) == num_new
    assert not any("1 attempts" in caveat or "1 tasks" in caveat for caveat in new)


def test_report_survives_json(make_run: MakeRun, tasks: list[Task]) -> None:
    result = report(make_run("a", every("Rf")), tasks)
    assert Report.from_json(json.loads(json.dumps(result.to_json()))) == result
    page = result.to_markdown()
    settings = ("versions.coding-gym | 0.1.0", "agent.sampling.temperature | 0.7", "seed | 0")
    for text in (*settings, "agent.model | model-a", "turns | 3"):
        assert f"| {text} |" in page
    assert "50.0 %" in result.summary()


def test_run_without_tasks_or_verdicts_has_a_report(make_run: MakeRun) -> None:
    result = report(make_run("a", {"task-00": "e"}).path)
    assert result.resolved is None
    assert "nowhere.jsonl" in result.caveats[0]
    assert "| - |" in result.to_markdown()


def test_changed_task_is_not_compared(tmp_path: Path, tasks: list[Task]) -> None:
    changed = replace(episode("task-00", attempt=1), settings={"task_digest": "another"})
    result = report(write_run(tmp_path / "run", [episode("task-00"), changed]), tasks)
    assert [*result.values("code_similarity").values()] == [[1.0]]
    assert "1 task that changed" in " ".join(result.caveats)


def test_commands_print_the_tables_and_write_the_report(make_run: MakeRun) -> None:
    a, b = (make_run(name, every(letter)).path for name, letter in (("a", "f"), ("b", "R")))
    page = run_command("report", a)
    assert page == (a / "report.md").read_text()
    assert json.loads((a / "report.json").read_text())["num_attempts"] == 12
    ranked = run_command("report", a, b, "--leaderboard")
    assert 0 < ranked.find("| 1 | b |") < ranked.find("| 2 | a |")
    assert "| task-00 | 0 | 1 |" in run_command("compare", a, b)
    assert run_command("export", a).split() == [str(a / "swebench" / "predictions-0.jsonl")]


def test_comparison_warns_of_settings_and_lists_flips(make_run: MakeRun, tasks: list[Task]) -> None:
    same = every("R")
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
    folders = [make_run(name, every(letter)) for name, letter in runs.items()]
    rows = leaderboard([report(run, tasks) for run in folders]).splitlines()[2:5]
    assert [row.split(" | ")[3] for row in rows] == ["model-strong", "model-weak", "model-broken"]
    assert "| 1 | 0 | 5,000 / 16,384 | 2 / 100 |" in rows[0]
    assert rows[0].split(" | ")[-1].startswith("cat 1, python 1")


def test_rates_have_intervals_within_their_bounds(make_run: MakeRun, tasks: list[Task]) -> None:
    run = make_run("a", dict.fromkeys(TASK_IDS[:4], "R"))
    clean = Turn(action="", calls=(ToolCall("shell", {"cmd": "ls"}),), results=(ToolResult(""),))
    with run.writer() as writer:
        for record in [*run.trajectories()][1:]:  # rates of 2/3, 1, 1 and 1
            writer.add(replace(record, turns=(clean,)))
    measured = report(run, tasks).metrics["tool_success_rate_shell"]
    assert measured.high is not None
    assert 0 <= measured.low <= measured.value <= measured.high <= 1
