"""What the machine lacks is a one-line error that names the task, the place and the way out."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from coding_gym.errors import MissingDependencyError, TemplateError
from coding_gym.task import FilesTree, GitTree, Task
from coding_gym.workspace import TemplateStore, checkout

if TYPE_CHECKING:
    from tests.workspace.conftest import Refused

_ABSENT = "0" * 39 + "1"


def test_a_url_that_cannot_be_fetched(
    tmp_path: Path, refused: "Refused", make_task: Callable[..., Task]
) -> None:
    task = make_task(tree=GitTree(f"file://{tmp_path}/none"), base_commit=_ABSENT)
    error = refused(task)
    assert isinstance(error, TemplateError)
    assert re.search(r"cannot fetch file://.*/none: .*; clone it yourself", str(error))


def test_a_password_in_a_url_is_not_repeated(
    refused: "Refused", make_task: Callable[..., Task]
) -> None:
    url = "https://me:secret@127.0.0.1:1/none.git"
    error = refused(make_task(tree=GitTree(url), base_commit=_ABSENT))
    assert isinstance(error, TemplateError)
    assert "secret" not in str(error)
    assert "https://127.0.0.1:1/none.git" in str(error)


def test_no_git(
    tmp_path: Path,
    refused: "Refused",
    make_task: Callable[..., Task],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    error = refused(make_task())
    assert isinstance(error, MissingDependencyError)
    assert str(error) == "git is not installed; run: apt-get install git"


def test_a_full_disk(
    refused: "Refused", make_task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkout, "write_tree", full)
    error = refused(make_task())
    assert isinstance(error, TemplateError)
    assert re.search(r"below .*/store: No space left on device; free space there", str(error))


def test_a_disk_that_fills_while_git_writes(
    refused: "Refused", make_task: Callable[..., Task]
) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    task = make_task(tree=FilesTree({f"{n}.txt": f"{n}\n" * 40 for n in range(600)}))
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        error = refused(task)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert isinstance(error, TemplateError)


def test_a_store_that_cannot_be_written(tmp_path: Path, make_task: Callable[..., Task]) -> None:
    (tmp_path / "store").write_text("a file where the folder should be")
    with pytest.raises(TemplateError, match=r"below .*/store: .*another folder") as caught:
        TemplateStore(folder=tmp_path / "store").get(make_task())
    assert "\n" not in str(caught.value)
