"""Trees without history: their dates, bytes and commit are the same everywhere."""

from pathlib import Path

import pytest
from workspace_scene import inside, make_task

from coding_gym.sandbox import open_sandbox
from coding_gym.task import FilesTree
from coding_gym.workspace import Template, TemplateStore, diff


def test_every_file_is_as_old_as_the_base_commit(template: Template) -> None:
    times = inside(
        template, "find . -name .git -prune -o -printf '%TY-%Tm-%TdT%TT %p\n' | cut -c -19"
    )
    assert set(times.split()) == {"2024-05-14T09:30:00"}
    assert (
        inside(template, "git log -1 --format='%aI %cI'").split()
        == ["2024-05-14T09:30:00+00:00"] * 2
    )


def test_the_commit_of_a_tree_without_history_is_the_same_everywhere(
    template: Template, fresh_folder: Path
) -> None:
    again = TemplateStore(folder=fresh_folder).get(make_task(task_id="another-name"))
    assert again.base_commit == template.base_commit
    assert "program" not in inside(again, "git log --all")


def test_settings_of_the_host_change_nothing(
    template: Template, tmp_path: Path, fresh_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = tmp_path / "templates" / "hooks"
    hooks.mkdir(parents=True)
    ran = tmp_path / "ran"
    for name in ("post-checkout", "reference-transaction", "post-index-change", "fsmonitor"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {ran}\n")
        (hooks / name).chmod(0o755)
    config = tmp_path / "config"
    config.write_text(
        f"[init]\n\ttemplateDir = {hooks.parent}\n\tdefaultBranch = other\n"
        f"[core]\n\thooksPath = {hooks}\n\tfsmonitor = {hooks}/fsmonitor\n\tautocrlf = true\n"
        "[user]\n\tname = Host\n[commit]\n\tgpgSign = true\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(hooks.parent))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Host")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.autocrlf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    made = TemplateStore(folder=fresh_folder).get(make_task())
    assert made.base_commit == template.base_commit
    assert not ran.exists()
    assert inside(made, "ls .git").split() == ["HEAD", "config", "index", "info", "objects", "refs"]


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
