"""Reading commits of repositories on this machine, hostile ones too."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import git
import pytest

from coding_gym.errors import InvalidTaskError
from coding_gym.workspace.commit_files import open_repository

FILES = {
    "a.txt": b"one\n\n",
    "folder/no line end": b"two",
    "empty": b"",
    "latin": b"caf\xe9\r\n",
    "binary": b"\0\1\2",
    "big": b"x" * 100,
    "last.md": b"three\n",
}
SOMEONE = git.Actor("someone", "someone@example.org")


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[git.Repo]:
    with git.Repo.init(tmp_path / "project", initial_branch="main") as repository:
        for name, data in FILES.items():
            path = tmp_path / "project" / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        (tmp_path / "project" / "link").symlink_to("a.txt")
        repository.git.add("--all")
        date = "2020-02-02 02:02:02 +0000"
        repository.index.commit(
            "first", author=SOMEONE, committer=SOMEONE, author_date=date, commit_date=date
        )
        yield repository


def test_texts_come_byte_for_byte_and_the_rest_is_left_out(repository: git.Repo) -> None:
    with open_repository(Path(repository.working_dir)) as reader:
        texts = reader.texts(repository.head.commit.hexsha, 50)
    found = {path: text.encode("utf-8", "surrogateescape") for path, text in texts.items()}
    assert found == {name: data for name, data in FILES.items() if name not in {"binary", "big"}}


def test_a_commit_has_its_committers_date(repository: git.Repo) -> None:
    with open_repository(Path(repository.working_dir)) as reader:
        date = reader.date(repository.head.commit.hexsha)
    assert date == "2020-02-02T02:02:02+00:00"


def test_bare_clones_are_read_too(repository: git.Repo, tmp_path: Path) -> None:
    repository.clone(str(tmp_path / "bare.git"), bare=True).close()
    with open_repository(tmp_path / "bare.git") as reader:
        assert reader.texts(repository.head.commit.hexsha, 5)["a.txt"] == "one\n\n"


def test_files_that_a_clone_lacks_are_left_out(repository: git.Repo) -> None:
    sha = repository.head.commit.tree["a.txt"].hexsha
    Path(repository.git_dir, "objects", sha[:2], sha[2:]).unlink()
    with open_repository(Path(repository.working_dir)) as reader:
        texts = reader.texts(repository.head.commit.hexsha, 50)
    assert sorted(texts) == ["empty", "folder/no line end", "last.md", "latin"]


def test_nothing_that_a_repository_configures_runs(repository: git.Repo, tmp_path: Path) -> None:
    traces = tmp_path / "ran"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\necho ran >>{traces}\ncat\n")
    script.chmod(0o755)
    with repository.config_writer() as config:
        config.set_value("core", "fsmonitor", str(script))
        config.set_value("core", "pager", str(script))
        config.set_value('diff "evil"', "textconv", str(script))
        config.set_value('filter "evil"', "smudge", str(script))
        config.set_value("extensions", "partialClone", "origin")
        config.set_value('remote "origin"', "url", f"ext::{script}")
        config.set_value('remote "origin"', "promisor", "true")
        config.set_value('remote "origin"', "uploadpack", str(script))
    Path(repository.git_dir, "info", "attributes").write_text("* diff=evil filter=evil\n")
    missing = repository.head.commit.tree["latin"].hexsha
    Path(repository.git_dir, "objects", missing[:2], missing[2:]).unlink()
    with open_repository(Path(repository.working_dir)) as reader:
        assert "latin" not in reader.texts(repository.head.commit.hexsha, 50)
    assert not traces.exists()


def test_an_unknown_commit_and_a_folder_without_git_are_refused(
    repository: git.Repo, tmp_path: Path
) -> None:
    folder = Path(repository.working_dir)
    with (
        open_repository(folder) as reader,
        pytest.raises(InvalidTaskError, match=f"does not have commit {'1' * 40}"),
    ):
        reader.texts("1" * 40, 50)
    shutil.rmtree(folder / ".git")
    with (
        pytest.raises(InvalidTaskError, match="is not a git repository"),
        open_repository(folder),
    ):
        pass
