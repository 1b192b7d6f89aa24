"""``coding-gym show``: an episode in a terminal."""

import re
from pathlib import Path

import pytest
from synthetic_runs import HOSTILE_TASK, TASK, config, make_hostile_run, make_run, write_run

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.cli.view import show
from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.trajectory import Trajectory, Turn
from coding_gym.viewer.terminal import coloured


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "first")
    make_hostile_run(folder / "hostile")
    return folder


def test_episode_is_printed_with_turns_patch_and_grade(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show(runs / "first", TASK, 1)
    text = capsys.readouterr().out
    assert TASK in text.splitlines()[0]
    parts = ("attempt 1", "I expected 15.", "turn 0", "▸ shell", "patch", "+    return", "grade")
    assert [text.find(part) for part in parts] == sorted(text.find(part) for part in parts)
    assert "test_area.py::test_wide" in text
    assert "\x1b" not in text  # no terminal
    first, second = (
        line for line in text.splitlines() if line.startswith(("── turn 0", "── turn 1"))
    )
    assert "reply 48 tokens in 4.9 s (9.8/s)" in first
    assert "(9.8/s), stopped by length" in second
    assert "stopped" not in first


def test_unknown_outcome_of_a_call_is_not_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call, result = ToolCall("shell", {"cmd": "ls"}), ToolResult("area.py", ok=None)
    record = Trajectory(task_id=TASK, turns=(Turn(action="", calls=(call,), results=(result,)),))
    write_run(tmp_path / "run", config("run", "model", "rows", [TASK]), [record])
    show(tmp_path / "run")
    text = capsys.readouterr().out
    assert "▸ shell" in text
    assert "✘ shell" not in text


def test_only_colours_of_programs_reach_a_terminal(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("PAGER", "cat")
    monkeypatch.setenv("TERM", "xterm-256color")
    show(runs / "hostile", HOSTILE_TASK, 0)
    text = capsys.readouterr().out
    assert re.search(r"\x1b\[[0-9;]*31[0-9;]*m", text)
    left = set(re.sub(r"\x1b\[[0-9;]*m", "", text))
    assert [c for c in left if not (c.isprintable() or c == "\n")] == []


def test_hiding_sequences_lose_their_effect() -> None:
    hiding = "\x1b[2Ja\x1b[30;40mb\x1b[38;2;0;0;0;48;2;0;0;0mc\x1b[8md\x1b[" + "9" * 5000 + "me"
    assert (coloured(hiding).plain, coloured(hiding).spans) == ("abcde", [])
    link = coloured("\x1b]8;;https://attacker.example\x07x\x1b]8;;\x07")
    assert "https://attacker.example" in link.plain
    assert not link.spans
    assert coloured("\x1b[01;31mred\x1b[39;49;00m").spans
    assert coloured("hidden\rshown").plain == "hidden\nshown"


def test_long_texts_are_truncated_and_arguments_optional(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show(runs / "hostile")  # its only task, the first attempt
    assert "attempt 0" in capsys.readouterr().out
    show(runs / "hostile", HOSTILE_TASK, 1)
    text = capsys.readouterr().out
    assert "980,000" in text
    assert len(text) < 100_000


def test_each_path_that_is_not_graded_is_printed_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = ("tests/test_a.py", "tests/test_b.py")
    detail = f"no changes; not graded: changes of {paths[0]} and 1 more"
    grade = Grade(
        resolved=False, reason=GradeReason.EMPTY_PATCH, detail=detail, dropped_paths=paths
    )
    record = Trajectory(task_id=TASK, turns=(), grade=grade)
    write_run(tmp_path / "run", config("run", "model", "rows", [TASK]), [record])
    show(tmp_path / "run")
    text = capsys.readouterr().out
    assert [text.count(path) for path in paths] == [1, 1]


def test_failed_tests_come_first_and_undecided_ones_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    statuses = {"t.py::a": TestStatus.PASSED, "t.py::b": TestStatus.FAILED}
    grade = Grade(
        resolved=False,
        reason=GradeReason.TESTS_FAILED,
        fail_to_pass=statuses,
        pass_to_pass=dict.fromkeys(("t.py::c", "t.py::d"), TestStatus.UNDECIDED),
    )
    record = Trajectory(task_id=TASK, turns=(), grade=grade)
    write_run(tmp_path / "run", config("run", "model", "rows", [TASK]), [record])
    show(tmp_path / "run")
    text = capsys.readouterr().out
    assert (
        0 < text.find("✘ t.py::b") < text.find("✔ t.py::a") < text.find("2 tests of pass_to_pass")
    )
    assert "t.py::c" not in text


def test_unknown_episodes_are_refused(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=TASK):
        show(runs / "first", TASK.replace("-000", "-00"))
    for arguments in (("nosuch",), (TASK, 7)):
        with pytest.raises(UnknownNameError):
            show(runs / "first", *arguments)
    with pytest.raises(InvalidArgumentError, match="name one: coding-gym show"):
        show(runs / "first")
    with pytest.raises(InvalidArgumentError):
        show(tmp_path, TASK)
