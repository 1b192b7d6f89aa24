"""Hostile projects: no file of the host is read, and every error is clear."""

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
FAILURE: dict[str, Any] = {
    "kind": "ValueError",
    "message": "no",
    "frames": [["test_a.py", 2, "test_a"]],
    "uses": [["shop.py", "total"]],
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


def run(observed: Any = OBSERVED, status: str = "failed") -> SuiteRun | None:
    """Returns the run that its report becomes."""
    phases = [["test", TEST, when, "passed", False, ""] for when in ("setup", "teardown")]
    phases.insert(1, ["test", TEST, "call", status, False, ""])
    records = [*phases, ["observed", observed], ["end", 0]]
    return SuiteRun.of(Run.from_records(records, cpu_s=0.1))


def test_an_honest_run_is_read() -> None:
    failed = run(OBSERVED | {"failures": {TEST: FAILURE}})
    assert failed is not None
    assert failed.cpu_s == 0.1
    assert failed.failed == (TEST,)
    assert failed.observation.failures[TEST].frames == [("test_a.py", 2, "test_a")]
    passed = run(status="passed")
    assert passed is not None
    assert passed.outcomes == {TEST: "passed"}


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
    assert run(OBSERVED | change) is None
    assert run(None) is None


def test_tests_without_an_end_run_once() -> None:
    suite = mock.Mock(spec=Suite)
    suite.run.return_value = None
    with pytest.raises(InvalidTaskError, match="time limit"):
        measure_coverage(suite, ())
    suite.run.assert_called_once()
