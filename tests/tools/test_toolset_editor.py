import json
from typing import Any

import pytest
from episodes import Scene

from coding_gym.tools import get_toolset, tool_names
from coding_gym.tools.editor import MAX_ALL_VERSIONS, MAX_VERSION_BYTES, MAX_VERSIONS, remember

REVIEW = "Review the changes and make sure they are as expected. Edit the file again if necessary."


TOOLSET = "editor"
FILES = {"pkg/area.py": "def area(w, h):\n    return w + h\n\n\nx = 1\nx = 1\n"}


def edit(scene: Scene, command: str, path: str = "pkg/area.py", **arguments: object) -> str:
    return scene.reply("str_replace_editor", command=command, path=path, **arguments)


def content(scene: Scene) -> bytes:
    return scene.sandbox.read_file("pkg/area.py")


def test_its_tools_are_those_that_policies_were_trained_with(scene: Scene) -> None:
    assert tool_names(get_toolset("editor")) == ("str_replace_editor", "bash", "submit")
    assert scene.reply("bash", command="echo out; exit 2") == "out\n[exit code 2]"
    assert scene.call("submit").submitted


def test_other_names_of_the_shell_and_the_end_are_understood(scene: Scene) -> None:
    assert scene.reply("execute_bash", command="echo 1") == "1"
    assert scene.reply("execute_bash", cmd="echo 2") == "2"
    assert scene.call("finish").submitted


def test_view_numbers_lines_as_cat_does(scene: Scene) -> None:
    assert edit(scene, "view") == (
        "Here's the result of running `cat -n` on pkg/area.py:\n"
        "     1\tdef area(w, h):\n     2\t    return w + h\n     3\t\n     4\t\n"
        "     5\tx = 1\n     6\tx = 1\n"
    )
    for lines in ([5, -1], [5, 6], [5, 99], "[5, 6]", ["5", "6"]):
        assert edit(scene, "view", view_range=lines).endswith(":\n     5\tx = 1\n     6\tx = 1\n")
    for lines in ([0, 2], [7, 8], [3, 2], [3, -2]):
        assert edit(scene, "view", view_range=lines).startswith("ERROR: Invalid `view_range`: ")
    for wrong in ([1], [1, 2, 3], "1-2", {"a": 1}, ["a", 2], [True, 2]):
        assert "`view_range` must be a list of two line" in edit(scene, "view", view_range=wrong)


def test_view_of_a_folder_lists_two_levels_sorted_and_no_links(scene: Scene) -> None:
    scene.sandbox.run("mkdir -p a/b/c .hid 'pkg/s p'; touch a.py a/b/c/d .hid/x b; ln -s /etc etc")
    root = scene.sandbox.workdir
    assert edit(scene, "view", path=".") == (
        "Here's the files and directories up to 2 levels deep in ., excluding hidden items:\n"
        + "\n".join(
            f"{root}/{path}"
            for path in ("", "a/", "a/b/", "a.py", "b", "etc", "pkg/", "pkg/area.py", "pkg/s p/")
        )
    )
    assert "`view_range` is for files" in edit(scene, "view", path="pkg", view_range=[1, 2])
    scene.sandbox.run("mkdir many; cd many; seq 1000 | xargs touch")
    assert edit(scene, "view", path="many").endswith("[only the first 400 are listed]")


def test_long_views_are_clipped(scene: Scene) -> None:
    scene.sandbox.write_file("long", b"line\n" * 9000)
    told = edit(scene, "view", path="long")
    assert "<response clipped>" in told
    assert len(told) < 16_500


def test_create_makes_new_files_only(scene: Scene) -> None:
    assert edit(scene, "create", "new/a.py", file_text="a\n") == (
        "File created successfully at: new/a.py"
    )
    assert scene.sandbox.read_file("new/a.py") == b"a\n"
    assert "File already exists at: new/a.py" in edit(scene, "create", "new/a.py", file_text="")
    assert "File already exists at: pkg" in edit(scene, "create", "pkg", file_text="")
    assert "needs the argument `file_text`" in edit(scene, "create", "b.py")


def test_str_replace_shows_a_snippet(scene: Scene) -> None:
    assert edit(scene, "str_replace", old_str="w + h", new_str="w * h") == (
        "The file pkg/area.py has been edited. Here's the result of running `cat -n` on a snippet "
        "of pkg/area.py:\n     1\tdef area(w, h):\n     2\t    return w * h\n     3\t\n     4\t\n"
        f"     5\tx = 1\n     6\tx = 1\n{REVIEW}"
    )
    assert edit(scene, "str_replace", old_str="w * h").endswith(REVIEW)  # replaced by nothing
    assert content(scene).startswith(b"def area(w, h):\n    return \n")


def test_str_replace_refuses_what_is_not_unique_there_or_new(scene: Scene) -> None:
    for old, new, said in [
        ("x = 1", "x = 2", "Multiple occurrences of old_str in lines [5, 6]"),
        ("y", "z", "old_str did not appear verbatim in pkg/area.py"),
        ("w", "w", "`new_str` and `old_str` must be different"),
        ("", "w", "`old_str` must not be empty"),
    ]:
        assert said in edit(scene, "str_replace", old_str=old, new_str=new)
    assert "old_str" in edit(scene, "str_replace", new_str="x")


