"""`coding-gym tasks new`: what it makes is valid, and what goes wrong afterwards is said."""

from pathlib import Path
from unittest import mock

import pytest
from episodes import raising, run_command

from coding_gym.errors import InvalidArgumentError, UnknownTaskError
from coding_gym.tasks import load_tasks
from coding_gym.tasks.new_folder import write_new_task

pytestmark = pytest.mark.slow

FILES = ["gold.patch", "hidden/tests/test_discounts.py", "task.toml"]
FILES += ["tree/receipt.py", "tree/tests/test_receipt.py"]


def test_new_task_is_valid_and_gets_a_plan(tmp_path: Path) -> None:
    write_new_task(tmp_path / "My task!")
    with pytest.raises(UnknownTaskError, match="coding-gym tasks plan"):
        load_tasks(tmp_path, min_challenge=1)
    planned = run_command("tasks", "plan", tmp_path)
    assert planned.split() == ["my-task", "value", "2", "·", "bits", "3"]
    (task,) = load_tasks(tmp_path, min_challenge=3)
    asked = ("validate", tmp_path, "--repeats", "1", "--min-challenge", "3")
    with mock.patch("coding_gym.grading.grader.calibrate", raising(AssertionError("a new plan"))):
        said = run_command(*asked)
    assert "  value 2\n" in said
    assert "challenged at: value 2\n" in said
    assert said.endswith("\nvalid 1/1\n")
    weak = task.grading_plan.replace('"is_bit":true', '"is_bit":false', 1)
    plan = tmp_path / "My task!" / "plan.json"
    for text, code in ((weak, 1), ("[]", 0), (weak.replace('["', '["other', 1), 0)):
        plan.write_text(text)
        assert run_command(*asked, code=code).splitlines()[-1] == f"valid {1 - code}/1"


def test_command_names_its_files_and_the_next_command(tmp_path: Path) -> None:
    folder = tmp_path / "first"
    folder.mkdir()  # an empty one is filled
    said = run_command("tasks", "new", folder)
    written = [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]
    assert sorted(written) == FILES
    assert all(f"first/{name}" in said for name in FILES)
    assert f"coding-gym validate {folder}" in said


def test_new_task_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    run_command("tasks", "new", tmp_path, code=2)
    for folder in (tmp_path, tmp_path / "notes", tmp_path / "…", tmp_path / "notes" / "task"):
        with pytest.raises(InvalidArgumentError):
            write_new_task(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]
