"""Patches of the toolset ``codex``: their forms, positions, and atomic application."""

import json
from typing import Any

import pytest
from episodes import Scene

from coding_gym.tools.patches import MAX_PATCH_CHARS

STATE = "find . -mindepth 1 -printf '%p %y %m %l\\n' | sort; find . -type f | sort | xargs cat"
TOOLSET = "codex"
FILES = {"a.py": "one\ntwo\nthree\n", "b.py": "x = 1\n"}
UPDATE = "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"


def apply(scene: Scene, patch: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(scene.reply("apply_patch", patch=patch))
    return result


def envelope(*lines: str) -> str:
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch"))


def text_after(scene: Scene, text: str, patch: str) -> str:
    """Returns the text of the file ``f`` after a patch."""
    scene.sandbox.write_file("f", text.encode(errors="surrogateescape"))
    assert apply(scene, patch) == {"applied": True, "files": ["f"]}, patch
    return scene.sandbox.read_file("f").decode(errors="surrogateescape")


def test_files_are_changed_added_deleted_and_renamed_at_once(scene: Scene) -> None:
    scene.sandbox.run("chmod 755 b.py")
    patch = (
        f"diff --git a/a.py b/a.py\n{UPDATE}"
        "diff --git a/new/n.sh b/new/n.sh\nnew file mode 100755\n--- /dev/null\n+++ b/new/n.sh\n"
        "@@ -0,0 +1 @@\n+echo\n"
        "diff --git a/b.py b/c.py\nsimilarity index 50%\nrename from b.py\nrename to c.py\n"
        "--- a/b.py\n+++ b/c.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    )
    assert apply(scene, patch) == {"applied": True, "files": ["a.py", "new/n.sh", "c.py"]}
    output = scene.sandbox.run("cat a.py c.py new/n.sh; stat -c '%n %a' * new/*").output
    assert output == "one\n2\nthree\nx = 2\necho\na.py 644\nc.py 755\nnew 755\nnew/n.sh 755\n"
    deletion = "--- a/c.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 2\n"
    assert apply(scene, deletion)["files"] == ["c.py"]
    assert not scene.sandbox.run("ls c.py").ok


def test_an_envelope_changes_adds_deletes_and_renames(scene: Scene) -> None:
    patch_in_envelope = envelope(
        *("*** Update File: a.py", "@@ one", "-two", "+2", "@@", " three", "+four"),
        *("*** End of File", "*** Add File: d/n.txt", "+new", "+", "*** Update File: a.py"),
        *("-one", "+1", "*** Update File: b.py", "*** Move to: c.py"),
    )
    patch = f"apply_patch <<'EOF'\n{patch_in_envelope}\nEOF"
    assert apply(scene, patch)["files"] == ["a.py", "b.py", "c.py", "d/n.txt"]
    output = scene.sandbox.run("cat a.py d/n.txt c.py; ls b.py").output
    assert output.startswith("1\n2\nthree\nfour\nnew\n\nx = 1\nls: ")
    deletions = [envelope(f"*** Delete File: {name}") for name in ("c.py", "a.py")]
    assert len(apply(scene, "\n".join(deletions))["files"]) == 2
    assert scene.sandbox.run("ls").output == "d\n"


@pytest.mark.parametrize(
    "diff",
    [
        "--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-y = 1\n+y = 2\n",
        "--- /dev/null\n+++ b/b.py\n@@ -0,0 +1 @@\n+y\n",
        "--- /dev/null\n+++ b/../evil.py\n@@ -0,0 +1 @@\n+y\n",
        "--- /dev/null\n+++ b/out/evil.py\n@@ -0,0 +1 @@\n+y\n",
        "--- a/link\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\n",
        "--- a/data\n+++ b/data\n@@ -1 +1 @@\n-x = 1\n+x = 2\n",
    ],
)
def test_a_patch_changes_all_files_or_none(scene: Scene, diff: str) -> None:
    scene.sandbox.run("ln -s b.py link; ln -s /tmp out; mkdir folder; printf '\\0' > data")
    before = scene.sandbox.run(STATE).output
    addition = "--- /dev/null\n+++ b/n/e/w.py\n@@ -0,0 +1 @@\n+y\n"
    removal = "--- a/a.py\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n"
    for patch in (UPDATE + addition + diff, removal + addition + diff, diff + addition):
        assert list(apply(scene, patch)) == ["error"]
        assert scene.sandbox.run(STATE).output == before
    assert not scene.sandbox.run("ls /tmp/evil.py ../evil.py").ok


def test_hunks_with_wrong_counts_and_lines_apply(scene: Scene) -> None:
    for text, hunk, expected in [
        ("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c", "a\nc\n"),
        ("a\nb\n", "@@ -1,9 +1,7 @@\n a\n-b\n+c\n", "a\nc\n"),
        ("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", "a\n\nc\n"),
        ("x\n" * 9 + "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "x\n" * 9 + "a\nc\n"),
        ("a\na\na\n", "@@ -2 +2 @@\n-a\n+b\n", "a\nb\na\n"),
        ("a\nb\n", "@@ -1,0 +2 @@\n+x\n", "a\nx\nb\n"),
        ("a\nb\nc\n", "@@ -1,1 +1,2 @@\n a\n+x\n", "a\nx\nb\nc\n"),
        ("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n", "a\nc\n"),
        ("a\r\nb\r\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n", "a\r\nc\r\n"),
        (
            "-- old\nb\nc\n",
            "@@ -1 +1 @@\n--- old\n+++ new\n@@ -3 +3 @@\n-c\n+d\n",
            "++ new\nb\nd\n",
        ),
    ]:
        for header in ("--- a/f\n+++ b/f\n", "--- f\n+++ f\n", "```diff\n--- a/f\n+++ b/f\n"):
            assert text_after(scene, text, f"{header}{hunk}") == expected, hunk
    wrong_counts = UPDATE.replace("@@ -1,3 +1,3 @@", "@@ -1,4 +1,4 @@")
    second_diff = "--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    assert apply(scene, f"{wrong_counts}{second_diff}")["files"] == ["a.py", "b.py"]


def test_changes_of_an_envelope_apply_at_the_first_match(scene: Scene) -> None:
    for text, lines, expected in [
        ("a\nb\na\nb\n", ("-b", "+c"), "a\nc\na\nb\n"),
        ("a\nb\na\nb\n", ("@@ b", "-b", "+c"), "a\nb\na\nc\n"),
        ("a\nb\na\nb\n", ("-b", "+c", "*** End of File"), "a\nb\na\nc\n"),
        ("a\nb\na\nb\n", (" a", "-b", "+c", "@@", " a", "-b", "+d"), "a\nc\na\nd\n"),
        ("  a  \nb\n", (" a", "-b", "+c"), "  a  \nc\n"),  # as Codex, which ignores blanks
        ("\ufeffa\udcff\nb\n", ("-b", "+c"), "\ufeffa\udcff\nc\n"),
        ("a\r\nb\r\n", (" a", "-b", "+c"), "a\r\nc\r\n"),
        ("a\nb", ("-b", "+c"), "a\nc\n"),
        ("a\n", ("+b",), "a\nb\n"),
        ("a\nb\n", ("@@ a", "+x"), "a\nx\nb\n"),
        ("a\n\nb\n", ("@@ -1,3 +1,3 @@", " a", "", "-b", "+c"), "a\n\nc\n"),
    ]:
        assert text_after(scene, text, envelope("*** Update File: f", *lines)) == expected, lines


@pytest.mark.parametrize(
    "patch",
    [
        "hello",
        "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n one\n-four\n+d\n",
        envelope(),
        envelope("*** Rename File: a"),
        envelope("*** Add File: a", "x"),
        envelope("*** Update File: a.py", "@@", "x"),
        envelope("*** Update File: a.py", "@@ four", "-two", "+d"),
        envelope("*** Update File: a.py", "-two", "+d", "*** Delete File: none"),
        envelope("*** Update File: a.py", "-two", "+d", "*** End of File"),
        "x" * (MAX_PATCH_CHARS + 1),
    ],
    ids=range(10),
)
def test_a_patch_that_does_not_apply_is_refused(scene: Scene, patch: str) -> None:
    assert list(apply(scene, patch)) == ["error"]
    assert scene.sandbox.read_file("a.py") == FILES["a.py"].encode()
