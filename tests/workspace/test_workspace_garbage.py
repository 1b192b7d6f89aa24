"""Lists of the cache's entries, and removal of old entries."""

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result
from workspace_scene import building, inside, make_task

from coding_gym.cli import cache as cache_command
from coding_gym.cli.app import app
from coding_gym.sandbox.folder_cache import FolderCache
from coding_gym.workspace import TemplateStore
from coding_gym.workspace.cache import clear_cache, list_cache

pytestmark = pytest.mark.slow

_DAY_S = 86400


def fill(root: Path, name: str, *, days: float = 0) -> None:
    """Makes a cache entry whose last use was a number of days ago."""
    kind, _, key = name.partition("/")
    entry = FolderCache(root / kind).get(key, lambda part: (part / "data").touch())
    used_s = datetime.now(UTC).timestamp() - days * _DAY_S
    os.utime(entry.with_name(f"{key}.used"), (used_s, used_s))


def cache(*arguments: str, answer: str = "") -> Result:
    return CliRunner().invoke(app, ("cache", *arguments), input=answer)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cache_command, "user_cache_path", lambda _: tmp_path)
    return tmp_path


def test_old_entries_are_listed_first_and_removed(root: Path) -> None:
    fill(root, "layers/new")
    fill(root, "environments/middle", days=3.5)
    fill(root, "templates/old", days=40)
    expected = [["templates/old", "40"], ["environments/middle", "3"], ["layers/new", "0"]]
    refused = cache("clear", answer="n\n")
    lines = refused.output.splitlines()[:3]
    assert [[line.split()[0], line.split()[-2]] for line in lines] == expected
    assert refused.exit_code == 1
    assert len(list_cache(root)) == 3
    assert cache("clear", "--older-than", "30", "--yes").output.startswith("templates/old ")
    assert {path.name for path in (root / "templates").iterdir()} == {"old.lock"}
    FolderCache(root / "environments").get("middle", lambda _: None)  # a use
    assert cache("clear", "--older-than", "1", "--yes").output == "removed 0 entries\n"
    assert cache("clear", answer="y\n").exit_code == 0
    assert list_cache(root) == list_cache(root / "nowhere") == ()


def test_a_store_builds_removed_entries_again(fresh_folder: Path) -> None:
    store, task = TemplateStore(folder=fresh_folder), make_task()
    for kind in ("templates", "pytest"):
        assert store.get(task) is store.get(task)
        shutil.rmtree(fresh_folder / kind)
        assert inside(store.get(task), "cat README.md; python -m pytest --version")


def test_clearing_keeps_builds_in_progress_and_removes_leftovers(tmp_path: Path) -> None:
    with building(tmp_path / "environments"):
        (tmp_path / "logs").mkdir()
        (tmp_path / "logs" / "key.log").touch()
        (tmp_path / "templates" / "dead.0a1b.partial" / "tree").mkdir(parents=True)
        assert clear_cache(tmp_path) == ()
        assert not any((tmp_path / "templates").glob("*.partial"))
        assert [path.name for path in (tmp_path / "environments").glob("*.partial/*")] == ["half"]
    assert [entry.name for entry in clear_cache(tmp_path)] == ["logs/key.log"]
    assert not any((tmp_path / "environments").glob("*.partial"))
