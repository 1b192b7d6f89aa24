"""``coding-gym fix`` on a repository of one's own."""

from pathlib import Path
from typing import Any

import pytest
from model_server import Answer, ChatServer, message
from sandbox_fixtures import commit
from typer.testing import CliRunner, Result

from coding_gym.cli.app import app
from coding_gym.errors import InvalidArgumentError

_EDIT = {"apply_patch": {"file": "a.py", "search": "a - b", "replace": "a + b"}}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    commit(tmp_path / "project", {"a.py": "def add(a, b):\n    return a - b\n"})
    return tmp_path / "project"


def answer(body: dict[str, Any]) -> Answer:
    said = sum(each["role"] == "assistant" for each in body["messages"])
    return Answer(message(calls={"submit": {}} if said else _EDIT))


def fix(repository: Path, *options: str) -> Result:
    with ChatServer(answer) as server:
        command = ["fix", "add() subtracts", "--repo", str(repository), "--base-url"]
        return CliRunner().invoke(app, [*command, server.base_url, "--model", "tiny", *options])


def test_fix_prints_the_diff_and_changes_nothing(repository: Path) -> None:
    result = fix(repository)
    assert result.exit_code == 0, result.output
    assert "+    return a + b" in result.stdout
    assert "a - b" in (repository / "a.py").read_text()


def test_fix_applies_bytes_that_are_not_utf8(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = {"shell": {"cmd": r"printf '# \351\n' >> a.py"}}
    monkeypatch.setattr(f"{__name__}._EDIT", command)
    result = fix(repository, "--apply")
    assert result.exit_code == 0, result.output
    assert b"+# \xe9\n" in result.stdout_bytes
    assert (repository / "a.py").read_bytes().endswith(b"# \xe9\n")


def test_fix_refuses_to_apply_to_a_dirty_tree(repository: Path) -> None:
    (repository / "new.txt").write_text("mine")
    result = fix(repository, "--apply")
    assert isinstance(result.exception, InvalidArgumentError)


def test_fix_needs_a_repository(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["fix", "it", "--repo", str(tmp_path)])
    assert isinstance(result.exception, InvalidArgumentError)
