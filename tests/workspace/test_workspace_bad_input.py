"""Bad input is a one-line error that names the field or path and the way out."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from workspace_scene import Refused, make_task

from coding_gym.errors import InvalidTaskError
from coding_gym.task import FilesTree, FolderTree, GitTree
from coding_gym.workspace import checkout, history

_ABSENT = "0" * 39 + "1"


def test_a_missing_repository(tmp_path: Path, refused: Refused) -> None:
    task = make_task(tree=GitTree(str(tmp_path / "none")), base_commit=_ABSENT)
    error = refused(task)
    assert isinstance(error, InvalidTaskError)
    assert re.search(r"program-1: field 'repository' names .*/none'.*clone it there", str(error))


@pytest.mark.parametrize("scheme", ["ext::sh -c id", "fd::3"])
def test_a_url_that_would_run_something_is_no_repository(refused: Refused, scheme: str) -> None:
    error = refused(make_task(tree=GitTree(scheme), base_commit=_ABSENT))
    assert isinstance(error, InvalidTaskError)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit, made by the package itself."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git = checkout.HostGit(tmp_path / "settings")
    history.init_repository(git, folder)
    (folder / "a.py").write_text("x = 1\n")
    history.commit_files(git, folder, datetime(2024, 1, 1, tzinfo=UTC), with_ignored=True)
    return folder


@pytest.mark.parametrize("kind", ["path", "url"])
def test_an_unknown_base_commit(refused: Refused, repository: Path, kind: str) -> None:
    name = str(repository) if kind == "path" else f"file://{repository}"
    error = refused(make_task(tree=GitTree(name), base_commit=_ABSENT))
    assert isinstance(error, InvalidTaskError)
    assert re.search(f"field 'base_commit' names {_ABSENT}, which {name} does not", str(error))


@pytest.mark.parametrize("name", ["main", "HEAD~1", "abc123", "--upload-pack=id", ""])
def test_a_base_commit_that_is_no_full_sha(refused: Refused, repository: Path, name: str) -> None:
    task = make_task(tree=GitTree(str(repository)), base_commit=name)
    error = refused(task)
    assert isinstance(error, InvalidTaskError)
    assert f"field 'base_commit' must be a full sha of 40 hexadecimal digits, got {name!r}" in str(
        error
    )
    assert "give clones as repositories (--repositories)" in str(error)


def test_a_missing_folder(tmp_path: Path, refused: Refused) -> None:
    error = refused(make_task(tree=FolderTree(str(tmp_path / "none"))))
    assert isinstance(error, InvalidTaskError)
    assert "field 'folder' names" in str(error)


REVERSE_PATCHES = {
    "not a patch": "hello",
    "does not fit": "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-y\n+z\n",
    "no such file": "--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-y\n+z\n",
    "leads outside": "--- a/../b.py\n+++ b/../b.py\n@@ -1 +1 @@\n-y\n+z\n",
    "cut off": "--- a/a.py\n+++ b/a.py\n@@ -1,9 +1,9 @@\n-y\n+z\n",
}


@pytest.mark.parametrize("kind", REVERSE_PATCHES)
def test_a_reverse_patch_that_cannot_be_taken_back(
    tmp_path: Path, fresh_folder: Path, refused: Refused, kind: str
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.py").write_text("x = 1\n")
    tree = FolderTree(str(source), REVERSE_PATCHES[kind])
    error = refused(make_task(tree=tree))
    assert isinstance(error, InvalidTaskError)
    assert "field 'reverse_patch' cannot be taken back: " in str(error)
    assert sorted(tmp_path.iterdir()) == [source, fresh_folder]


@pytest.mark.parametrize("path", ["link/evil.py", "leaf.py"])
def test_a_reverse_patch_cannot_be_led_outside_by_a_symlink(
    tmp_path: Path, refused: Refused, path: str
) -> None:
    source, outside = tmp_path / "source", tmp_path / "outside"
    source.mkdir()
    outside.mkdir()
    (source / "link").symlink_to(outside)
    (source / "leaf.py").symlink_to(outside / "evil.py")
    deletion = f"--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-evil\n"
    error = refused(make_task(tree=FolderTree(str(source), deletion)))
    assert isinstance(error, InvalidTaskError)
    assert f"{path!r} is not a path in the tree" in str(error)
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("tree", [FolderTree("~nobody-here/x"), GitTree("~nobody-here/x")])
def test_a_home_folder_of_nobody(refused: Refused, tree: FolderTree | GitTree) -> None:
    error = refused(make_task(tree=tree, base_commit=_ABSENT))
    assert isinstance(error, InvalidTaskError)
    assert "names '~nobody-here/x'" in str(error)


@pytest.mark.parametrize("name", ["x" * 300, "a/" * 1500 + "x", "a/" * 3000 + "x"])
def test_a_file_whose_path_is_too_long(refused: Refused, name: str) -> None:
    error = refused(make_task(tree=FilesTree({name: ""})))
    assert isinstance(error, InvalidTaskError)
    assert "which is too long a path" in str(error)


@pytest.mark.parametrize("name", ["../out.py", "/etc/x", ".git/config", "a/.GIT/x", "", "a\0b"])
def test_a_file_outside_the_tree(refused: Refused, name: str) -> None:
    error = refused(make_task(tree=FilesTree({"a.py": "", name: "x"})))
    assert isinstance(error, InvalidTaskError)
    assert f"field 'files' has {name!r}" in str(error)


def test_a_file_that_is_a_folder_too(refused: Refused) -> None:
    error = refused(make_task(tree=FilesTree({"a": "", "a/b": ""})))
    assert isinstance(error, InvalidTaskError)


def test_a_text_that_is_not_unicode(refused: Refused) -> None:
    error = refused(make_task(tree=FilesTree({"a.py": "\ud800"})))
    assert isinstance(error, InvalidTaskError)
    assert "field 'files' has 'a.py', which is not Unicode" in str(error)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"created_at": "yesterday"}, "field 'created_at' must be an ISO 8601 date"),
        ({"created_at": "1812-01-01"}, "field 'created_at' must be an ISO 8601 date"),
        ({"created_at": "1972-01-01"}, "field 'created_at' must be an ISO 8601 date"),
        ({"created_at": "2500-01-01"}, "field 'created_at' must be an ISO 8601 date"),
        (
            {"tree": GitTree("https://127.0.0.1:1/a\nb"), "base_commit": _ABSENT},
            "field 'repository' names 'https://127.0.0.1:1/a\\nb'",
        ),
        ({"interpreter": "python9"}, "field 'interpreter': a Python version looks like"),
        ({"interpreter": "9.9"}, "no Python 9.9 on this machine"),
    ],
)
def test_a_field_that_cannot_be_used(
    refused: Refused, fields: dict[str, Any], message: str
) -> None:
    assert message in str(refused(make_task(**fields)))
