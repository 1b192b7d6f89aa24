"""A template's repository contains only the base commit and its ancestors, and fixed settings."""

import os
from pathlib import Path
from typing import NamedTuple

import pytest
from sandbox_fixtures import commit, run_git
from workspace_scene import inside, make_repository, make_task

from coding_gym.errors import TemplateError
from coding_gym.sandbox import open_sandbox
from coding_gym.sandbox.ownership import remove_folder
from coding_gym.task import GitTree
from coding_gym.workspace import Template, TemplateStore, checkout, diff


class Repository(NamedTuple):
    folder: Path
    base: str


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Two commits before the base, then the fix on another branch, a tag and a stash."""
    folder = tmp_path_factory.mktemp("source") / "a project"
    first, second, base, _ = make_repository(folder, "one\n", "two\n", "bug\n", "fixed\n")
    run_git(folder, "branch", "-m", "trunk")
    run_git(folder, "tag", "-a", "v4", "-m", "fixed")
    run_git(folder, "switch", "-q", "-c", "topic", first)
    commit(folder, {"side.py": "side = 1\n"})
    run_git(folder, "tag", "old", second)
    (folder / "side.py").write_text("stashed\n")
    run_git(folder, "stash")
    return Repository(folder, base)


@pytest.fixture(scope="module")
def git_template(repository: Repository, store: TemplateStore) -> Template:
    tree = GitTree(str(repository.folder))
    return store.get(make_task(tree=tree, base_commit=repository.base))


def test_the_checkout_is_at_the_base(git_template: Template, repository: Repository) -> None:
    assert git_template.base_commit == repository.base
    output = inside(git_template, "git rev-parse HEAD; git branch --show-current; git status -s")
    assert output == f"{repository.base}\nmain\n"
    assert inside(git_template, "cat code.py") == "bug\n"


@pytest.mark.parametrize("git_folder", ["/workspace/.git", "/opt/base.git"])
def test_a_git_folder_has_only_the_base_and_its_ancestors(
    git_template: Template, repository: Repository, git_folder: str
) -> None:
    output = inside(
        git_template,
        f"git --git-dir {git_folder} cat-file --batch-all-objects --batch-check='%(objectname)'",
    )
    expected = run_git(
        repository.folder, "rev-list", "--objects", "--no-object-names", repository.base
    )
    assert set(output.split()) == set(expected.split())
    command = f"cd {git_folder}; git for-each-ref; git reflog --all; git remote; ls"
    base, *names = inside(git_template, command).splitlines()
    assert base == f"{repository.base} commit\trefs/heads/main"
    git_names = {"HEAD", "config", "index", "info", "objects", "refs"}
    assert set(names) <= git_names | {"base-paths", "base-ignores"}


def test_history_has_a_bounded_depth(
    repository: Repository, fresh_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkout, "_DEPTH", 2)
    task = make_task(tree=GitTree(str(repository.folder)), base_commit=repository.base)
    template = TemplateStore(folder=fresh_folder).get(task)
    assert inside(template, "git log --all --format=%H | wc -l").strip() == "2"
    assert inside(template, "git fsck --strict 2>&1") == ""
    assert diff_is_empty(template)


def diff_is_empty(template: Template) -> bool:
    with open_sandbox(template.spec) as sandbox:
        return diff(sandbox, template).is_empty


def test_programs_of_a_hostile_repository_do_not_run(store: TemplateStore, tmp_path: Path) -> None:
    source, trace = tmp_path / "source", tmp_path / "trace"
    source.mkdir()
    run_git(source, "init", "-q")
    (source / ".gitattributes").write_text("*.py filter=evil diff=evil eol=crlf ident\n")
    (source / ".gitmodules").write_text(
        f'[submodule "sub"]\n\tpath = sub\n\turl = {tmp_path}/evil\n\tupdate = !touch {trace}\n'
    )
    base = commit(source, {"code.py": "print('$Id$')\n"})
    evil = source / ".git" / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {trace}\ncat\n")
    evil.chmod(0o755)
    for name in ("post-checkout", "pre-upload", "post-upload", "reference-transaction"):
        (source / ".git" / "hooks").mkdir(exist_ok=True)
        (source / ".git" / "hooks" / name).symlink_to(evil)
    settings = ("core.fsmonitor", "filter.evil.smudge", "filter.evil.clean", "diff.evil.textconv")
    for setting in (*settings, "uploadpack.packObjectsHook", "core.sshCommand", "gpg.program"):
        run_git(source, "config", setting, str(evil))
    task = make_task(tree=GitTree(str(source)), base_commit=base)
    template = store.get(task)
    assert not trace.exists()
    assert inside(template, "cat code.py; git status -s") == "print('$Id$')\n"
    assert diff_is_empty(template)


def test_submodules_stay_empty_and_out_of_the_patch(store: TemplateStore, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    run_git(source, "init", "-q")
    run_git(source, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendored/lib")
    (source / "code.py").write_text("x = 1\n")
    run_git(source, "add", "code.py")
    run_git(source, "commit", "-q", "-m", "with a submodule")
    base = run_git(source, "rev-parse", "HEAD")
    template = store.get(make_task(tree=GitTree(str(source)), base_commit=base))
    with open_sandbox(template.spec) as sandbox:
        assert sandbox.run("git status -s; ls vendored/lib").output == ""
        sandbox.run("git init -q vendored/lib; echo > vendored/lib/x.py; echo > vendored/new.py")
        patch = diff(sandbox, template)
        assert (patch.paths, patch.excluded) == ({"vendored/new.py"}, ())


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_repository_that_never_answers_is_an_error(
    fresh_folder: Path, tmp_path: Path, scheme: str
) -> None:
    (base,) = make_repository(tmp_path / "clone", "one")
    os.mkfifo(tmp_path / "clone" / ".git" / "packed-refs")
    task = make_task(tree=GitTree(f"{scheme}{tmp_path}/clone"), base_commit=base)
    with pytest.raises(TemplateError, match="build_timeout_s"):
        TemplateStore(folder=fresh_folder, build_timeout_s=0.5).get(task)


def test_a_mirror_follows_renamed_branches_and_outlives_its_upstream(
    fresh_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream = tmp_path / "upstream"

    def template(commit: str, folder: Path = fresh_folder) -> Template:
        task = make_task(tree=GitTree(f"file://{upstream}"), base_commit=commit)
        return TemplateStore(folder=folder).get(task)

    monkeypatch.chdir(fresh_folder.parent)
    commits: list[str] = []
    for name in ("release", "release/1.0", "release"):
        commits += make_repository(upstream, f"{len(commits)}")
        run_git(upstream, "branch", "-m", name)
        relative = Path(fresh_folder.name)
        assert template(commits[-1], relative).base_commit == commits[-1]
    (unfetched_commit,) = make_repository(upstream, "never fetched")
    upstream.rename(tmp_path / "gone")
    with pytest.raises(TemplateError, match="file://"):
        template(unfetched_commit)
    remove_folder(fresh_folder / "templates")
    assert template(commits[0]).base_commit == commits[0]
