"""Patches of the toolset ``codex``: what is read, where it goes in, all or nothing."""

import json
import random
from typing import Any

import pytest
from episodes import Scene

from coding_gym.patch import Patch
from coding_gym.sandbox import SandboxLimits, SandboxSpec, default_interpreter
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.tools.patches import MAX_ANCHORS, MAX_PATCH_CHARS, read_patch
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
        "--- a/none.py\n+++ b/none.py\n@@ -1 +1 @@\n-y = 1\n+y = 2\n",
        "--- /dev/null\n+++ b/b.py\n@@ -0,0 +1 @@\n+y\n",
        "--- /dev/null\n+++ b/../evil.py\n@@ -0,0 +1 @@\n+y\n",
        "--- /dev/null\n+++ b/out/evil.py\n@@ -0,0 +1 @@\n+y\n",
        "--- /dev/null\n+++ b/folder\n@@ -0,0 +1 @@\n+y\n",
        "--- /dev/null\n+++ b/b.py/below\n@@ -0,0 +1 @@\n+y\n",
        "--- a/b.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-y = 1\n",
        "--- a/link\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\n",
        "--- a/locked\n+++ b/locked\n@@ -1 +1 @@\n-x = 1\n+x = 2\n",
        "--- a/data\n+++ b/data\n@@ -1 +1 @@\n-x = 1\n+x = 2\n",
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
        assert "not restored" not in result["error"]
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
        assert "more than" in apply(scene, patch)["error"]
        patch = patch.replace(large, large[: MAX_PATCH_CHARS - 1000].rpartition("\n")[0] + "\n")
        box.run("dd if=/dev/zero of=/tmp/fill bs=4096 count=100 2>/dev/null")
        assert apply(scene, patch)["error"] == ("large: no space is left; nothing was changed")
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


def test_a_hunk_that_fits_nowhere_or_twice_says_so() -> None:
    for text, hunk, said in [
        ("a\nb\na\n", "@@ -2 +2 @@\n-a\n+c\n", "hunk 1: it fits at lines 1, 3, and the line that"),
        ("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-c\n+d\n", "at line 2 it wants 'c', but there is 'b'"),
        ("a\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "at line 2 it wants 'b', but there is the end"),
        ("a\n", "@@ -7 +7 @@\n-b\n+c\n", "its lines, which begin with 'b', are not in the file"),
        ("a\n", "@@ -9,0 +10 @@\n+x\n", "it adds behind line 9, and the file has 1"),
    ]:
        with pytest.raises(Refusal) as refused:
            patched(text, f"--- a/f\n+++ b/f\n{hunk}")
        assert said in str(refused.value), hunk


def test_what_is_no_patch_is_refused_with_what_was_expected() -> None:
    for patch, said in [
        ("hello", "no unified diff"),
        ("*** Begin Patch\n*** End Patch", "changes nothing"),
        ("*** Begin Patch\n*** Rename File: a\n*** End Patch", "is no header"),
        ("*** Begin Patch\n*** Add File: a\nx\n*** End Patch", "each line of a new file begins"),
        ("*** Begin Patch\n*** Update File: a\n@@\nx\n*** End Patch", "lines of a change begin"),
        ("x" * (MAX_PATCH_CHARS + 1), "characters, more than"),
        ("--- a/f\n+++ b/f\n" + "@@ -1 +1 @@\n-a\n+a\n" * 501, "more than 100 and 500; split it"),
    ]:
        with pytest.raises(Refusal) as refused:
            read_patch(patch)
        assert said in str(refused.value), said


def test_any_diff_that_difflib_writes_gives_the_text_that_it_was_made_of() -> None:
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


def test_marks_of_the_envelope_behind_a_blank_are_lines_of_the_file() -> None:
    text = "*** Begin Patch\nx\n*** End Patch\ny\n"
    lines = " *** Begin Patch\n-x\n+z\n *** End Patch\n"
    patch = f"*** Begin Patch\n*** Update File: f\n@@\n{lines}*** End Patch"
    assert patched(text, patch) == text.replace("x", "z")


@pytest.mark.parametrize("header", ["Add File: f\n+x\n", "Update File: f\n@@\n-a\n+x\n"])
def test_any_number_of_blank_lines_may_stand_in_front_of_the_end(header: str) -> None:
    blank = "\n" * (MAX_PATCH_CHARS - 100)
    patch = f"*** Begin Patch\n*** {header}{blank}*** End Patch"
    assert patched("a\n" * ("-a" in header), patch) == "x\n"


def test_a_change_stands_below_so_many_lines_and_no_more() -> None:
    text = "".join(f"{number}\n" for number in range(10)) + "a\n"

    def patch(num_anchors: int) -> str:
        anchors = "".join(f"@@ {number}\n" for number in range(num_anchors))
        return f"*** Begin Patch\n*** Update File: f\n{anchors}-a\n+b\n*** End Patch"

    assert patched(text, patch(MAX_ANCHORS)) == text.replace("a", "b")
    with pytest.raises(Refusal, match="more than 8 lines @@ stand above one change"):
        read_patch(patch(100_000))


def test_a_patch_is_refused_whose_places_take_too_much_work_to_find(scene: Scene) -> None:
    hunks = "@@ x\n-x\n+y\n" * 400  # each line is looked for exactly first, and there is none
    (file,) = read_patch(f"*** Begin Patch\n*** Update File: f\n{hunks}*** End Patch")
    text = "  x\n" * 40_000
    with pytest.raises(Refusal, match="takes too much work; split it"):
        apply_hunks(text, file.hunks, is_loose=True)
    assert len(apply_hunks(text, file.hunks[:100], is_loose=True)[1]) == 100
    scene.sandbox.write_file("f", text.encode())
    third = f"*** Update File: f\n{hunks[: len(hunks) // 400 * 130]}"
    said = apply(scene, f"*** Begin Patch\n{third}{third}*** End Patch")  # all share one effort
    assert "finding the places of this patch takes too much work" in said["error"]


def test_large_texts_and_many_hunks_are_no_trouble() -> None:
    text = "a\n" * 200_000
    hunks = "".join(f"@@ -{number} +{number} @@\n a\n+b\n" for number in range(1, 500))
    after = patched(text, f"--- a/f\n+++ b/f\n{hunks}")
    assert (after.count("a\n"), after.count("b\n")) == (200_000, 499)
    wanted = " a\n" * 100_000 + "-b\n"
    with pytest.raises(Refusal, match="are not in the file in this order"):
        patched(text, f"--- a/f\n+++ b/f\n@@\n{wanted}")
