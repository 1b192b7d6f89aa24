"""What the machine lacks is a one-line error that names the task, the place and the way out."""

import re
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from workspace_scene import Refused, make_task

from coding_gym.errors import MissingDependencyError, TemplateError
from coding_gym.task import FilesTree, GitTree
from coding_gym.workspace import TemplateStore, checkout
from coding_gym.workspace.history import init_repository
from coding_gym.workspace.host_git import HostGit, HostGitError

_ABSENT = "0" * 39 + "1"


def test_a_url_that_cannot_be_fetched(tmp_path: Path, refused: Refused) -> None:
    task = make_task(tree=GitTree(f"file://{tmp_path}/none"), base_commit=_ABSENT)
    said = refused(task, TemplateError)
    assert re.search(r"cannot fetch file://.*/none: .*; clone it yourself", said)


def test_a_password_in_a_url_is_not_repeated(refused: Refused) -> None:
    url = "https://me:secret@127.0.0.1:1/none.git"
    said = refused(make_task(tree=GitTree(url), base_commit=_ABSENT), TemplateError)
    assert "secret" not in said
    assert "https://127.0.0.1:1/none.git" in said


def test_a_server_that_never_answers(fresh_folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"git://127.0.0.1:{server.getsockname()[1]}/none.git"
        store = TemplateStore(folder=fresh_folder, build_timeout_s=0.5)
        with pytest.raises(TemplateError) as caught:
            store.get(make_task(tree=GitTree(url), base_commit=_ABSENT))
        said = "git fetch: it took more than 0.5 s (build_timeout_s); clone it yourself"
        assert said in str(caught.value)
        client, _ = server.accept()
        with client, client.makefile("rb") as wanted:
            assert b"git-upload-pack" in wanted.read()  # to the end: git is gone
    assert list(fresh_folder.glob("mirrors/*/unfinished")) == []


@pytest.mark.parametrize("name", ["git~1", ".g\u200cit"])
def test_names_that_mean_git_elsewhere_are_fine_on_linux_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for platform in ("linux", "darwin"):
        monkeypatch.setattr(sys, "platform", platform)
        git = HostGit(tmp_path / f"{platform}-settings")
        monkeypatch.undo()
        (tmp_path / platform).mkdir()
        init_repository(git, tmp_path / platform)
        (tmp_path / platform / name).write_text("")
        if platform == "linux":
            git.run("add", "--all", cwd=tmp_path / platform)
        else:
            with pytest.raises(HostGitError, match="adding files failed"):
                git.run("add", "--all", cwd=tmp_path / platform)


def test_no_git(tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said = refused(make_task(), MissingDependencyError)
    assert said == "git is not installed; run: apt-get install git"


def test_no_such_python(refused: Refused) -> None:
    said = refused(make_task(interpreter="9.9"), TemplateError)
    assert "no Python 9.9 on this machine" in said


def test_a_full_disk(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkout, "write_tree", full)
    said = refused(make_task(), TemplateError)
    assert re.search(r"below .*/store: No space left on device; free space there", said)


def test_a_disk_that_fills_while_git_writes(refused: Refused) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    task = make_task(tree=FilesTree({f"{n}.txt": f"{n}\n" * 40 for n in range(600)}))
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        refused(task, TemplateError)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_store_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file where the folder should be")
    with pytest.raises(TemplateError, match=r"below .*/store: .*another folder") as caught:
        TemplateStore(folder=tmp_path / "store").get(make_task())
    assert "\n" not in str(caught.value)
