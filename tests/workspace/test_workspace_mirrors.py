"""Mirrors of repositories heal after a git that was killed, and keep what they have."""

from pathlib import Path

import pytest
from workspace_scene import make_repository, make_task

from coding_gym.errors import TemplateError
from coding_gym.sandbox import open_sandbox
from coding_gym.task import GitTree
from coding_gym.workspace import TemplateStore


def test_a_mirror_that_a_killed_git_left_is_fetched_into_again(
    fresh_folder: Path, tmp_path: Path
) -> None:
    upstream = tmp_path / "upstream"
    tree = GitTree(f"file://{upstream}")
    store = TemplateStore(folder=fresh_folder)
    (first,) = make_repository(upstream, "one")
    store.get(make_task(tree=tree, base_commit=first))
    (mirror,) = (fresh_folder / "mirrors").glob("*.git")
    assert (fresh_folder / "mirrors" / f"{mirror.name}.used").read_text() == f"{tree.repository}\n"
    # What a git leaves that is killed while it writes a branch and a pack.
    (mirror / "unfinished").touch()
    (mirror / "refs" / "heads").mkdir(exist_ok=True)
    for left in ("refs/heads/main.lock", "packed-refs.lock", "shallow.lock"):
        (mirror / left).touch()
    (mirror / "objects" / "pack" / "tmp_pack_x").write_text("half")
    (second,) = make_repository(upstream, "two")
    template = store.get(make_task(tree=tree, base_commit=second))
    with open_sandbox(template.spec) as sandbox:
        assert sandbox.run("cat code.py").output == "two"
    left = [*mirror.rglob("*.lock"), *mirror.rglob("tmp_*"), *mirror.glob("unfinished")]
    assert left == []


def test_a_mirror_keeps_what_it_has_when_a_fetch_fails(fresh_folder: Path, tmp_path: Path) -> None:
    upstream = tmp_path / "upstream"
    tree = GitTree(f"file://{upstream}")
    (first,) = make_repository(upstream, "one")
    TemplateStore(folder=fresh_folder).get(make_task(tree=tree, base_commit=first))
    (second,) = make_repository(upstream, "two")
    upstream.rename(tmp_path / "gone")
    with pytest.raises(TemplateError, match="cannot fetch file://"):
        TemplateStore(folder=fresh_folder).get(make_task(tree=tree, base_commit=second))
    again = make_task(tree=tree, base_commit=first, created_at="2024-05-15T09:30:00Z")
    assert TemplateStore(folder=fresh_folder, depth=1).get(again).base_commit == first
