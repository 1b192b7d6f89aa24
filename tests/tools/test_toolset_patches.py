"""Patches of the toolset ``codex``: what is read, where it goes in, all or nothing."""

import json
import random
from typing import Any

import pytest
from episodes import Scene

from coding_gym.patch import Patch
from coding_gym.sandbox import SandboxLimits, SandboxSpec, default_interpreter
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.tools.patches import MAX_PATCH_CHARS, read_patch
from coding_gym.tools.patching import apply_hunks
from coding_gym.tools.toolset import Refusal

STATE = "find . -mindepth 1 -printf '%p %y %m %l\\n' | sort; find . -type f | sort | xargs cat"


TOOLSET = "codex"
FILES = {"a.py": "one\ntwo\nthree\n", "b.py": "x = 1\n"}


def apply(scene: Scene, patch: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(scene.reply("apply_patch", patch=patch))
    return result


def patched(text: str, patch: str) -> str:
    """A text after a patch of one file."""
    (file,) = read_patch(patch)
    return apply_hunks(text, file.hunks, is_loose=file.is_loose)[0]


UPDATE = "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"


def test_files_are_changed_added_deleted_and_renamed_at_once(scene: Scene) -> None:
    scene.sandbox.run("chmod 755 b.py")
    patch = (
        f"diff --git a/a.py b/a.py\n{UPDATE}"
        "diff --git a/new/n.sh b/new/n.sh\nnew file mode 100755\n--- /dev/null\n+++ b/new/n.sh\n"
        "@@ -0,0 +1 @@\n+echo\n"
        "diff --git a/b.py b/c.py\nsimilarity index 50%\nrename from b.py\nrename to c.py\n"
        "--- a/b.py\n+++ b/c.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    )
    assert apply(scene, patch) == {
        "applied": True,
        "files": [
            {"action": "updated", "hunks": [1], "path": "a.py"},
            {"action": "added", "hunks": [1], "path": "new/n.sh"},
            {"action": "renamed", "hunks": [1], "path": "c.py"},
        ],
    }
    ran = scene.sandbox.run("cat a.py c.py new/n.sh; stat -c '%n %a' * new/*").output
    assert ran == "one\n2\nthree\nx = 2\necho\na.py 644\nc.py 755\nnew 755\nnew/n.sh 755\n"
    gone = "--- a/c.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 2\n"
    assert apply(scene, gone)["files"] == [{"action": "deleted", "hunks": [1], "path": "c.py"}]
    assert not scene.sandbox.run("ls c.py").ok


def test_an_envelope_does_the_same(scene: Scene) -> None:
    scene.sandbox.run("chmod 755 b.py")
    patch = (
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.py\n@@ one\n-two\n+2\n@@\n"
        " three\n+four\n*** End of File\n*** Add File: d/n.txt\n+new\n+\n*** Update File: b.py\n"
        "*** Move to: c.py\n*** End Patch\nEOF"
    )
    assert [file["action"] for file in apply(scene, patch)["files"]] == [
        "updated",
        "added",
        "renamed",
    ]
    ran = scene.sandbox.run("cat a.py d/n.txt c.py; stat -c %a c.py; ls b.py").output
    assert ran.startswith("one\n2\nthree\nfour\nnew\n\nx = 1\n755\nls: ")
    deletions = (
        f"*** Begin Patch\n*** Delete File: {name}\n*** End Patch" for name in ("c.py", "a.py")
    )
    assert len(apply(scene, "\n".join(deletions))["files"]) == 2
    assert scene.sandbox.run("ls").output == "d\n"


@pytest.mark.parametrize(
    "bad",
    [
        "--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-y = 1\n+y = 2\n",
        "--- /dev/null\n+++ b/b.py\n@@ -0,0 +1 @@\n+y\n",
        "--- /dev/null\n+++ b/../evil.py\n@@ -0,0 +1 @@\n+y\n",
        "--- /dev/null\n+++ b/out/evil.py\n@@ -0,0 +1 @@\n+y\n",
        "--- /dev/null\n+++ b/b.py/below\n@@ -0,0 +1 @@\n+y\n",
        "--- a/link\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\n",
        "--- a/locked\n+++ b/locked\n@@ -1 +1 @@\n-x = 1\n+x = 2\n",
    ],
)
def test_where_one_file_cannot_be_changed_none_is(scene: Scene, bad: str) -> None:
    scene.sandbox.run("ln -s b.py link; ln -s /tmp out; mkdir folder; printf '\\0' > data")
    scene.sandbox.run("echo 'x = 1' > locked; chmod 444 locked")
    before = scene.sandbox.run(STATE).output
    added = "--- /dev/null\n+++ b/n/e/w.py\n@@ -0,0 +1 @@\n+y\n"
    removed = "--- a/a.py\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n"
    for order in (f"{UPDATE}{added}{bad}", f"{removed}{added}{bad}", f"{bad}{added}"):
        result = apply(scene, order)
        assert list(result) == ["error"]
        assert scene.sandbox.run(STATE).output == before
    assert not scene.sandbox.run("ls /tmp/evil.py ../evil.py").ok


def test_what_was_written_is_taken_back_on_a_full_disk() -> None:
    limits = SandboxLimits(disk_bytes=1 << 20)
    with NamespaceBackend().open(SandboxSpec(python=default_interpreter(), limits=limits)) as box:
        scene = Scene(box, toolset="codex")
        box.write_file("a.py", b"one\ntwo\nthree\n")
        box.write_file("run.sh", b"run\n")
        box.run("chmod 700 run.sh")
        before = box.run(STATE).output
        large = "".join(f"+line {number}\n" for number in range(200_000))
        patch = (
            "*** Begin Patch\n*** Update File: a.py\n-two\n+2\n*** Delete File: run.sh\n"
            f"*** Add File: d/small\n+x\n*** Add File: large\n{large}*** End Patch"
        )
        assert len(patch) > MAX_PATCH_CHARS
        assert list(apply(scene, patch)) == ["error"]
        patch = patch.replace(large, large[: MAX_PATCH_CHARS - 1000].rpartition("\n")[0] + "\n")
        box.run("dd if=/dev/zero of=/tmp/fill bs=4096 count=100 2>/dev/null")
        assert "large" in apply(scene, patch)["error"]
        assert box.run(STATE).output == before


def test_hunks_go_where_they_are_meant() -> None:
    for text, hunk, after in [
        ("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c", "a\nc\n"),
        ("a\nb\n", "@@ -1,9 +1,7 @@\n a\n-b\n+c\n", "a\nc\n"),
        ("a\nb\n", "@@\n a\n-b\n+c\n", "a\nc\n"),
        ("a\nb\n", "@@ def f():\n-b\n+c\n", "a\nc\n"),
        ("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", "a\n\nc\n"),
        ("x\n" * 9 + "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "x\n" * 9 + "a\nc\n"),
        ("a\na\na\n", "@@ -2 +2 @@\n-a\n+b\n", "a\nb\na\n"),
        ("a  \nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "a  \nc\n"),
        ("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n", "a\nc\n"),
        ("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n", "a\nc"),
        ("a\nb", "@@ -1,2 +1,2 @@\n-a\n+c\n b\n", "c\nb"),
        ("a\nb\n", "@@ -1,0 +2 @@\n+x\n", "a\nx\nb\n"),
        ("", "@@ -0,0 +1 @@\n+x\n", "x\n"),
        ("-- a\nb\n", "@@ -1,2 +1 @@\n--- a\n b\n", "b\n"),
        ("a\n\n", "@@ -1,2 +1,2 @@\n-a\n+c\n \n", "c\n\n"),
    ]:
        assert patched(text, f"--- a/f\n+++ b/f\n{hunk}") == after, hunk
        assert patched(text, f"```diff\n--- a/f\n+++ b/f\n{hunk}\n```") == after, hunk


def test_every_diff_of_difflib_applies() -> None:
    rng = random.Random(5)
    for _ in range(300):
        before, after = (
            "".join(rng.choice(["a\n", "b\n", "\n", "-- c\n", "++ d\n", " e\n"]) for _ in range(n))
            + rng.choice(["", "end"])
            for n in (rng.randrange(12), rng.randrange(12))
        )
        diff = Patch.between({"f": before}, {"f": after}).text
        if diff:
            assert patched(before, diff) == after


@pytest.mark.parametrize(
    ("text", "hunk"),
    [
        ("a\nb\na\n", "@@ -2 +2 @@\n-a\n+c\n"),  # it fits twice
        ("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-c\n+d\n"),
        ("a\n", "@@ -7 +7 @@\n-b\n+c\n"),
        ("a\n", "@@ -9,0 +10 @@\n+x\n"),
    ],
)
def test_a_hunk_that_fits_nowhere_or_twice_is_refused(text: str, hunk: str) -> None:
    with pytest.raises(Refusal, match="hunk 1"):
        patched(text, f"--- a/f\n+++ b/f\n{hunk}")


@pytest.mark.parametrize(
    "patch",
    [
        "hello",
        "*** Begin Patch\n*** End Patch",
        "*** Begin Patch\n*** Rename File: a\n*** End Patch",
        "*** Begin Patch\n*** Add File: a\nx\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n@@\nx\n*** End Patch",
        "x" * (MAX_PATCH_CHARS + 1),
        "--- a/f\n+++ b/f\n" + "@@ -1 +1 @@\n-a\n+a\n" * 501,
    ],
    ids=range(7),
)
def test_a_text_that_is_no_patch_is_refused(patch: str) -> None:
    with pytest.raises(Refusal):
        read_patch(patch)


def test_large_texts_and_many_hunks_are_no_trouble() -> None:
    text = "a\n" * 200_000
    hunks = "".join(f"@@ -{number} +{number} @@\n a\n+b\n" for number in range(1, 500))
    after = patched(text, f"--- a/f\n+++ b/f\n{hunks}")
    assert (after.count("a\n"), after.count("b\n")) == (200_000, 499)
    hunks = "@@ x\n-x\n+y\n" * 400
    (file,) = read_patch(f"*** Begin Patch\n*** Update File: f\n{hunks}*** End Patch")
    with pytest.raises(Refusal):  # each line is looked for exactly first, and there is none
        apply_hunks("  x\n" * 40_000, file.hunks, is_loose=True)
