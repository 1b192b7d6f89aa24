"""The cache is listed, and cleared of what nobody needs and nothing else."""

import gc
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result
from workspace_scene import building, make_task

from coding_gym.cli import cache as cache_command
from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.sandbox import open_sandbox
from coding_gym.sandbox.folder_cache import CacheUses, FolderCache
from coding_gym.workspace import TemplateStore
from coding_gym.workspace.cache import KINDS, GarbageReport, collect_garbage, find_log, list_cache

pytestmark = pytest.mark.slow

_DAY_S = 86400
_CHUNK = 1 << 16


def fill(root: Path, name: str, *, days: float = 0, chunks: int = 1, user: str = "") -> Path:
    """Makes an entry that was last used so many days ago by a process that is gone."""
    kind, _, key = name.partition("/")
    uses = CacheUses(root)
    cache = FolderCache(root / kind, uses)

    def build(part: Path) -> None:
        (part / "data").write_bytes(b"x" * _CHUNK * chunks)

    entry = cache.get(key, build, user=user)
    used = datetime.now(UTC).timestamp() - days * _DAY_S
    os.utime(entry.with_name(f"{key}.used"), (used, used))
    return entry


def names(report: GarbageReport) -> list[str]:
    return [entry.name for entry in report.removed]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    fill(tmp_path, "templates/old", days=40, user="task-1")
    fill(tmp_path, "environments/big", days=3, chunks=10, user="task-2")
    fill(tmp_path, "layers/new")
    gc.collect()
    return tmp_path


def test_what_lies_in_the_cache_is_listed_the_least_recently_used_first(root: Path) -> None:
    old, big, new = list_cache(root)
    assert [entry.name for entry in (old, big, new)] == [
        "templates/old",
        "environments/big",
        "layers/new",
    ]
    assert (old.users, big.users, new.users) == (("task-1",), ("task-2",), ())
    assert big.num_bytes >= 10 * _CHUNK > new.num_bytes >= _CHUNK
    now = datetime.now(UTC)
    assert round((now - big.used_at).total_seconds() / _DAY_S) == 3
    assert (now - big.built_at).total_seconds() < _DAY_S
    assert not any(entry.in_use for entry in (old, big, new))
    with CacheUses(root).unused(old.name):  # as another one who looks, or removes it
        assert not list_cache(root)[0].in_use
    assert list_cache(root, ["layers"]) == (new,)
    assert json.loads(json.dumps(old.to_json()))["users"] == ["task-1"]


def test_what_was_not_used_for_long_goes(root: Path) -> None:
    (root / "uses").mkdir()  # an earlier version noted there what it used
    report = collect_garbage(root, unused_for_s=30 * _DAY_S)
    assert names(report) == ["templates/old"]
    assert report.num_bytes_removed >= _CHUNK
    assert report.num_bytes_kept >= 11 * _CHUNK
    left = {path.name for path in (root / "templates").iterdir()}
    assert left == {"old.lock"}
    assert not (root / "uses").exists()
    assert [entry.name for entry in list_cache(root)] == ["environments/big", "layers/new"]


def test_of_too_much_the_least_recently_used_goes_until_it_fits(root: Path) -> None:
    report = collect_garbage(root, max_bytes=11 * _CHUNK + _CHUNK // 2)
    assert names(report) == ["templates/old"]
    report = collect_garbage(root, max_bytes=3 * _CHUNK)
    assert names(report) == ["environments/big"]
    assert names(collect_garbage(root, max_bytes=3 * _CHUNK)) == []


def test_a_dry_run_says_the_same_and_removes_nothing(root: Path) -> None:
    before = list_cache(root)
    report = collect_garbage(root, unused_for_s=0, dry_run=True)
    assert len(report.removed) == 3
    assert list_cache(root) == before


def test_a_template_in_use_stays_and_one_that_went_is_made_again(fresh_folder: Path) -> None:
    store = TemplateStore(folder=fresh_folder)
    template = store.get(make_task())
    report = collect_garbage(fresh_folder, unused_for_s=0)
    spared = {entry.kind: entry for entry in report.spared}
    assert spared.keys() == {"templates", "pytest"}
    assert spared["templates"].users == ("program-1",)
    with open_sandbox(template.spec) as sandbox:
        assert sandbox.run("cat README.md").ok
    del store
    gc.collect()
    report = collect_garbage(fresh_folder, unused_for_s=0, kinds=["templates"])
    assert names(report) == [f"templates/{template.key}"]
    again = TemplateStore(folder=fresh_folder).get(make_task())
    assert again == template
    with open_sandbox(again.spec) as sandbox:
        assert sandbox.run("cat README.md").ok


def test_what_is_being_built_stays_and_what_a_killed_build_left_goes(tmp_path: Path) -> None:
    with building(tmp_path / "environments"):
        (tmp_path / "downloads" / "key").mkdir(parents=True)
        (tmp_path / "templates" / "dead.0a1b.partial" / "tree").mkdir(parents=True)
        report = collect_garbage(tmp_path, unused_for_s=0)
        assert (names(report), [entry.name for entry in report.spared]) == ([], ["downloads/key"])
        assert report.num_leftovers == 1
        assert [path.name for path in (tmp_path / "environments").glob("*.partial/*")] == ["half"]
    report = collect_garbage(tmp_path, unused_for_s=0)
    assert (names(report), report.num_leftovers) == (["downloads/key"], 1)
    assert not any((tmp_path / "environments").glob("*.partial"))


def test_every_folder_that_a_store_makes_is_of_a_kind_that_is_known(store_folder: Path) -> None:
    made = {path.name for path in store_folder.iterdir() if path.is_dir()}
    assert made <= {*KINDS, "in-use"}


def test_command_lists_and_clears(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_command, "user_cache_path", lambda _: root)

    def cli(*arguments: str, answer: str = "") -> Result:
        return CliRunner().invoke(cache_command.app, arguments, input=answer)

    assert cli("ls").output.splitlines()[0].startswith("templates/old ")
    assert "templates/old" in cli("clear", "--unused-days", "30", "--dry-run").output
    assert len(list_cache(root)) == 3
    assert cli("clear", answer="n\n").exit_code == 1
    assert cli("clear", "--unused-days", "30", "--yes").exit_code == 0
    assert len(list_cache(root)) == 2
    assert cli("clear", "--yes").exit_code == 0
    assert list_cache(root) == ()
    assert isinstance(cli("clear", "--kind", "x").exception, UnknownNameError)


def test_a_log_is_found_by_the_beginning_of_its_key(root: Path) -> None:
    (root / "logs").mkdir()
    (root / "logs" / "abc123.log").write_text("$ make\n")
    (root / "environments" / "big" / "build.log").write_text("$ true\n")
    assert find_log(root, "abc").read_text() == "$ make\n"
    assert find_log(root, "big").read_text() == "$ true\n"
    for key in ("", "x"):
        with pytest.raises(InvalidArgumentError):
            find_log(root, key)
