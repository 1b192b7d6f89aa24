"""Tools that change files, in every toolset, and the other tools of ``thesis``."""

import pytest
from episodes import Scene

from coding_gym.calls import ToolResult

# Toolsets, their tools that replace text, and the names of path, old and new text.
EDITS = {
    "nano": ("apply_patch", "file", "search", "replace"),
    "thesis": ("str_replace", "path", "old_str", "new_str"),
    "editor": ("str_replace_editor", "path", "old_str", "new_str"),
    "codex": ("replace_text", "path", "old_text", "new_text"),
}
IN_PLACE = ("thesis", "editor", "codex")  # git replaces files, and its messages differ


def edit(scene: Scene, toolset: str, *texts: str) -> ToolResult:
    """Replaces text in a file by the tool of a toolset; ``texts`` are path, old and new text."""
    scene.toolset = toolset
    tool, *names = EDITS[toolset]
    command = {"command": "str_replace"} if toolset == "editor" else {}
    return scene.call(tool, **command, **dict(zip(names, texts, strict=True)))


TOOLSET = "thesis"
FILES = {"pkg/area.py": "def area(w, h):\n    return w + h\n\n\nx = 1\nx = 1\n"}


@pytest.mark.parametrize("toolset", EDITS)
def test_edits_keep_other_bytes_and_line_ends(scene: Scene, toolset: str) -> None:
    for before, old, new, after in (
        (b"a\r\nb\r\n", "b", "c\nd", b"a\r\nc\r\nd\r\n"),
        (b"\xef\xbb\xbfa\xff\nb\n", "b", "c\nd", b"\xef\xbb\xbfa\xff\nc\nd\n"),
        (b"a\rz\nb", "b", "c\nd", b"a\rz\nc\nd"),
        (b"a\r\nb\r\nc\nd\n", "a\nb", "x\ny", b"x\r\ny\r\nc\nd\n"),
        (b"a\r\nb\r\nc\nd\n", "c\nd", "z\nz", b"a\r\nb\r\nz\nz\n"),
        (b"a\r\nb\r\nc\nd\n", "a\r\nb", "a\r\nw", b"a\r\nw\r\nc\nd\n"),
    ):
        scene.sandbox.write_file("file", before)
        assert edit(scene, toolset, "file", old, new).ok
        assert scene.sandbox.read_file("file") == after


@pytest.mark.parametrize("toolset", EDITS)
def test_edits_keep_modes_and_links(scene: Scene, toolset: str) -> None:
    scene.sandbox.write_file("run.sh", b"one\n")
    scene.sandbox.run("chmod 750 run.sh; ln -s run.sh link")
    assert edit(scene, toolset, "link", "one", "two").ok
    assert scene.sandbox.run("stat -c '%a %F' run.sh link; cat run.sh").output == (
        "750 regular file\n777 symbolic link\ntwo\n"
    )


@pytest.mark.parametrize("toolset", IN_PLACE)
def test_a_file_that_cannot_be_edited_has_an_error_result(scene: Scene, toolset: str) -> None:
    scene.sandbox.write_file("data", b"one\0\n")
    scene.sandbox.write_file("utf-16", "one\n".encode("utf-16"))
    scene.sandbox.write_file("locked", b"one\n")
    scene.sandbox.write_file("read-only", b"one\n")
    scene.sandbox.run("chmod 000 locked; chmod 444 read-only; mkdir folder; mkfifo fifo")
    scene.sandbox.run("truncate -s 5M large; ln -s loop loop")
    names = "data utf-16 locked read-only folder fifo large loop no no/where"
    for path in names.split():
        result = edit(scene, toolset, path, "one", "two")
        assert not result.ok, path
        assert path in result.content
    assert scene.sandbox.run("cat read-only data | tr -d '\\0'").output == "one\none\n"


