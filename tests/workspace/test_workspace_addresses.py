"""What a task's repository may name, and how its commits are read, hostile ones too."""

from collections.abc import Iterator
from pathlib import Path

import git
import pytest
from sandbox_fixtures import commit

from coding_gym.addresses import find_repository, is_url, without_password
from coding_gym.errors import InvalidTaskError
from coding_gym.workspace.commit_names import commit_names


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("https://example.org/a", True),
        ("HTTPS://example.org/a", True),
        ("ssh://git@example.org/a", True),
        ("git@example.org:owner/name.git", True),
        ("some.user-1@host:a", True),
        (f"https://example.org/{'a' * 5000}", True),
        *((path, False) for path in ("a", "/a/b", "~/a", "a/b@c:d")),
        *((text, False) for text in ("https://a\nb", "https://a\0b", "")),
    ],
)
def test_what_git_would_clone_from_elsewhere_is_a_url(text: str, wanted: bool) -> None:
    assert is_url(text) is wanted


def test_what_lies_there_is_no_url_though_it_looks_like_one(tmp_path: Path) -> None:
    (tmp_path / "me@here:name").mkdir()
    assert is_url("me@here:name")
    assert not is_url("me@here:name", base=tmp_path)


def test_repositories_are_found_bare_or_not(tmp_path: Path) -> None:
    (tmp_path / "plain" / ".git").mkdir(parents=True)
    (tmp_path / "bare" / "objects").mkdir(parents=True)
    assert find_repository("bare", base=tmp_path) is None
    (tmp_path / "bare" / "HEAD").touch()
    (tmp_path / "link").symlink_to("plain")
    assert find_repository("bare", base=tmp_path) == (tmp_path / "bare").resolve()
    assert find_repository(tmp_path / "link") == (tmp_path / "plain").resolve()


@pytest.mark.parametrize("path", ["missing", "~nobody-here/a", "a\0b", "x/" * 5000])
def test_what_cannot_be_a_repository_is_none(tmp_path: Path, path: str) -> None:
    assert find_repository(path, base=tmp_path) is None


def test_passwords_are_not_shown() -> None:
    assert without_password("https://me:secret@example.org/a@b") == "https://example.org/a@b"


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[git.Repo]:
    folder = tmp_path / "project"
    folder.mkdir()
    commit(folder, {"a.txt": "one"})
    with git.Repo(folder) as repository:
        yield repository


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
    head = repository.head.commit.hexsha
    with commit_names(Path(repository.working_dir)) as find:
        assert find(head[:9]) == head
        assert find("1" * 40 + "^{commit}") is None
    assert not traces.exists()


def test_a_folder_without_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidTaskError, match="project"), commit_names(tmp_path / "project"):
        pass