@pytest.mark.parametrize(
    ("before", "line", "new", "after"),
    [
        (b"a\nb\n", 0, "x", b"x\na\nb\n"),
        (b"a\nb\n", 1, "x\ny\n", b"a\nx\ny\nb\n"),
        (b"a\nb\n", 2, "x", b"a\nb\nx\n"),
        (b"a\nb", 2, "x", b"a\nb\nx"),
        (b"", 0, "x", b"x\n"),
        (b"a\r\nb\r\n", "1", "x\ny", b"a\r\nx\r\ny\r\nb\r\n"),
        (b"a\n", 1, "", b"a\n\n"),
    ],
)
def test_insert_puts_lines_behind_a_line(
    scene: Scene, before: bytes, line: object, new: str, after: bytes
) -> None:
    scene.sandbox.write_file("pkg/area.py", before)
    assert edit(scene, "insert", insert_line=line, new_str=new).endswith(REVIEW)
    assert content(scene) == after


def test_insert_outside_the_file_is_refused(scene: Scene) -> None:
    for line in (-1, 7):
        said = f"ERROR: Invalid `insert_line` parameter: {line}. It must be from 0 to 6"
        assert edit(scene, "insert", insert_line=line, new_str="x").startswith(said)
    assert "`insert_line` must be a whole number" in edit(scene, "insert", insert_line="a")


def test_undo_goes_back_edit_by_edit_to_before_the_file(scene: Scene) -> None:
    edit(scene, "create", "n.py", file_text="a\r\n")
    scene.sandbox.run("chmod 755 n.py")
    edit(scene, "str_replace", "n.py", old_str="a", new_str="b")
    edit(scene, "insert", f"{scene.sandbox.workdir}/pkg/../n.py", insert_line=0, new_str="c")
    assert json.loads(json.dumps(scene.state)) == scene.state
    assert edit(scene, "undo_edit", "n.py").startswith("Last edit to n.py undone successfully. ")
    assert scene.sandbox.run("cat n.py; stat -c %a n.py").output == "b\r\n755\n"
    edit(scene, "undo_edit", "n.py")
    assert edit(scene, "undo_edit", "n.py") == (
        "Last edit to n.py undone successfully. The file is gone again."
    )
    assert not scene.sandbox.run("ls n.py").ok
    assert edit(scene, "undo_edit", "n.py") == "ERROR: No edit history found for n.py."


def test_undo_brings_back_the_mode_of_a_file_that_is_gone(scene: Scene) -> None:
    scene.sandbox.run("echo true > run.sh; chmod 755 run.sh")
    edit(scene, "insert", "run.sh", insert_line=1, new_str="false")
    scene.sandbox.run("rm run.sh")
    assert "by other means, is undone with it" in edit(scene, "undo_edit", "run.sh")
    assert scene.sandbox.run("cat run.sh; stat -c %a run.sh").output == "true\n755\n"


def test_undo_says_when_the_file_was_changed_by_other_means(scene: Scene) -> None:
    edit(scene, "str_replace", old_str="w + h", new_str="w * h")
    scene.sandbox.run("echo more >> pkg/area.py")
    assert "changed in it since, by other means, is undone" in edit(scene, "undo_edit")


def test_an_undo_that_fails_can_be_tried_again(scene: Scene) -> None:
    edit(scene, "str_replace", old_str="w + h", new_str="w * h")
    scene.sandbox.run("chmod 444 pkg/area.py")
    assert "permission denied" in edit(scene, "undo_edit")
    scene.sandbox.run("chmod 644 pkg/area.py")
    assert "undone successfully" in edit(scene, "undo_edit")


def test_the_history_is_bounded_and_says_so(scene: Scene) -> None:
    for number in range(MAX_VERSIONS + 3):
        edit(scene, "insert", insert_line=0, new_str=str(number))
    for _ in range(MAX_VERSIONS):
        assert "undone successfully" in edit(scene, "undo_edit")
    assert edit(scene, "undo_edit") == (
        "ERROR: No edit history found for pkg/area.py; 3 older ones were not kept."
    )
    scene.sandbox.write_file("big", b"x" * (MAX_VERSION_BYTES + 1))
    edit(scene, "insert", "big", insert_line=0, new_str="y")
    assert len(json.dumps(scene.state)) < 10_000
    assert edit(scene, "undo_edit", "big").endswith("1 older ones were not kept.")


def test_the_history_of_created_files_is_bounded() -> None:
    state: dict[str, Any] = {}
    for number in range(3 * MAX_ALL_VERSIONS):
        remember(state, f"/w/{number}", before=None, mode="", after=b"")
    assert [len(kept) for kept in state.values()] == [MAX_ALL_VERSIONS, MAX_ALL_VERSIONS]
    long = "x" * (MAX_VERSION_BYTES // 2)
    for number in range(9):
        remember(state, f"{long}{number}", before=None, mode="", after=b"")
    assert len(state["editor_history"]) == 2


def test_an_unknown_command_is_answered_with_the_known(scene: Scene) -> None:
    assert edit(scene, "delete") == (
        "ERROR: `command` must be one of view, create, str_replace, insert, undo_edit, got 'delete'"
    )
