"""Projects and archives that mean harm: nothing of the host is read, and all is one clear error."""

import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from synthesis_project import write_project

from coding_gym.errors import CodingGymError, SandboxError, TemplateError
from coding_gym.tasks.synthesis import Project
from coding_gym.tasks.synthesis.pypi import unpack
from coding_gym.tasks.synthesis.replies import AttemptReplies, read_reply
from coding_gym.tasks.synthesis.statement import find_symptoms
from coding_gym.tasks.synthesis.suite import Attempt, TestSandbox
from coding_gym.tasks.synthesis.survey import SuiteTest, read_survey

SURVEY: dict[str, Any] = {
    "error": "",
    "tests": [["test_a.py::test_a", "test_a.py", 1, True]],
    "failure": None,
    "lines": {"a.py": {"1": "1"}},
    "imported": {"a.py": [1]},
    "spawning": [0],
    "cpu_s": 0.5,
    "preload": [],
    "copies": [],
}
FAILURE: dict[str, Any] = {
    "kind": "ValueError",
    "message": "no",
    "frames": [["test_a.py", 2, "test_a"]],
    "when": "call",
    "values": {},
    "owner": {},
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


def test_a_survey_is_read_as_it_should_be() -> None:
    survey = read_survey(json.dumps(SURVEY).encode())
    assert survey.trusted == ("test_a.py::test_a",)
    assert survey.spawning == {"test_a.py::test_a"}
    assert survey.tests_of("a.py", 1, 1) == survey.trusted


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
def test_a_survey_of_another_shape_is_refused(change: dict[str, Any], place: str) -> None:
    with pytest.raises(SandboxError, match=f"another shape: {place}.*own code") as caught:
        read_survey(json.dumps(SURVEY | change).encode())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data", [b"", b"5", b"[]", b'{"error": ""}', b'{"error": 5}', b"[" * 100_000, b"\xff"]
)
def test_what_is_no_survey_at_all_is_refused(data: bytes) -> None:
    with pytest.raises(SandboxError, match="another shape"):
        read_survey(data)


class _Replying(TestSandbox):
    """A sandbox in which the project's code wrote the reply."""

    def __init__(self, reply: Any) -> None:
        self._reply, self._is_warm = json.dumps(reply).encode(), False

    def _ask(self, *_: Any) -> bytes:
        return self._reply


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"results": [{}]},
        {"results": []},
        {"results": [{"error": ""}] * 2},
        {"results": [{"error": "", "is_stable": True, "failed": ["test_a.py::test_made_up"]}]},
        {"results": [{"error": "", "is_stable": True, "failures": {"x": {"kind": "E"}}}]},
        {"results": [{"error": "", "is_stable": True, "functions": {"x": ["a.py"]}}]},
    ],
)
def test_a_forged_outcome_is_refused(reply: Any) -> None:
    attempt = Attempt({}, ("test_a.py",), ("test_a.py::test_a",), 1.0)
    with pytest.raises(SandboxError):
        _Replying(reply).attempt([attempt], ())


def test_an_honest_outcome_is_taken() -> None:
    test = "test_a.py::test_a"
    result = {"error": "", "is_stable": True, "failed": [test], "failures": {test: FAILURE}}
    data = json.dumps({"results": [result]})
    assert read_reply(AttemptReplies, data.encode()).results[0].failures[test].kind == "ValueError"
    (outcome,) = _Replying(json.loads(data)).attempt([Attempt({}, (), (test,), 1.0)], ())
    assert outcome.failed == (test,)
    assert outcome.failures[test]["frames"][0] == ("test_a.py", 2, "test_a")


@pytest.mark.parametrize(
    "forged",
    [
        {"values": {"x": "1 +"}},
        {"owner": {"Thing": "no name"}},
        {"values": {"x": "(" * 5000}},
        {"values": {"x": "\0"}},
    ],
)
def test_a_forged_failure_is_told_by_nobody(forged: dict[str, Any]) -> None:
    text = "def test_a(self, x):\n    assert f(self.Thing, x) == 1\n\n\nfrom shop import f\n"
    tests = {"t": SuiteTest("t", "test_a.py", 1, True)}
    assert find_symptoms({"t": FAILURE}, tests, {"test_a.py": text})
    assert find_symptoms({"t": FAILURE | forged}, tests, {"test_a.py": text}) == []


def test_a_test_file_in_another_python_is_told_by_nobody() -> None:
    tests = {"t": SuiteTest("t", "test_a.py", 1, True)}
    assert find_symptoms({"t": FAILURE}, tests, {"test_a.py": "print 'two'\n"}) == []


def _zip(**members: bytes) -> bytearray:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"p/{name}", data)
    return bytearray(buffer.getvalue())


def _encrypted() -> bytes:
    data = _zip(x=b"secret")
    data[6] |= 1  # of the file's own header
    data[data.index(b"PK\1\2") + 8] |= 1
    return bytes(data)


def _unknown_method() -> bytes:
    data = _zip(x=b"packed")
    data[data.index(b"PK\1\2") + 10] = data[8] = 77
    return bytes(data)


def _other_name() -> bytes:
    data = _zip(x=b"named")
    data[data.index(b"PK\1\2") + 46] = data[30] = 0xFF
    data[data.index(b"PK\1\2") + 9] |= 8  # said to be UTF-8
    return bytes(data)


def _damaged() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        info = tarfile.TarInfo("p/x")
        info.size = 4
        archive.addfile(info, io.BytesIO(b"text"))
    data = buffer.getvalue()
    return data[:20] + b"\xff" * 8 + data[28:]


@pytest.mark.parametrize("make", [_encrypted, _unknown_method, _other_name, _damaged])
def test_an_archive_that_cannot_be_read_is_one_clear_error(make: Any, tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match=r"cannot be unpacked: .") as caught:
        unpack(make(), tmp_path)
    assert isinstance(caught.value, CodingGymError)
    assert "\n" not in str(caught.value)
