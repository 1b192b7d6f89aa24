"""Bad input is a one-line error that names the field or path and the way out."""

import os
from pathlib import Path
from typing import Any

import pytest
from sandbox_fixtures import BACKEND, tree
from workspace_scene import Refused, make_repository, make_task

from coding_gym.errors import InvalidTaskError, TemplateError
from coding_gym.task import FilesTree, FolderTree, GitTree
from coding_gym.workspace import checkout
from coding_gym.workspace.plain_tree import digest_tree

_ABSENT = "0" * 39 + "1"


def _files(*names: str) -> dict[str, Any]:
    return {"tree": FilesTree(dict.fromkeys(names, ""))}


_FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "no repository": ({"tree": GitTree("/no/one")}, "repository"),
    "a URL that runs something": ({"tree": GitTree("ext::sh -c id")}, "repository"),
    "a URL of two lines": ({"tree": GitTree("https://127.0.0.1:1/a\nb")}, "repository"),
    "no folder": ({"tree": FolderTree("/no/such/folder")}, "folder"),
    "a file that is a folder too": (_files("a", "a/b"), "files"),
    "a text that is no Unicode": ({"tree": FilesTree({"a.py": "\ud800"})}, "files"),
    "no version": ({"interpreter": "python9"}, "interpreter"),
    **{
        f"a path of {len(name)} characters": (_files(name), "files")
        for name in ("x" * 300, "a/" * 1500 + "x", "a/" * 3000 + "x")
    },
    **{
        f"a file at {name!r}": (_files("a.py", name), "files")
        for name in ("../out.py", "/etc/x", ".git/config", "a/.GIT/x", "", "a\0b")
    },
    **{
        f"dated {date}": ({"created_at": date}, "created_at")
        for date in ("yesterday", "1812-01-01", "1972-01-01", "2500-01-01")
    },
}


@pytest.mark.parametrize("case", _FIELDS)
def test_unusable_field_is_named(refused: Refused, case: str) -> None:
    fields, field = _FIELDS[case]
    message = refused(make_task(**{"base_commit": _ABSENT} | fields))
    assert message.startswith("task program-1: ")
    assert repr(field) in message


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    make_repository(tmp_path / "repository", "x = 1\n")
    return tmp_path / "repository"


@pytest.mark.parametrize("kind", ["path", "url"])
@pytest.mark.parametrize("name", [_ABSENT, "main", "HEAD~1", "abc123", "--upload-pack=id", ""])
def test_unknown_or_unsafe_base_commit_is_refused(
    refused: Refused, repository: Path, kind: str, name: str
) -> None:
    address = str(repository) if kind == "path" else f"file://{repository}"
    message = refused(make_task(tree=GitTree(address), base_commit=name))
    assert "'base_commit'" in message
    assert name in message


REVERSE_PATCHES = {
    "not a patch": "hello",
    "does not fit": "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-y\n+z\n",
    "leads outside": "--- a/../b.py\n+++ b/../b.py\n@@ -1 +1 @@\n-y\n+z\n",
}


@pytest.mark.parametrize("kind", REVERSE_PATCHES)
def test_a_reverse_patch_that_does_not_fit_is_refused(
    tmp_path: Path, fresh_folder: Path, refused: Refused, kind: str
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.py").write_text("x = 1\n")
    base = FolderTree(str(source), REVERSE_PATCHES[kind])
    assert "'reverse_patch'" in refused(make_task(tree=base))
    assert sorted(tmp_path.iterdir()) == [source, fresh_folder]


@pytest.mark.parametrize("path", ["link/evil.py", "leaf.py"])
def test_a_reverse_patch_follows_no_symlink(tmp_path: Path, refused: Refused, path: str) -> None:
    source, outside = tmp_path / "source", tmp_path / "outside"
    source.mkdir()
    outside.mkdir()
    (source / "link").symlink_to(outside)
    (source / "leaf.py").symlink_to(outside / "evil.py")
    deletion = f"--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-evil\n"
    message = refused(make_task(tree=FolderTree(str(source), deletion)))
    assert path in message
    assert list(outside.iterdir()) == []


def test_a_folder_that_changes_while_it_is_copied_is_refused(
    tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.py").write_text("x = 1\n")
    write = checkout.Checkouts.write

    def write_after_a_change(*arguments: Any, **options: Any) -> checkout.Checkout:
        (source / "a.py").write_text("x = 2\n")
        return write(*arguments, **options)

    monkeypatch.setattr(checkout.Checkouts, "write", write_after_a_change)
    refused(make_task(tree=FolderTree(str(source))), TemplateError)


@pytest.mark.parametrize("name", ["locked", "locked/a.py"], ids=["folder", "file"])
def test_an_unreadable_part_of_a_folder_is_refused(name: str) -> None:
    with tree(BACKEND, {"locked/a.py": "x", "b.py": "y"}) as folder:
        source = FolderTree(str(folder))
        task = make_task(tree=source)
        (folder / name).chmod(0)
        user = os.geteuid()
        os.seteuid(BACKEND.owner()[0])  # the folder's, which root is not
        try:
            with pytest.raises(InvalidTaskError, match=str(folder / name)):
                digest_tree(task, source)
        finally:
            os.seteuid(user)
