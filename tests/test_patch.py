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


def test_a_diff_between_texts_leads_there_and_back() -> None:
    patch = Patch.between(BEFORE, AFTER)
    assert patch.apply(BEFORE) == AFTER
    assert patch.apply(AFTER, reverse=True) == BEFORE
    assert patch.paths == {"a.py", "b/c.txt", "new file.txt", 'odd "name"\t\\.txt', "empty"}


def test_random_edits_lead_there_and_back() -> None:
    rng = random.Random(7)
    for _ in range(200):
        lines = [rng.choice(["a", "b", "", " c"]) + "\n" for _ in range(rng.randrange(30))]
        changed = [line for line in lines if rng.random() > 0.2]
        for _ in range(rng.randrange(4)):
            changed.insert(rng.randrange(len(changed) + 1), "new\n")
        before, after = {"f": "".join(lines)}, {"f": "".join(changed).removesuffix("\n")}
        patch = Patch.between(before, after)
        assert patch.apply(before) == after
        assert patch.apply(after, reverse=True) == before


def test_nothing_changed_is_an_empty_patch() -> None:
    patch = Patch.between(BEFORE, BEFORE)
    assert patch.is_empty
    assert patch.files == ()
    assert patch.apply(BEFORE) == BEFORE


def test_it_agrees_with_git_on_what_the_diff_means(tmp_path: Path) -> None:
    repo = Repo.init(tmp_path)
    write_files(tmp_path, BEFORE)
    repo.git.add("-A")
    patch = tmp_path / ".git" / "x.patch"
    patch.write_text(Patch.between(BEFORE, AFTER).text, encoding="utf-8", newline="")
    repo.git.apply("--index", str(patch))
    for path, text in AFTER.items():
        assert (tmp_path / path).read_bytes() == text.encode()
    assert not (tmp_path / "b" / "c.txt").exists()
    repo.close()


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
    assert Patch(text).apply({"old.py": "k", "run.sh": "s", 'té"\t.py': "x\n"}) == {
        "new.py": "k",
        "run.sh": "s",
    }


def test_a_diff_without_git_headers_is_read() -> None:
    patch = Patch("--- a/x\t2024-01-01\n+++ b/x\t2024-01-02\n@@ -1 +1 @@\n-a\n+b\n")
    assert patch.apply({"x": "a\n"}) == {"x": "b\n"}


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"x": "other\n"}, "@@ -1 +1 @@\n-a\n+b\n"),
        ({}, "@@ -1 +1 @@\n-a\n+b\n"),
        ({"x": "a\n"}, "@@ -1,3 +1 @@\n-a\n+b\n"),
        ({"x": "a\n"}, f"@@ -{'0' * 5000}1 +1 @@\n-a\n+b\n"),
        ({"x": "a\n"}, "@@ -9 +9 @@\n-a\n+b\n"),
    ],
)
def test_patch_that_does_not_apply_is_refused(files: dict[str, str], text: str) -> None:
    patch = Patch(f"diff --git a/x b/x\n--- a/x\n+++ b/x\n{text}")
    with pytest.raises(PatchError, match=r"^[^\n]{1,200}$"):
        patch.apply(files)


def test_binary_changes_are_known_and_left_to_git() -> None:
    patch = Patch("diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 1\nIcmZPo\n")
    assert patch.files[0].is_binary
    with pytest.raises(PatchError, match="binary"):
        patch.apply({"x": "a"})


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
