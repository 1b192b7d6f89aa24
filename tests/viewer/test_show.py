"""``coding-gym show`` prints an episode."""

import math
from pathlib import Path

import pytest
from runs import HOSTILE_TASK, TASK, make_hostile_run, make_run, write_run

from coding_gym.cli.view import show
from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.trajectory import Trajectory, Turn


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "first")
    make_hostile_run(folder / "hostile")
    return folder


def test_episode_is_printed_with_chat_patch_and_grade(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show(runs / "first", TASK, 1)
    text = capsys.readouterr().out
    assert text.startswith(f"{TASK} attempt 1: ")
    parts = ("I expected 15.", "── turn 0 · ", "Step 0: I look", "── turn 1 · ", "── patch ──")
    parts += ("+    return", "── grade")
    assert [text.find(part) for part in parts] == sorted(text.find(part) for part in parts)
    assert "✘ test_hidden.py::test_tall" in text
    assert "\x1b" not in text  # the output is not a terminal


def test_no_control_character_reaches_a_terminal(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show(runs / "hostile")  # the only task, the first attempt
    text = capsys.readouterr().out
    assert text.splitlines()[0].startswith(f"{HOSTILE_TASK} attempt 0")
    assert [c for c in set(text) if not (c.isprintable() or c in "\n\t")] == []


def test_failed_tests_come_first_and_undecided_ones_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = ("tests/test_a.py", "tests/test_b.py")
    grade = Grade(
        resolved=False,
        reason=GradeReason.TESTS_FAILED,
        fail_to_pass={"t.py::a": TestStatus.PASSED, "t.py::b": TestStatus.FAILED},
        pass_to_pass=dict.fromkeys(("t.py::c", "t.py::d"), TestStatus.UNDECIDED),
        detail=f"no changes; not graded: changes of {paths[0]} and 1 more",
        dropped_paths=paths,
    )
    record = Trajectory(task_id=TASK, turns=(Turn(action="stop", reward=0.25),), grade=grade)
    write_run(tmp_path / "run", [record])
    show(tmp_path / "run")
    text = capsys.readouterr().out
    marks = ("✘ t.py::b", "✔ t.py::a", "2 tests of pass_to_pass")
    assert 0 < text.find(marks[0]) < text.find(marks[1]) < text.find(marks[2])
    assert "t.py::c" not in text
    assert "── turn 0 · 0 s · reward 0.25 ──\nstop\n" in text
    assert [text.count(path) for path in paths] == [1, 1]


def test_a_crashed_harness_is_named_as_the_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grade = Grade(resolved=False, reason=GradeReason.EMPTY_PATCH)
    write_run(tmp_path / "run", [Trajectory(task_id=TASK, error="exit code 1", grade=grade)])
    show(tmp_path / "run")
    assert "── error · harness ──\nexit code 1\n" in capsys.readouterr().out


def test_episode_with_an_undefined_duration_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "run", [Trajectory(task_id=TASK, duration_s=math.nan)])
    show(tmp_path / "run")
    assert "nan s" in capsys.readouterr().out


def test_unknown_episodes_are_refused(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=TASK):
        show(runs / "first", TASK.replace("-000", "-00"))
    for arguments in (("nosuch",), (TASK, 7)):
        with pytest.raises(UnknownNameError):
            show(runs / "first", *arguments)
    with pytest.raises(InvalidArgumentError, match="name a task: coding-gym show"):
        show(runs / "first")
    with pytest.raises(InvalidArgumentError):
        show(tmp_path, TASK)
