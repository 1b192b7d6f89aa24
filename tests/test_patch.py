import random
from pathlib import Path

import pytest
from git import Repo
from sandbox_fixtures import write_files

from coding_gym.errors import PatchError
from coding_gym.patch import Patch

BEFORE = {"a.py": "one\ntwo\nthree", "b/c.txt": "x\n", "empty": ""}
AFTER = {
    "a.py": "one\nTWO\nthree\n",
    'odd "name"\t\\.txt': "x\n",
    "new file.txt": "é\ttab\n\r\n",
    "empty": "full",
}


def changed(rng: random.Random) -> tuple[str, str]:
    """Returns a random text, and the text after random edits."""
    lines = [rng.choice(["a", "b", "", " c"]) + "\n" for _ in range(rng.randrange(30))]
    after = [line for line in lines if rng.random() > 0.2]
    for _ in range(rng.randrange(4)):
        after.insert(rng.randrange(len(after) + 1), "new\n")
    return "".join(lines), "".join(after).removesuffix("\n")


def test_git_applies_and_reverses_a_diff(tmp_path: Path) -> None:
    rng, before, after = random.Random(7), dict(BEFORE), dict(AFTER)
    for number in range(200):
        before[f"{number}"], after[f"{number}"] = changed(rng)
    write_files(tmp_path, before)
    patch = Patch.between(before, after)
    for change in patch.files:
        if change.old_path and change.new_path:
            assert change.apply(before[change.path]) == after[change.path]
    (tmp_path / ".git").mkdir()
    file = tmp_path / ".git" / "x.patch"
    file.write_text(patch.text, encoding="utf-8", newline="")
    with Repo.init(tmp_path) as repo:
        repo.git.add("-A")
        base = repo.git.write_tree()
        repo.git.apply("--index", str(file))
        for path, text in after.items():
            assert (tmp_path / path).read_bytes() == text.encode()
        assert not (tmp_path / "b" / "c.txt").exists()
        repo.git.apply("--index", "-R", str(file))
        assert repo.git.write_tree() == base


def test_equal_files_give_an_empty_patch() -> None:
    patch = Patch.between(BEFORE, BEFORE)
    assert patch.is_empty
    assert patch.files == ()


def test_renames_modes_and_quoted_paths_are_read() -> None:
    text = (
        "diff --git a/old.py b/new.py\nsimilarity index 100%\nrename from old.py\n"
        "rename to new.py\n"
        "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"
        'diff --git "a/t\\303\\251\\"\\t.py" "b/t\\303\\251\\"\\t.py"\ndeleted file mode 100644\n'
        'index 1..0\n--- "a/t\\303\\251\\"\\t.py"\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n'
    )
    renamed, mode, deleted = Patch(text).files
    assert (renamed.old_path, renamed.new_path) == ("old.py", "new.py")
    assert (mode.old_path, mode.new_path) == ("run.sh", "run.sh")
    assert (deleted.old_path, deleted.new_path) == ('té"\t.py', None)


def test_a_diff_without_git_headers_is_read() -> None:
    patch = Patch("--- a/x\t2024-01-01\n+++ b/x\t2024-01-02\n@@ -1 +1 @@\n-a\n+b\n")
    assert (patch.paths, patch.files[0].apply("a\n")) == ({"x"}, "b\n")
    comment = "@@ -1 +1 @@\n--- old\n+++ new\n@@ -3 +3 @@\n-c\n+d\n"  # no file header
    (change,) = Patch(f"--- a/x\n+++ b/x\n{comment}").files
    assert change.apply("-- old\nb\nc\n") == "++ new\nb\nd\n"


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("other\n", "@@ -1 +1 @@\n-a\n+b\n"),
        ("a\n", "@@ -1,3 +1 @@\n-a\n+b\n"),
        ("a\n", "@@ -9 +9 @@\n-a\n+b\n"),
        ("a\n\n", "@@ -1,2 +1,2 @@\n-a\n+b\n"),
        ("a\nc\n", "@@ -1,2 +1,2 @@\n-a\n+b\nx\n c\n"),
    ],
)
def test_change_that_does_not_apply_is_refused(before: str, text: str) -> None:
    (change,) = Patch(f"diff --git a/x b/x\n--- a/x\n+++ b/x\n{text}").files
    with pytest.raises(PatchError, match=r"^[^\n]{1,200}$"):
        change.apply(before)


def test_binary_changes_are_detected_and_refused() -> None:
    patch = Patch("diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 1\nIcmZPo\n")
    assert patch.files[0].is_binary
    with pytest.raises(PatchError, match="binary"):
        patch.files[0].apply("a")


@pytest.mark.parametrize(
    "text",
    ["hello"]
    + [
        f'diff --git "{name}" "{name}"\nnew file mode 100644\n'
        for name in (r"a/\x", r"a/\777", "a/\\")
    ],
)
def test_text_that_is_no_diff_is_refused(text: str) -> None:
    with pytest.raises(PatchError):
        _ = Patch(text).files
