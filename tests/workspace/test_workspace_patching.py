"""The patch contains a policy's changes of files, even if the policy also changed git's files."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
from workspace_scene import make_task

from coding_gym.errors import PatchError
from coding_gym.patch import Patch
from coding_gym.sandbox import Sandbox, open_sandbox
from coding_gym.task import FilesTree
from coding_gym.workspace import (
    Template,
    TemplateStore,
    apply_patch,
    diff,
    normalize,
    patching,
    scripts,
)

pytestmark = pytest.mark.slow

EDIT = "sed -i 's/LINE_3 = 3$/LINE_3 = 33/' pkg/core.py && echo new > added.py"

# Commands to run before or together with the same edit; the patch must stay the same.
TRICKS = {
    "nothing": "true",
    "commit": f"{EDIT}; git add -A; git commit -qm x",
    "stash of another change": "echo stashed >> README.md; git stash -q",
    "ignore file": "echo '*' > extra && mkdir -p q && echo '*' > q/.gitignore; rm -r q extra",
    "assume unchanged": "git update-index --assume-unchanged pkg/core.py",
    "fsmonitor": "git config core.fsmonitor /workspace/.git/evil; "
    "printf '#!/bin/sh\\ntouch /tmp/ran\\n' > .git/evil; chmod +x .git/evil",
    "filters": "git config filter.x.clean 'tr a-z A-Z'; echo '* filter=x' > .git/info/attributes",
    "home settings": "git config --global core.excludesFile /tmp/all; echo '*' > /tmp/all; "
    "git config --global diff.external /bin/false; git config --global core.autocrlf true",
    "no git folder": "rm -rf .git",
    "environment files": "echo 'exit 3' > ~/.bashrc; echo 'exit 3' > ~/.bash_profile",
    "a pipe and a socket": "mkfifo pipe; mkfifo pkg/pipe",
    "test caches": "pytest -q; mkdir -p pkg/__pycache__; echo > pkg/__pycache__/a.pyc",
    "ignored files": "echo > a.log; mkdir build; echo > build/x; echo > pkg/sub/local_x",
    "names that git refuses": "mkdir .GIT; echo x > .GIT/x; ln -s x .gitModules",
    "unreadable folder": "mkdir locked && chmod 000 locked && chmod 300 tests",
}


@pytest.mark.parametrize("trick", TRICKS)
def test_the_patch_contains_only_the_edit(sandbox: Sandbox, template: Template, trick: str) -> None:
    sandbox.run(TRICKS[trick])
    if EDIT not in TRICKS[trick]:
        assert diff(sandbox, template).is_empty
    assert sandbox.run(EDIT).ok
    patch = diff(sandbox, template)
    assert [(f.old_path, f.new_path) for f in patch.files] == [
        (None, "added.py"),
        ("pkg/core.py", "pkg/core.py"),
    ]
    assert "-LINE_3 = 3\n+LINE_3 = 33\n" in patch.text
    assert not sandbox.run("test -e /tmp/ran").ok


CHANGES = {
    "same size and old time": "sed -i 's/LINE_3 = 3/LINE_3 = 4/' pkg/core.py; "
    "touch -d 2024-05-14T09:30:00Z pkg/core.py",
    "deleted folder": "rm -r pkg",
    "everything deleted": "find . -mindepth 1 -delete",
    "renamed and edited": "mv pkg/core.py kernel.py; echo x=1 >> kernel.py",
    "binary added": "printf '\\0\\1\\2' > image.png",
    "made executable": "chmod +x pkg/core.py",
    "symlink": "ln -s pkg/core.py link; ln -s /nowhere broken",
    "file became symlink": "rm README.md; ln -s pkg README.md",
    "file became pipe": "rm README.md; mkfifo README.md",
    "folder became symlink": "mv pkg lib; ln -s lib pkg",
    "file became repository": "rm README.md; git init -q README.md; cd README.md; echo x > x; "
    "git add x; git commit -qm x",
    "file names": r"""touch -- $'new\nline' 'qu"ote' "ap'os" -dash ':(no)x' 'back\slash' ' sp ' """
    r"""$'tab\tbed' $'latin-\xe9' 'umlaut-ü' '*'; for f in ./*; do echo x >> "$f"; done; true""",
    "unreadable file": "echo new > new.py; chmod 000 new.py pkg/core.py; chmod +x README.md",
    "in an unreadable folder": "echo x=1 >> pkg/core.py; chmod 000 pkg",
    "no final line feed": "printf 'no end' >> README.md; printf x > new",
    "carriage returns": "sed -i 's/$/\\r/' pkg/core.py; printf 'a\\rb\\r\\nc' > cr",
    "attributes that would change bytes": "echo '* text eol=lf ident' > .gitattributes; "
    "printf 'a\\r\\nb\\r\\n' > README.md; echo '$Id: kept $' > id",
    "git's own names": "echo '[x]' > .gitmodules; echo > .mailmap",
    "ignore file changed": "echo '*.py' > .gitignore; echo x > unseen.py",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_patch_makes_the_same_tree_elsewhere(
    sandbox: Sandbox, template: Template, change: str
) -> None:
    assert sandbox.run(CHANGES[change]).ok
    patch = diff(sandbox, template)
    assert not patch.is_empty
    assert "rename from" in patch.text or change != "renamed and edited"
    listing = (
        "find . -name .git -prune -o \\( -type f -o -type l \\) -print0 | sort -z |"
        " xargs -0 -r stat -c '%A %N' | cut -c 4,5-; find . -name .git -prune -o -type f -print0 |"
        " sort -z | xargs -0 -r sha1sum"
    )
    with open_sandbox(template.spec) as clean:
        apply_patch(clean, patch)
        assert diff(clean, template) == patch
        unlock = "chmod -R u+rwX,go+rX-w .;"  # the only mode in a patch is the executable bit
        assert clean.run(unlock + listing).output == sandbox.run(unlock + listing).output


STATE = "find /workspace /tmp /dev/shm ~ -mindepth 1 -printf '%p %m %s %T@\\n'"
LOCK = f"{EDIT}; chmod 000 pkg/sub; chmod 000 README.md; mkdir -m 0 'x '; git status"


EXCLUDED = {
    "large file": ("head -c 100000 /dev/zero > big.bin; cp big.bin ignored.log", ("big.bin",)),
    "virtual environment": ("python -m venv --without-pip pkg/ve", ("pkg/ve/",)),
    "cloned repository": ("git init -q 'a sub'; echo y > 'a sub/y'", ("a sub/",)),
    "worktree": ("git worktree add -q wt", ("wt/",)),
    "core dump": (r"printf '\177ELF\2\1\1\0' | tee core > pkg/core.12", ("core", "pkg/core.12")),
    "repository in a folder of the base": ("git init -q pkg", ()),
}


@pytest.mark.parametrize("kind", EXCLUDED)
def test_new_files_that_cannot_be_a_repair_are_excluded(
    sandbox: Sandbox, template: Template, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(patching, "MAX_PATCH_BYTES", 1 << 16)
    command, excluded = EXCLUDED[kind]
    assert sandbox.run(command).ok
    assert diff(sandbox, template).is_empty
    assert sandbox.run(f"{EDIT}; echo text > pkg/core").ok
    patch = diff(sandbox, template)
    assert patch.paths == {"added.py", "pkg/core.py", "pkg/core"}
    assert patch.excluded == excluded


def test_many_cloned_repositories_are_excluded_in_time(
    sandbox: Sandbox, template: Template
) -> None:
    clones = "for n in {1..400}; do mkdir -p c$n/.git c$n/src; touch c$n/src/f{1..50}.c; done"
    assert sandbox.run(f"{EDIT}; {clones}; mkdir c1.d; touch c1.d/kept c1kept").ok
    patch = diff(sandbox, template)
    assert patch.paths == {"added.py", "pkg/core.py", "c1.d/kept", "c1kept"}
    assert len(patch.excluded) == 400


def test_a_patch_that_is_too_large_is_refused(
    sandbox: Sandbox, template: Template, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patching, "MAX_PATCH_BYTES", 1 << 16)
    sandbox.run("for n in 1 2 3 4; do head -c 60000 /dev/urandom > f$n; done")
    with pytest.raises(PatchError, match="65536"):
        diff(sandbox, template)
    zeros = "rm f?; head -c 100000 /dev/zero > zeros; git add -N .; git diff --binary; rm zeros"
    with pytest.raises(PatchError, match="a file of 100000 bytes"):
        normalize(sandbox, template, Patch(sandbox.run(zeros).output))


def test_only_changed_large_files_are_refused(
    store: TemplateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = dict.fromkeys(("a.py", ":(no)x"), "0\n" * 200)
    template = store.get(make_task(tree=FilesTree(files | {"README.md": ""})))
    monkeypatch.setattr(patching, "MAX_PATCH_BYTES", 100)
    with open_sandbox(template.spec) as sandbox:
        # As in backends that copy the tree: younger than the template.
        assert sandbox.run("for f in ./*; do cp $f x; mv x $f; done; echo >> README.md").ok
        assert diff(sandbox, template).paths == {"README.md"}
        sandbox.run("echo >> a.py")
        with pytest.raises(PatchError, match=r"a\.py"):
            diff(sandbox, template)


def test_a_full_disk_is_an_error(sandbox: Sandbox, template: Template) -> None:
    sandbox.run(f"{EDIT}; cat /dev/zero > fill.log")
    with pytest.raises(PatchError):
        diff(sandbox, template)


@pytest.mark.parametrize(
    ("addition", "message"),
    [("true", None), ("sleep 600", "took more than 3 s"), ("tail /dev/zero", "memory")],
    ids=["complete", "late", "large"],
)
def test_a_diff_changes_nothing_even_if_it_is_killed(
    template: Template, monkeypatch: pytest.MonkeyPatch, addition: str, message: str | None
) -> None:
    limits = replace(template.spec.limits, memory_bytes=64 << 20)
    with open_sandbox(replace(template.spec, limits=limits)) as sandbox:
        sandbox.run(LOCK)
        before = sandbox.run(STATE).output
        # All modes have been changed by then.
        script = scripts.BASE_GIT_SCRIPT.replace("print_result ;;", f"{addition}; print_result ;;")
        monkeypatch.setattr(scripts, "BASE_GIT_SCRIPT", script)
        monkeypatch.setattr(patching, "TIMEOUT_S", 3.0 if message else 120.0)
        with pytest.raises(PatchError, match=message) if message else nullcontext():
            diff(sandbox, template)
        assert sandbox.run(STATE).output == before


BAD_PATCHES = {
    "outside": "--- /dev/null\n+++ b/../out.py\n@@ -0,0 +1 @@\n+b\n",
    "through a symlink": "--- /dev/null\n+++ b/out.log/x.py\n@@ -0,0 +1 @@\n+b\n",
    "in the git folder": "--- /dev/null\n+++ b/.git/hooks/x\n@@ -0,0 +1 @@\n+b\n",
    "no text": "--- /dev/null\n+++ b/x.py\n@@ -0,0 +1 @@\n+\ud800\n",
}
_GOOD = "--- /dev/null\n+++ b/first.py\n@@ -0,0 +1 @@\n+b\n"


@pytest.mark.parametrize(
    "text", ["hello\n", *(_GOOD + bad for bad in BAD_PATCHES.values())], ids=["none", *BAD_PATCHES]
)
def test_a_failed_patch_changes_nothing(sandbox: Sandbox, template: Template, text: str) -> None:
    sandbox.run("ln -s /tmp out.log")
    with pytest.raises(PatchError, match=r"^[^\n]+$"):
        apply_patch(sandbox, Patch(text))
    assert diff(sandbox, template).is_empty
    assert not sandbox.run("test -e /tmp/x.py").ok


def test_a_diff_of_many_files_copies_no_files(template: Template) -> None:
    limits = replace(template.spec.limits, num_inodes=5000)
    with open_sandbox(replace(template.spec, limits=limits)) as sandbox:
        assert sandbox.run("for n in {1..3000}; do echo $n > $n.txt; done").ok
        assert len(diff(sandbox, template).files) == 3000
