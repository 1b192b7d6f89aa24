"""Bad input is a one-line error that names the field or path and the way out."""

import re
from pathlib import Path
from typing import Any

import pytest
from workspace_scene import Refused, make_repository, make_task

from coding_gym.task import FilesTree, FolderTree, GitTree

_ABSENT = "0" * 39 + "1"


def _files(*names: str) -> dict[str, Any]:
    return {"tree": FilesTree(dict.fromkeys(names, ""))}


def _commands(*commands: str) -> dict[str, Any]:
    return {"install_commands": commands}


_LONG = ("x" * 300, "a/" * 1500 + "x", "a/" * 3000 + "x")
_OUTSIDE = ("../out.py", "/etc/x", ".git/config", "a/.GIT/x", "", "a\0b")
_FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "no repository": ({"tree": GitTree("/no/one")}, "'repository' names '/no/one'.*clone it there"),
    "a URL that runs something": ({"tree": GitTree("ext::sh -c id")}, "'repository' names 'ext::"),
    "a URL of a descriptor": ({"tree": GitTree("fd::3")}, "'repository' names 'fd::3'"),
    "a URL of two lines": (
        {"tree": GitTree("https://127.0.0.1:1/a\nb")},
        r"names 'http.*:1/a\\nb'",
    ),
    "a repository of nobody": ({"tree": GitTree("~nobody-here/x")}, "names '~nobody-here/x'"),
    "a folder of nobody": ({"tree": FolderTree("~nobody-here/x")}, "names '~nobody-here/x'"),
    "no folder": ({"tree": FolderTree("/no/such/folder")}, "field 'folder' names"),
    "a file that is a folder too": (_files("a", "a/b"), "field 'files'"),
    "a text that is no Unicode": (
        {"tree": FilesTree({"a.py": "\ud800"})},
        "field 'files' has 'a.py', which is not Unicode",
    ),
    "a command with a NUL": (_commands("echo a\0b"), "'install_commands' has 'echo a"),
    "a command too long": (_commands("echo " + "x" * (1 << 20)), "'install_commands' has 'echo x"),
    "no version": ({"interpreter": "python9"}, "'interpreter': a Python version looks like"),
    **{f"{len(name)} characters": (_files(name), "is too long a path") for name in _LONG},
    **{
        f"a file at {name!r}": (_files("a.py", name), f"field 'files' has {re.escape(repr(name))}")
        for name in _OUTSIDE
    },
    **{
        f"dated {date}": ({"created_at": date}, "field 'created_at' must be an ISO 8601 date")
        for date in ("yesterday", "1812-01-01", "1972-01-01", "2500-01-01")
    },
}


@pytest.mark.parametrize("case", _FIELDS)
def test_a_field_that_cannot_be_used_is_named(refused: Refused, case: str) -> None:
    fields, message = _FIELDS[case]
    said = refused(make_task(**{"base_commit": _ABSENT} | fields))
    assert said.startswith("task program-1: ")
    assert re.search(message, said)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    make_repository(tmp_path / "repository", "x = 1\n")
    return tmp_path / "repository"


@pytest.mark.parametrize("kind", ["path", "url"])
def test_an_unknown_base_commit(refused: Refused, repository: Path, kind: str) -> None:
    name = str(repository) if kind == "path" else f"file://{repository}"
    said = refused(make_task(tree=GitTree(name), base_commit=_ABSENT))
    assert f"field 'base_commit' names {_ABSENT}, which {name} does not" in said


@pytest.mark.parametrize("name", ["main", "HEAD~1", "abc123", "--upload-pack=id", ""])
def test_a_base_commit_that_is_no_full_sha(refused: Refused, repository: Path, name: str) -> None:
    said = refused(make_task(tree=GitTree(str(repository)), base_commit=name))
    assert f"'base_commit' must be a full sha of 40 hexadecimal digits, got {name!r}" in said
    assert "give clones as repositories (--repositories)" in said


def test_an_unknown_setup_commit(refused: Refused, repository: Path) -> None:
    (base,) = make_repository(repository, "x = 2\n")
    fields = {"tree": GitTree(str(repository)), "base_commit": base, "repo": "o/numbers"}
    task = make_task(**fields, **_commands("true"), environment_setup_commit="1" * 40)
    assert "field 'environment_setup_commit' names 1111" in refused(task)


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
    assert "field 'reverse_patch' cannot be taken back: " in refused(make_task(tree=tree))
    assert sorted(tmp_path.iterdir()) == [source, fresh_folder]


@pytest.mark.parametrize("path", ["link/evil.py", "leaf.py"])
def test_a_reverse_patch_follows_no_symlink(tmp_path: Path, refused: Refused, path: str) -> None:
    source, outside = tmp_path / "source", tmp_path / "outside"
    source.mkdir()
    outside.mkdir()
    (source / "link").symlink_to(outside)
    (source / "leaf.py").symlink_to(outside / "evil.py")
    deletion = f"--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-evil\n"
    said = refused(make_task(tree=FolderTree(str(source), deletion)))
    assert f"{path!r} is not a path in the tree" in said
    assert list(outside.iterdir()) == []
