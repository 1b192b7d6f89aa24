"""Mirrors of repositories heal after a git that was killed, and keep what they have."""

from collections.abc import Callable
from pathlib import Path

import pytest
from workspace_scene import make_task

from coding_gym.errors import TemplateError
from coding_gym.sandbox import open_sandbox
from coding_gym.task import GitTree
from coding_gym.workspace import TemplateStore
from coding_gym.workspace.history import init_repository
from coding_gym.workspace.host_git import HostGit


@pytest.fixture
def upstream(tmp_path: Path) -> Callable[[str], str]:
    """Returns a function that commits a text to a repository, and gives the commit."""
    folder, git = tmp_path / "upstream", HostGit(tmp_path / "settings")
    folder.mkdir()
    init_repository(git, folder)

    def commit(text: str) -> str:
        (folder / "code.py").write_text(text)
        git.run("add", "--all", cwd=folder)
        git.run("commit", "-qm", text, cwd=folder)
        return git.run("rev-parse", "HEAD", cwd=folder)

    return commit


def test_a_mirror_that_git_was_killed_in_is_fetched_into_again(
    fresh_folder: Path, tmp_path: Path, upstream: Callable[[str], str]
) -> None:
    tree = GitTree(f"file://{tmp_path / 'upstream'}")
    store = TemplateStore(folder=fresh_folder)
    store.get(make_task(tree=tree, base_commit=upstream("one")))
    (mirror,) = (fresh_folder / "mirrors").glob("*.git")
    assert (fresh_folder / "mirrors" / f"{mirror.name}.used").read_text() == f"{tree.repository}\n"
    # What a git leaves that is killed while it writes a branch and a pack.
    (mirror / "unfinished").touch()
    (mirror / "refs" / "heads").mkdir(exist_ok=True)
    for left in ("refs/heads/main.lock", "packed-refs.lock", "shallow.lock"):
        (mirror / left).touch()
    (mirror / "objects" / "pack" / "tmp_pack_x").write_text("half")
    template = store.get(make_task(tree=tree, base_commit=upstream("two")))
    with open_sandbox(template.spec) as sandbox:
        assert sandbox.run("cat code.py").output == "two"
    left = [*mirror.rglob("*.lock"), *mirror.rglob("tmp_*"), *mirror.glob("unfinished")]
    assert left == []


def test_a_mirror_keeps_what_it_has_when_a_fetch_fails(
    fresh_folder: Path, tmp_path: Path, upstream: Callable[[str], str]
) -> None:
    tree = GitTree(f"file://{tmp_path / 'upstream'}")
    first = upstream("one")
    TemplateStore(folder=fresh_folder).get(make_task(tree=tree, base_commit=first))
    second = upstream("two")
    (tmp_path / "upstream").rename(tmp_path / "gone")
    with pytest.raises(TemplateError, match="cannot fetch file://"):
        TemplateStore(folder=fresh_folder).get(make_task(tree=tree, base_commit=second))
    again = make_task(tree=tree, base_commit=first, created_at="2024-05-15T09:30:00Z")
    assert TemplateStore(folder=fresh_folder, depth=1).get(again).base_commit == first
