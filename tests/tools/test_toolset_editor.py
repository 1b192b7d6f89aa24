import pytest
from episodes import Scene

REVIEW = "Review the changes and make sure they are as expected. Edit the file again if necessary."


TOOLSET = "editor"
FILES = {"pkg/area.py": "def area(w, h):\n    return w + h\n\n\nx = 1\nx = 1\n"}


def edit(scene: Scene, command: str, path: str = "pkg/area.py", **arguments: object) -> str:
    return scene.reply("str_replace_editor", command=command, path=path, **arguments)


def refusal(scene: Scene, command: str, path: str = "pkg/area.py", **arguments: object) -> str:
    result = scene.call("str_replace_editor", command=command, path=path, **arguments)
    assert not result.ok
    return result.content


def content(scene: Scene) -> bytes:
    return scene.sandbox.read_file("pkg/area.py")


def test_view_numbers_lines_as_cat_does(scene: Scene) -> None:
    assert edit(scene, "view") == (
        "Here's the result of running `cat -n` on pkg/area.py:\n"
        "     1\tdef area(w, h):\n     2\t    return w + h\n     3\t\n     4\t\n"
        "     5\tx = 1\n     6\tx = 1\n"
    )
    for lines in ([5, -1], [5, 6], [5, 99], [5.0, 6.0]):
        assert edit(scene, "view", view_range=lines).endswith(":\n     5\tx = 1\n     6\tx = 1\n")
    for lines in ([0, 2], [7, 8], [3, 2], [1], [1, 2, 3], "[1, 2]", {"a": 1}, ["a", 2], [True, 2]):
        assert "view_range" in refusal(scene, "view", view_range=lines)


def test_view_of_a_folder_lists_two_levels(scene: Scene) -> None:
    scene.sandbox.run("mkdir -p a/b/c .hid 'pkg/s p'; touch a.py a/b/c/d .hid/x b; ln -s /etc etc")
    names = ("", "a/", "a/b/", "a.py", "b", "etc", "pkg/", "pkg/area.py", "pkg/s p/")
    paths = edit(scene, "view", path=".").splitlines()[1:]
    assert paths == [f"{scene.sandbox.workdir}/{name}" for name in names]
    scene.sandbox.write_file("long", b"line\n" * 9000)
    assert len(edit(scene, "view", path="long")) < 16_500
    scene.sandbox.run("mkdir many; cd many; seq 1000 | xargs touch")
    assert len(edit(scene, "view", path="many").splitlines()) == 403


def test_create_makes_new_files_only(scene: Scene) -> None:
    assert edit(scene, "create", "new/a.py", file_text="a\n") == (
        "File created successfully at: new/a.py"
    )
    assert scene.sandbox.read_file("new/a.py") == b"a\n"
    for path in ("new/a.py", "pkg"):
        assert path in refusal(scene, "create", path, file_text="")
    assert "file_text" in refusal(scene, "create", "b.py")
    for command in ("delete", "undo_edit"):
        assert command in refusal(scene, command)


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
        (b"", 0, "x", b"x\n"),
        (b"a\r\nb\r\n", 1, "x\ny", b"a\r\nx\r\ny\r\nb\r\n"),
    ],
)
def test_insert_adds_lines_after_a_line(
    scene: Scene, before: bytes, line: object, new: str, after: bytes
) -> None:
    scene.sandbox.write_file("pkg/area.py", before)
    assert edit(scene, "insert", insert_line=line, new_str=new).endswith(REVIEW)
    assert content(scene) == after
    for number in (-1, 7, "a"):
        assert "insert_line" in refusal(scene, "insert", insert_line=number, new_str="x")
