"""Errors and logs of builds: install commands, URLs with passwords, a machine without git."""

from pathlib import Path

import pytest
from workspace_scene import Refused, make_task

from coding_gym.errors import MissingDependencyError, TemplateError
from coding_gym.sandbox import SandboxSpec, get_backend
from coding_gym.task import GitTree
from coding_gym.workspace import TemplateStore
from coding_gym.workspace.installing import install

pytestmark = pytest.mark.slow


def test_a_failed_or_late_command_is_named(tmp_path: Path) -> None:
    log = tmp_path / "log"
    error = " flit.ConfigError: old table\nerror: subprocess-exited-with-error\na hint"
    with get_backend("namespace").open(SandboxSpec()) as sandbox:
        for command, timeout_s, message in (
            ("seq 100; exit 3", 60.0, "seq 100"),
            (f"echo '{error}'; exit 1", 60.0, r"failed: flit\.ConfigError: old table; the log"),
            ("tail -f /dev/null", 0.1, "build_timeout_s"),
        ):
            with pytest.raises(TemplateError, match=message):
                install(sandbox, ["true", command], owner="task x", log=log, timeout_s=timeout_s)


@pytest.mark.usefixtures("without_pip")
def test_a_failed_builds_log_is_kept_until_one_succeeds(fresh_folder: Path) -> None:
    store = TemplateStore(folder=fresh_folder)
    with pytest.raises(TemplateError, match="log"):
        store.get(make_task(install_commands=("false",)))
    (log,) = (fresh_folder / "logs").iterdir()
    assert "$ false\n" in log.read_text()
    assert not any((fresh_folder / "environments").glob("*/"))
    store.get(make_task(install_commands=("true",)))
    assert [*(fresh_folder / "logs").iterdir()] == [log]
    (environment,) = (fresh_folder / "environments").glob("*/")
    assert sorted(path.name for path in environment.iterdir()) == ["artifacts", "build.log", "env"]


_ABSENT = "0" * 39 + "1"


def test_a_password_in_a_url_is_not_in_the_error(refused: Refused) -> None:
    url = "https://me:hidden@secret@127.0.0.1:1/none.git"
    message = refused(make_task(tree=GitTree(url), base_commit=_ABSENT), TemplateError)
    assert "hidden" not in message
    assert "secret" not in message
    assert "https://127.0.0.1:1/none.git" in message


def test_a_missing_git_is_an_error(
    tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "apt-get install git" in refused(make_task(), MissingDependencyError)
