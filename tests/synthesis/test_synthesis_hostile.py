"""Projects that mean harm: nothing of the host is read, and every error is clear."""

import json
from pathlib import Path
from typing import Any

import pytest
from synthesis_project import write_project

from coding_gym.errors import SandboxError
from coding_gym.synthesis import Project
from coding_gym.synthesis.coverage_report import Start, read_coverage
from coding_gym.synthesis.suite import Attempt, TestSandbox

COVERAGE: dict[str, Any] = {
    "error": "",
    "tests": [["test_a.py::test_a", "test_a.py", 1, True]],
    "failure": None,
    "lines": {"a.py": {"1": "1"}},
    "imported": {"a.py": [1]},
    "spawning": [0],
    "cpu_s": 0.5,
    "preload": [],
    "shares": False,
    "copies": [],
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


def test_a_coverage_report_is_read_as_it_should_be() -> None:
    report = read_coverage(json.dumps(COVERAGE).encode())
    assert report.trusted == ("test_a.py::test_a",)
    assert report.spawning == {"test_a.py::test_a"}
    assert report.tests_of("a.py", range(1, 2)) == report.trusted


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"tests": 5}, "tests"),
        ({"tests": [["a", "b", "1", True]]}, "tests.0.2"),
        ({"lines": {"a.py": {"one": "1"}}}, "lines.a.py.one"),
        ({"lines": {"a.py": {"1": "-1"}}}, "lines.a.py.1"),
        ({"spawning": ["0"]}, "spawning.0"),
        ({"cpu_s": float("inf")}, "cpu_s"),
        ({"copies": None}, "copies"),
        ({"failure": {"kind": "x"}}, "failure.message"),
    ],
)
def test_a_coverage_report_of_another_shape_is_refused(change: dict[str, Any], place: str) -> None:
    with pytest.raises(SandboxError, match=place) as caught:
        read_coverage(json.dumps(COVERAGE | change).encode())
    assert "\n" not in str(caught.value)


def test_a_reply_that_is_no_coverage_report_is_refused() -> None:
    for data in (b"", b"5", b"[]", b'{"error": ""}', b'{"error": 5}', b"[" * 100_000, b"\xff"):
        with pytest.raises(SandboxError):
            read_coverage(data)


class _Replying(TestSandbox):
    """A sandbox in which the project's code wrote the reply."""

    def __init__(self, reply: Any) -> None:
        self._reply, self._is_warm, self.spent_s = json.dumps(reply).encode(), False, 0.0

    def _ask(self, *_: Any) -> bytes:
        return self._reply


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"results": [{}]},
        {"results": []},
        {"results": [{"error": ""}] * 2},
        {"results": [{"error": ""}], "cpu_s": -1.0},
        {"results": [{"error": "", "is_stable": True, "failed": ["test_a.py::test_made_up"]}]},
        {"results": [{"error": "", "is_stable": True, "failures": {"x": {"kind": "E"}}}]},
    ],
)
def test_a_forged_outcome_is_refused(reply: Any) -> None:
    attempt = Attempt({}, ("test_a.py",), ("test_a.py::test_a",), 1.0)
    with pytest.raises(SandboxError):
        _Replying({"cpu_s": 0.1} | reply).attempt([attempt], Start())


def test_an_honest_outcome_is_taken() -> None:
    test = "test_a.py::test_a"
    result = {"error": "", "is_stable": True, "failed": [test], "failures": {test: FAILURE}}
    tests = _Replying({"results": [result], "cpu_s": 0.1})
    (outcome,) = tests.attempt([Attempt({}, (), (test,), 1.0)], Start())
    assert tests.spent_s == 0.1
    assert outcome.failed == (test,)
    assert outcome.failures[test]["frames"][0] == ("test_a.py", 2, "test_a")
    assert outcome.failures[test]["kind"] == "ValueError"
