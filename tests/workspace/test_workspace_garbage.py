"""The cache is listed, and only its old entries are removed."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result
from workspace_scene import building

from coding_gym.cli import cache as cache_command
from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.folder_cache import FolderCache
from coding_gym.workspace.cache import CacheEntry, clear_cache, list_cache

pytestmark = pytest.mark.slow

_DAY_S = 86400


def fill(root: Path, name: str, *, days: float = 0) -> None:
    """Makes an entry that was last used a number of days ago."""
    kind, _, key = name.partition("/")
    entry = FolderCache(root / kind).get(key, lambda part: (part / "data").touch())
    used = datetime.now(UTC).timestamp() - days * _DAY_S
    os.utime(entry.with_name(f"{key}.used"), (used, used))


def names(entries: tuple[CacheEntry, ...]) -> list[str]:
    return [entry.name for entry in entries]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    fill(tmp_path, "layers/new")
    fill(tmp_path, "environments/middle", days=3.5)
    fill(tmp_path, "templates/old", days=40)
    return tmp_path


def test_entries_are_listed_the_least_recently_used_first(root: Path) -> None:
    entries = list_cache(root)
    assert names(entries) == ["templates/old", "environments/middle", "layers/new"]
    assert [entry.num_days_unused for entry in entries] == [40, 3, 0]
    assert names(list_cache(root, older_than_days=4)) == ["templates/old"]
    assert list_cache(root / "nowhere") == ()
    with pytest.raises(InvalidArgumentError):
        list_cache(root / "templates" / "old" / "data")


def test_clearing_removes_only_old_entries(root: Path) -> None:
    assert names(clear_cache(root, older_than_days=30)) == ["templates/old"]
    assert {path.name for path in (root / "templates").iterdir()} == {"old.lock"}
    assert names(list_cache(root)) == ["environments/middle", "layers/new"]
    FolderCache(root / "environments").get("middle", lambda _: None)  # a use
    assert clear_cache(root, older_than_days=1) == ()


def test_clearing_keeps_builds_in_progress_and_removes_leftovers(tmp_path: Path) -> None:
    with building(tmp_path / "environments"):
        (tmp_path / "logs").mkdir()
        (tmp_path / "logs" / "key.log").touch()
        (tmp_path / "templates" / "dead.0a1b.partial" / "tree").mkdir(parents=True)
        assert clear_cache(tmp_path) == ()
        assert not any((tmp_path / "templates").glob("*.partial"))
        assert [path.name for path in (tmp_path / "environments").glob("*.partial/*")] == ["half"]
    assert names(clear_cache(tmp_path)) == ["logs/key.log"]
    assert not any((tmp_path / "environments").glob("*.partial"))


def test_command_lists_and_clears_cache(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_command, "user_cache_path", lambda _: root)

    def cli(*arguments: str, answer: str = "") -> Result:
        return CliRunner().invoke(cache_command.app, arguments, input=answer)

    assert cli("list").output.splitlines()[0].startswith("templates/old ")
    assert len(cli("list", "--older-than", "30").output.splitlines()) == 2
    assert cli("clear", answer="n\n").exit_code == 1
    assert len(list_cache(root)) == 3
    assert cli("clear", "--older-than", "30", "--yes").exit_code == 0
    assert len(list_cache(root)) == 2
    assert cli("clear", "--yes").exit_code == 0
    assert list_cache(root) == ()
