"""Hostile projects: no file of the host is read, and every error is clear."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from synthesis_project import write_project

from coding_gym.errors import InvalidTaskError
from coding_gym.grading.report import Run
from coding_gym.synthesis import Project
from coding_gym.synthesis.coverage_report import measure_coverage
from coding_gym.synthesis.suite import Suite, SuiteRun

TEST = "test_a.py::test_a"
OBSERVED: dict[str, Any] = {
    "tests": [[TEST, "test_a.py", 1]],
    "failures": {},
    "random": [],
    "lines": {"a.py": {"1": "1"}},
    "imported": {"a.py": [1]},
    "spawning": [TEST],
}


def test_only_files_of_the_project_are_read(tmp_path: Path) -> None:
    project = Project(name="shop", folder=write_project(tmp_path / "shop"))
    secret = tmp_path / "secret.py"
    secret.write_text("KEY = 1\n")
    (project.folder / "link.py").symlink_to(secret)
    (project.folder / "linked").symlink_to(tmp_path)
    forged = ["../secret.py", str(secret), "link.py", "linked/secret.py", "shop/../../secret.py"]
    missing = ["shop/generated.py", "", "\0"]
    assert list(project.contents([*forged, *missing, "shop/till.py"])) == ["shop/till.py"]


@pytest.mark.parametrize(
    "change",
    [
        {"tests": 5},
        {"tests": [["a", "b", "1"]]},
        {"lines": {"a.py": {"one": "1"}}},
        {"lines": {"a.py": {"1": "-1"}}},
        {"spawning": [0]},
        {"failures": {"x": {"kind": "x"}}},
    ],
)
def test_a_run_with_a_malformed_observation_is_dropped(change: dict[str, Any]) -> None:
    whole = Run.from_records([["observed", OBSERVED], ["end", 0]])
    assert SuiteRun.of(whole) is not None
    assert SuiteRun.of(replace(whole, observed=OBSERVED | change)) is None
    assert SuiteRun.of(replace(whole, observed=None)) is None


def test_tests_without_an_end_run_once() -> None:
    suite = mock.Mock(spec=Suite)
    suite.run.return_value = None
    with pytest.raises(InvalidTaskError, match="time limit"):
        measure_coverage(suite, ())
    suite.run.assert_called_once()
