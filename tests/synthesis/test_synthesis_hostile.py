"""Hostile projects: no file of the host is read, and every error is clear."""

from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from synthesis_project import write_project

from coding_gym.grading.report import Run
from coding_gym.grading.supervision import ForkedRun
from coding_gym.synthesis import Project
from coding_gym.synthesis.suite import ReplyError, SuiteRun, SuiteSandbox

TEST = "test_a.py::test_a"
OBSERVED: dict[str, Any] = {
    "tests": [[TEST, "test_a.py", 1]],
    "failures": {},
    "random": [],
    "lines": {"a.py": {"1": "1"}},
    "imported": {"a.py": [1]},
    "spawning": [TEST],
    "modules": [],
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


def run(*records: list[Any], observed: Any = OBSERVED, status: str = "failed") -> SuiteRun:
    """Returns the run that its report becomes."""
    phases = [["test", TEST, when, "passed", False, ""] for when in ("setup", "teardown")]
    phases.insert(1, ["test", TEST, "call", status, False, ""])
    all_records = [*phases, ["observed", observed], ["end", 0], *records]
    (forked,) = Run.from_records([["run", all_records, 0.1]], ["run"]).runs
    assert forked is not None
    return SuiteRun.of(forked)


def test_an_honest_run_is_read() -> None:
    failed = run(observed=OBSERVED | {"failures": {TEST: FAILURE}})
    assert failed.cpu_s == 0.1
    assert failed.failed == (TEST,)
    assert failed.observation.failures[TEST].frames == [("test_a.py", 2, "test_a")]
    assert run(status="passed").outcomes == {TEST: "passed"}


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"tests": 5}, "tests"),
        ({"tests": [["a", "b", "1"]]}, "tests.0.2"),
        ({"lines": {"a.py": {"one": "1"}}}, "lines.a.py.one"),
        ({"lines": {"a.py": {"1": "-1"}}}, "lines.a.py.1"),
        ({"spawning": [0]}, "spawning.0"),
        ({"modules": None}, "modules"),
        ({"failures": {"x": {"kind": "x"}}}, "failures.x.message"),
    ],
)
def test_an_observation_of_another_shape_is_refused(change: dict[str, Any], place: str) -> None:
    with pytest.raises(ReplyError, match=place) as caught:
        run(observed=OBSERVED | change)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("record", [["observed", None], ["observed", []], ["test", 1], "x"])
def test_a_forged_record_is_refused(record: Any) -> None:
    with pytest.raises(ReplyError):
        run(record)


def test_result_of_an_unrequested_test_is_refused() -> None:
    tests: Any = mock.Mock(runs=lambda requests, _: [run() for _ in requests])
    attempt = ForkedRun(paths=("test_a.py",), tests=["test_a.py::test_b"], cpu_s=1.0)
    with pytest.raises(ReplyError, match=TEST):
        SuiteSandbox.attempt(tests, [attempt])
