"""Templates are built once, completely or not at all, and again if their content changes."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sandbox_fixtures import write_files
from workspace_scene import building, inside, make_task

from coding_gym.patch import Patch
from coding_gym.sandbox import open_sandbox
from coding_gym.sandbox.folder_cache import FolderCache
from coding_gym.sandbox.images.store import layer_folder
from coding_gym.sandbox.ownership import make_upper
from coding_gym.task import FilesTree, FolderTree
from coding_gym.workspace import Template, TemplateStore, checkout, diff


def test_another_store_finds_the_template_on_disk(
    store_folder: Path, template: Template, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkout.Checkouts, "write", None)  # nothing can be built
    assert TemplateStore(folder=store_folder).get(make_task()) == template


@pytest.mark.parametrize(
    ("fields", "is_same"),
    [
        ({"created_at": "2024-05-14T09:30:01Z"}, False),
        ({"tree": FilesTree({"a.py": ""})}, False),
        ({"interpreter": "{}.{}".format(*sys.version_info)}, True),
        ({"problem_statement": "Other words.", "gold_patch": "x", "test_patch": "y"}, True),
    ],
    ids=["date", "files", "same interpreter by version", "fields outside the tree"],
)
def test_the_key_depends_only_on_tree_and_interpreter(
    store: TemplateStore, template: Template, fields: dict[str, Any], is_same: bool
) -> None:
    assert (store.get(make_task(**fields)).key == template.key) is is_same


def test_a_folder_is_copied_without_ignored_files(tmp_path: Path, store: TemplateStore) -> None:
    source = tmp_path / "source"
    files = {"pkg/code.py": "x = 1\n", "run.sh": "#!/bin/sh\n", ".gitignore": "*.log\n"}
    ignored = ("pkg/__pycache__/code.pyc", "pkg/.git/config", "local.log")
    write_files(source, files | dict.fromkeys(ignored, "x"))
    (source / "run.sh").chmod(0o700)
    (source / "link").symlink_to("pkg/code.py")
    template = store.get(make_task(tree=FolderTree(str(source))))
    (source / "pkg" / "code.py").write_text("x = 2\n")
    assert store.get(make_task(tree=FolderTree(str(source)))).key != template.key
    with open_sandbox(template.spec) as sandbox:
        result = sandbox.run("find . -name .git -prune -o ! -type d -printf '%P %m\\n' | sort")
        assert result.output == ".gitignore 644\nlink 777\npkg/code.py 644\nrun.sh 755\n"
        assert sandbox.run("git ls-files | wc -l").output.strip() == "4"


def test_a_reverse_patch_is_applied_in_reverse(tmp_path: Path, store: TemplateStore) -> None:
    base = {"a.py": "x = 1\n", "gone.py": "y = 1", "crlf.py": "z = 1\r\nz = 2\r\n"}
    fixed = {"a.py": "x = 2\n", "new/b.py": "w = 1\n", "crlf.py": "z = 1\r\nz = 3\r\n"}
    tree = FolderTree(str(write_files(tmp_path, fixed)), Patch.between(base, fixed).text)
    template = store.get(make_task(tree=tree))
    with open_sandbox(template.spec) as sandbox:
        assert {name: sandbox.read_file(name).decode() for name in base} == base
        assert sandbox.run("git ls-files").output.split() == sorted(base)


@pytest.mark.parametrize("key", ["key", "other"])
def test_the_folder_of_a_killed_build_is_not_used(tmp_path: Path, key: str) -> None:
    with building(tmp_path) as (process, _):
        process.kill()
        process.join()
    cache = FolderCache(tmp_path)
    assert not cache.path("key").exists()
    assert (cache.get(key, lambda part: (part / "whole").touch()) / "whole").exists()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [key]


def test_a_build_of_another_process_is_awaited_and_kept(tmp_path: Path) -> None:
    with building(tmp_path) as (process, resume):
        cache = FolderCache(tmp_path)
        cache.get("other", lambda _: None)
        assert [path.name for path in tmp_path.glob("key.*.partial/*")] == ["half"]
        resume.set()
        folder = cache.get("key", lambda _: pytest.fail("built twice"))
        assert sorted(path.name for path in folder.iterdir()) == ["half", "whole"]
        process.join()
        assert process.exitcode == 0


@pytest.mark.parametrize(
    "use", [TemplateStore, layer_folder, lambda: make_upper((os.geteuid(), os.getegid()))]
)
def test_the_cache_of_the_user_is_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[], object]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = tmp_path / "coding_gym"
    umask = os.umask(0o002)
    try:
        use()
    finally:
        os.umask(umask)
    assert cache.stat().st_mode & 0o777 == 0o700
    cache.chmod(0o775)  # as older versions made it
    use()
    assert cache.stat().st_mode & 0o777 == 0o700


def test_a_template_does_not_depend_on_the_umask(tmp_path: Path, template: Template) -> None:
    umask = os.umask(0o077)
    try:
        strict = TemplateStore(folder=tmp_path / "store").get(make_task())
    finally:
        os.umask(umask)
    listing = "find . /opt/base.git -printf '%p %m %U\\n' | sort"
    with open_sandbox(strict.spec) as sandbox, open_sandbox(template.spec) as reference:
        assert sandbox.run(listing).output == reference.run(listing).output
        assert sandbox.run("pytest -q").ok


def test_every_file_has_the_date_of_the_base_commit(template: Template) -> None:
    times = inside(
        template, "find . -name .git -prune -o -printf '%TY-%Tm-%TdT%TT %p\n' | cut -c -19"
    )
    assert set(times.split()) == {"2024-05-14T09:30:00"}
    assert (
        inside(template, "git log -1 --format='%aI %cI'").split()
        == ["2024-05-14T09:30:00+00:00"] * 2
    )


def test_settings_of_the_host_do_not_affect_templates(
    template: Template, tmp_path: Path, fresh_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = tmp_path / "templates" / "hooks"
    hooks.mkdir(parents=True)
    trace = tmp_path / "trace"
    for name in ("post-checkout", "reference-transaction", "post-index-change", "fsmonitor"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {trace}\n")
        (hooks / name).chmod(0o755)
    config = tmp_path / "config"
    config.write_text(
        f"[init]\n\ttemplateDir = {hooks.parent}\n\tdefaultBranch = other\n"
        f"[core]\n\thooksPath = {hooks}\n\tfsmonitor = {hooks}/fsmonitor\n\tautocrlf = true\n"
        "[user]\n\tname = Host\n[commit]\n\tgpgSign = true\n"
    )
    variables = {
        "GIT_CONFIG_GLOBAL": config,
        "GIT_TEMPLATE_DIR": hooks.parent,
        "GIT_DIR": tmp_path / "nowhere",
        "GIT_INDEX_FILE": tmp_path / "index",
        "GIT_AUTHOR_NAME": "Host",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.autocrlf",
        "GIT_CONFIG_VALUE_0": "true",
        "TZ": "Asia/Tokyo",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))
    other = TemplateStore(folder=fresh_folder).get(make_task(task_id="another-name"))
    assert other.base_commit == template.base_commit
    assert "program" not in inside(other, "git log --all")
    assert not trace.exists()
    names = ["HEAD", "config", "index", "info", "objects", "refs"]
    assert inside(other, "ls .git").split() == names


def test_files_are_the_bytes_that_were_committed(store: TemplateStore) -> None:
    files = {
        ".gitattributes": "* text=auto eol=crlf\n*.txt ident working-tree-encoding=UTF-16\n",
        "a.py": "lf\n",
        "b.py": "crlf\r\n",
        "c.txt": "$Id$\n",
        "ignored.log": "kept, because it was given\n",
        ".gitignore": "*.log\n",
        "latin": "caf\udce9",
    }
    template = store.get(make_task(tree=FilesTree(files)))
    with open_sandbox(template.spec) as sandbox:
        for name, text in files.items():
            assert sandbox.read_file(name) == text.encode("utf-8", "surrogateescape")
        assert sandbox.run("git status -s").output == ""
        assert diff(sandbox, template).is_empty
