"""Addresses and clones of a row's repository, and commits that rows abbreviate."""

from pathlib import Path

import git
import pytest
from rows import loaded, refusal, row
from sandbox_fixtures import commit

from coding_gym.errors import InvalidArgumentError, InvalidTaskError
from coding_gym.task import FilesTree, GitTree
from coding_gym.tasks import load_tasks

ROW = row()


def init(path, *, bare=False):
    git.Repo.init(path, bare=bare).close()
    return path


@pytest.mark.parametrize("name", ["owner__name", "owner/name", "name"])
@pytest.mark.parametrize("ending", ["", ".git"])
def test_a_clone_is_found_under_each_usual_name(tmp_path, name, ending):
    (tmp_path / "owner__name").mkdir(exist_ok=True)  # no repository
    clone = init(tmp_path / (name + ending), bare=bool(ending))
    assert loaded(ROW, repositories=tmp_path).tree == GitTree(str(clone))


def test_missing_clone_is_named_with_the_command_that_makes_it(tmp_path):
    message = refusal([ROW], repositories=tmp_path)
    assert f"git clone https://github.com/owner/name {tmp_path}/owner__name" in message
    assert "'owner/name'" in refusal([ROW], repositories={"c/d": "x", "a/b": "y"})
    refusal([ROW], repositories={"owner/name": tmp_path})
    with pytest.raises(InvalidArgumentError, match="repositories"):
        load_tasks([ROW], repositories=tmp_path / "gone")


def test_only_chosen_tasks_need_a_clone(tmp_path):
    other = ROW | {"instance_id": "other-1", "repo": "owner/other"}
    clone = init(tmp_path / "name")
    (task,) = load_tasks([other, ROW], task_ids="owner__name-1", repositories=tmp_path)
    assert task.tree == GitTree(str(clone))


def test_a_row_that_names_its_repository_or_files_keeps_them(tmp_path):
    url = "https://git.example.org/fork.git"
    assert loaded(ROW, repositories={"owner/name": url}).tree == GitTree(url)
    rows = [ROW | {"repository": url}, ROW | {"instance_id": "2", "files": {"a": "b"}}]
    trees = [task.tree for task in load_tasks(rows, repositories=tmp_path)]
    assert trees == [GitTree(url), FilesTree({"a": "b"})]


def at(name: str) -> dict[str, object]:
    return row(base_commit=name, environment_setup_commit=name)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of twelve commits."""
    folder = tmp_path_factory.mktemp("clone")
    for number in range(12):
        commit(folder, {"a.py": f"a = {number}\n"})
    return folder


def shas(folder: Path) -> list[str]:
    with git.Repo(folder) as repository:
        return repository.git.rev_list("--all").split()


@pytest.mark.slow
def test_bare_shared_and_linked_clones_are_read(clone: Path, tmp_path: Path):
    with git.Repo(clone) as origin:
        origin.clone(tmp_path / "bare.git", bare=True).close()
        origin.clone(tmp_path / "shared", shared=True).close()
        origin.git.worktree("add", "--detach", str(tmp_path / "linked"))
    sha = shas(clone)[4]
    for folder in (tmp_path / "bare.git", tmp_path / "shared", tmp_path / "linked"):
        assert loaded(at(sha[:12]), repositories={"owner/name": folder}).base_commit == sha


def test_abbreviated_commits_get_full_names_from_clones(clone: Path):
    second = shas(clone)[1]
    task = loaded(at(second[:8]), repositories={"owner/name": clone})
    assert (task.base_commit, task.environment_setup_commit) == (second, second)
    # A full name is not looked up.
    full = loaded(at("0" * 40), repositories={"owner/name": clone})
    assert full.base_commit == "0" * 40
    task = loaded(at(second[:8]), repositories={"owner/name": "https://h/o/n"})
    assert task.base_commit == second[:8]


def test_missing_commit_is_named_with_field_and_clone(clone: Path):
    with git.Repo(clone) as repository:
        tree = repository.head.commit.tree.hexsha
    for name in ("0" * 12, tree[:12]):
        message = refusal([at(name)], repositories={"owner/name": clone})
        assert message.startswith("task owner__name-1: field 'base_commit'")
        assert str(clone) in message
        assert repr(name) in message


def test_commit_that_was_fetched_after_a_refusal_is_accepted(clone: Path, tmp_path: Path):
    tip, folder = shas(clone)[0], init(tmp_path / "other")
    with pytest.raises(InvalidTaskError):
        loaded(at(tip[:12]), repositories={"owner/name": folder})
    with git.Repo(folder) as repository:
        repository.git.fetch(clone)
    assert loaded(at(tip[:12]), repositories={"owner/name": folder}).base_commit == tip


def test_hostile_clone_runs_nothing(clone: Path, tmp_path: Path):
    sha, ran, script = shas(clone)[3], tmp_path / "ran", tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    script.chmod(0o755)
    with git.Repo(clone) as origin:
        origin.clone(tmp_path / "copy", no_local=True).close()
    folder = tmp_path / "copy" / ".git"
    (folder / "info" / "attributes").write_text("* diff=evil filter=evil\n")
    settings = (
        f"[core]\nfsmonitor = {script}\npager = {script}\n[diff 'evil']\ntextconv = {script}\n"
        f"[filter 'evil']\nsmudge = {script}\n[extensions]\npartialClone = origin\n"
        f"[remote 'origin']\nurl = ext::{script}\npromisor = true\nuploadpack = {script}\n"
    )
    (folder / "config").write_text(settings.replace("'", '"'))
    copy = {"owner/name": tmp_path / "copy"}
    assert "base_commit" in refusal([at("1" * 12)], repositories=copy)
    with (folder / "config").open("a") as file:
        file.write("[broken")
    assert loaded(at(sha[:12]), repositories=copy).base_commit == sha
    (index,) = (folder / "objects" / "pack").glob("*.idx")
    index.chmod(0o644)
    index.write_bytes(index.read_bytes()[:600])
    assert "base_commit" in refusal([at(sha[:13])], repositories=copy)
    assert not ran.exists()
