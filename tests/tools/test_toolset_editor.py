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


def refusal(scene: Scene, command: str, path: str = "pkg/area.py", **arguments: object) -> str:
    answer = scene.call("str_replace_editor", command=command, path=path, **arguments)
    assert not answer.ok
    return answer.content


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
    for lines in ([0, 2], [7, 8], [3, 2], [1], [1, 2, 3], "1-2", {"a": 1}, ["a", 2], [True, 2]):
        assert "view_range" in refusal(scene, "view", view_range=lines)


def test_view_of_a_folder_lists_two_levels(scene: Scene) -> None:
    scene.sandbox.run("mkdir -p a/b/c .hid 'pkg/s p'; touch a.py a/b/c/d .hid/x b; ln -s /etc etc")
    names = ("", "a/", "a/b/", "a.py", "b", "etc", "pkg/", "pkg/area.py", "pkg/s p/")
    listed = edit(scene, "view", path=".").splitlines()[1:]
    assert listed == [f"{scene.sandbox.workdir}/{name}" for name in names]
    scene.sandbox.run("mkdir many; cd many; seq 1000 | xargs touch")
    assert len(edit(scene, "view", path="many").splitlines()) == 403


def test_long_views_are_clipped(scene: Scene) -> None:
    scene.sandbox.write_file("long", b"line\n" * 9000)
    assert len(edit(scene, "view", path="long")) < 16_500


def test_create_makes_new_files_only(scene: Scene) -> None:
    assert edit(scene, "create", "new/a.py", file_text="a\n") == (
        "File created successfully at: new/a.py"
    )
    assert scene.sandbox.read_file("new/a.py") == b"a\n"
    for path in ("new/a.py", "pkg"):
        assert path in refusal(scene, "create", path, file_text="")
    assert "file_text" in refusal(scene, "create", "b.py")
    assert "delete" in refusal(scene, "delete")


def test_str_replace_replaces_a_unique_text_and_shows_a_snippet(scene: Scene) -> None:
    assert edit(scene, "str_replace", old_str="w + h", new_str="w * h") == (
        "The file pkg/area.py has been edited. Here's the result of running `cat -n` on a snippet "
        "of pkg/area.py:\n     1\tdef area(w, h):\n     2\t    return w * h\n     3\t\n     4\t\n"
        f"     5\tx = 1\n     6\tx = 1\n{REVIEW}"
    )
    assert edit(scene, "str_replace", old_str="w * h").endswith(REVIEW)  # replaced by nothing
    assert content(scene).startswith(b"def area(w, h):\n    return \n")
    for old, new in (("x = 1", "x = 2"), ("y", "z"), ("w", "w"), ("", "w")):
        refusal(scene, "str_replace", old_str=old, new_str=new)
    assert "old_str" in refusal(scene, "str_replace", new_str="x")


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
    for line in (-1, 7, "a"):
        assert "insert_line" in refusal(scene, "insert", insert_line=line, new_str="x")


def test_undo_goes_back_edit_by_edit_to_before_the_file(scene: Scene) -> None:
    edit(scene, "create", "n.py", file_text="a\r\n")
    scene.sandbox.run("chmod 755 n.py")
    edit(scene, "str_replace", "n.py", old_str="a", new_str="b")
    edit(scene, "insert", f"{scene.sandbox.workdir}/pkg/../n.py", insert_line=0, new_str="c")
    assert json.loads(json.dumps(scene.state)) == scene.state
    edit(scene, "undo_edit", "n.py")
    assert scene.sandbox.run("cat n.py; stat -c %a n.py").output == "b\r\n755\n"
    for _ in range(2):
        edit(scene, "undo_edit", "n.py")
    assert not scene.sandbox.run("ls n.py").ok
    refusal(scene, "undo_edit", "n.py")


def test_undo_restores_the_mode_of_a_deleted_file(scene: Scene) -> None:
    scene.sandbox.run("echo true > run.sh; chmod 755 run.sh")
    edit(scene, "insert", "run.sh", insert_line=1, new_str="false")
    scene.sandbox.run("rm run.sh")
    edit(scene, "undo_edit", "run.sh")
    assert scene.sandbox.run("cat run.sh; stat -c %a run.sh").output == "true\n755\n"


def test_an_undo_that_fails_can_be_tried_again(scene: Scene) -> None:
    edit(scene, "str_replace", old_str="w + h", new_str="w * h")
    scene.sandbox.run("chmod 444 pkg/area.py")
    refusal(scene, "undo_edit")
    scene.sandbox.run("chmod 644 pkg/area.py")
    edit(scene, "undo_edit")
    assert content(scene).startswith(b"def area(w, h):\n    return w + h\n")


def test_the_history_is_bounded(scene: Scene) -> None:
    for number in range(MAX_VERSIONS + 3):
        edit(scene, "insert", insert_line=0, new_str=str(number))
    for _ in range(MAX_VERSIONS):
        assert scene.call("str_replace_editor", command="undo_edit", path="pkg/area.py").ok
    refusal(scene, "undo_edit")
    scene.sandbox.write_file("big", b"x" * (MAX_VERSION_BYTES + 1))
    edit(scene, "insert", "big", insert_line=0, new_str="y")
    assert len(json.dumps(scene.state)) < 10_000
    state: dict[str, Any] = {}
    for number in range(3 * MAX_ALL_VERSIONS):
        remember(state, f"/w/{number}", before=None, mode="", after=b"")
    assert [len(kept) for kept in state.values()] == [MAX_ALL_VERSIONS, MAX_ALL_VERSIONS]