def test_written_files_keep_their_line_ends(scene: Scene) -> None:
    for toolset in ("thesis", "codex"):
        scene.toolset = toolset
        scene.sandbox.write_file("dos.txt", b"a\r\n")
        assert scene.call("write_file", path="dos.txt", content="b\nc\n").ok
        assert scene.sandbox.read_file("dos.txt") == b"b\r\nc\r\n"
        scene.sandbox.write_file("data", b"\0\r\n")
        assert scene.call("write_file", path="data", content="text\n").ok
        assert scene.sandbox.read_file("data") == b"text\n"
        assert scene.call("write_file", path=f"new/{toolset}/é.py", content="").ok
        assert scene.sandbox.read_file(f"new/{toolset}/é.py") == b""
        assert not scene.call("write_file", path=".", content="").ok
        assert not scene.call("write_file", path="data/below", content="").ok
        assert not scene.call("write_file", path="large", content="x" * (5 << 20)).ok
        assert not scene.sandbox.run("ls large").ok


def test_bash_gives_output_and_exit_code(scene: Scene) -> None:
    assert scene.reply("bash", command="echo out; echo err >&2") == "out\nerr"
    failure = scene.call("bash", command="echo no; exit 3")
    assert (failure.content, failure.ok) == ("no\n[exit code 3]", False)
    for command in ("a\0b", "x" * (2 << 20)):
        assert not scene.call("bash", command=command).ok
    scene.command_timeout_s = 1.0
    timeout = scene.call("bash", command="echo begun; sleep 60")
    assert (timeout.content.split("\n")[0], timeout.ok) == ("begun", False)


def test_a_long_output_is_truncated_in_its_middle(scene: Scene) -> None:
    result = scene.call("bash", command="seq 9999")
    assert result.content.startswith("1\n2\n")
    assert result.content.endswith("\n9999")
    assert len(result.content) < 8100


def test_view_file_shows_numbered_lines(scene: Scene) -> None:
    view = scene.reply("view_file", path="pkg/area.py", start_line=2, end_line=99)
    assert view.split("\n")[1:3] == ["     2\t    return w + h", "     3\t"]
    assert scene.reply("view_file", path="pkg/area.py", start_line=2, end_line=-1) == view
    scene.sandbox.write_file("long", b"\n" * 5000 + b"y" * 50_000)
    assert len(scene.reply("view_file", path="long").split("\n")) == 401
    assert len(scene.reply("view_file", path="long", start_line=5001)) < 20_000
    for start, end in ((0, 1), (3, 2), (1, -2), (7, None), ("x", None), (True, None)):
        result = scene.call("view_file", path="pkg/area.py", start_line=start, end_line=end)
        assert not result.ok
        assert "start_line" in result.content
    result = scene.call("view_file", path="pkg/area.py", start_line=5000, end_line=6000)
    assert result.content.endswith("got 5000 to 6000")


@pytest.mark.parametrize(
    ("before", "arguments", "after"),
    [
        (b"a + a\na + a\n", {"line": 2, "old": "a", "new": "b"}, b"a + a\nb + a\n"),
        (b"a\nb\nc\n", {"line": 1.0, "old": "a\nb", "new": ""}, b"\nc\n"),
        (b"a\nb", {"line": 2, "old": "b", "new": "c\n"}, b"a\nc\n"),
        (b"a\r\nb\r\n", {"line": 2, "old": "b", "new": "x\ny"}, b"a\r\nx\r\ny\r\n"),
        (b"a\r\nb\n\xff\n", {"line": 1, "old": "a\nb", "new": "c\nd"}, b"c\r\nd\n\xff\n"),
        (b"a\n\n\na\nb\n", {"line": 3, "old": "a", "new": "c"}, b"a\n\n\nc\nb\n"),
        (b"a\n\na\nb\n", {"line": 0, "old": "a", "new": "c"}, b"c\n\na\nb\n"),
        (b"a\na\n", {"line": 9, "old": "a", "new": "c"}, b"a\nc\n"),
        (b"a\nb\n", {"line": 1, "old": "c", "new": "d"}, None),
        (b"a\nb\n", {"line": 1, "old": "", "new": "c"}, None),
    ],
)
def test_compact_replaces_the_text_nearest_to_a_line(
    scene: Scene, before: bytes, arguments: dict[str, object], after: bytes | None
) -> None:
    scene.toolset = "compact"
    scene.sandbox.write_file("file", before)
    assert scene.call("edit", path="file", **arguments).ok == (after is not None)
    assert scene.sandbox.read_file("file") == (before if after is None else after)
