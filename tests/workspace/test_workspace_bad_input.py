"""Bad input raises a one-line error with the field or path and the remedy."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sandbox_fixtures import write_files
from workspace_scene import Refused, make_repository, make_task

from coding_gym.errors import TemplateError
from coding_gym.sandbox.ownership import remove_folder
from coding_gym.task import FilesTree, FolderTree, GitTree
from coding_gym.workspace import checkout
from coding_gym.workspace.plain_tree import copy_files, digest_tree
from coding_gym.workspace.stamping import stamp

_FOLDER = str(Path(__file__).parent)
_ABSENT = "0" * 39 + "1"


def _files(*names: str) -> dict[str, Any]:
    return {"tree": FilesTree(dict.fromkeys(names, ""))}


_FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "no repository": ({"tree": GitTree("/no/one")}, "repository"),
    "a URL that runs a command": ({"tree": GitTree("ext::sh -c id")}, "repository"),
    "a URL of two lines": ({"tree": GitTree("https://127.0.0.1:1/a\nb")}, "repository"),
    "no folder": ({"tree": FolderTree("/no/such/folder")}, "folder"),
    "a file and a folder at one path": (_files("a", "a/b"), "files"),
    "a text that is not Unicode": ({"tree": FilesTree({"a.py": "\ud800"})}, "files"),
    "a reverse patch that is not Unicode": (
        {"tree": FolderTree(_FOLDER, "\ud800")},
        "reverse_patch",
    ),
    "a reverse patch of a commit that is not Unicode": (
        {"tree": GitTree("/no/one", "\ud800")},
        "reverse_patch",
    ),
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
    "leads outside": "--- a/../evil.py\n+++ /dev/null\n@@ -0,0 +1 @@\n+x\n",
    **{
        f"deletes {path}": f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+evil\n"
        for path in ("../outside/evil.py", "link/evil.py", "leaf.py")
    },
}


@pytest.mark.parametrize("kind", REVERSE_PATCHES)
def test_a_reverse_patch_that_does_not_fit_is_refused(
    tmp_path: Path, refused: Refused, kind: str
) -> None:
    source, outside = tmp_path / "source", tmp_path / "outside"
    write_files(tmp_path, {"source/a.py": "x = 1\n", "outside/evil.py": "evil\n"})
    (source / "link").symlink_to(outside)
    (source / "leaf.py").symlink_to(outside / "evil.py")
    base = FolderTree(str(source), REVERSE_PATCHES[kind])
    assert "'reverse_patch'" in refused(make_task(tree=base))
    assert [path.read_text() for path in outside.iterdir()] == ["evil\n"]


def test_deeply_nested_folders_are_copied_and_stamped(tmp_path: Path) -> None:
    source, into = tmp_path / "source", tmp_path / "into"
    deepest = source
    for folder in (source, *["d"] * 1200):  # more than Python's limit on recursion
        deepest /= folder
        deepest.mkdir()
    (deepest / "a.py").touch(mode=0o600)
    assert digest_tree(make_task(), FolderTree(str(source)))
    copy_files(source, into)
    stamp(into, datetime.fromtimestamp(1e9, UTC), (os.geteuid(), os.getegid()))
    status = (into / deepest.relative_to(source) / "a.py").stat()
    assert (status.st_mode & 0o777, status.st_mtime) == (0o644, 1e9)
    remove_folder(tmp_path)  # `shutil.rmtree` would fail


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
