from episodes import Scene

TOOLSET = "thesis"
FILES = {"pkg/area.py": "def area(w, h):\n    return w + h\n\n\nx = 1\nx = 1\n"}


def test_bash_gives_output_and_exit_code(scene: Scene) -> None:
    assert scene.reply("bash", command="echo out; echo err >&2") == "out\nerr"
    failed = scene.call("bash", command="echo no; exit 3")
    assert (failed.content, failed.ok) == ("no\n[exit code 3]", False)
    for command in ("a\0b", "x" * (2 << 20)):
        assert not scene.call("bash", command=command).ok
    scene.command_timeout_s = 0.2
    late = scene.call("bash", command="echo begun; sleep 60")
    assert (late.content.split("\n")[0], late.ok) == ("begun", False)


def test_a_long_output_loses_its_middle_and_is_kept_beside(scene: Scene) -> None:
    result = scene.call("bash", command="seq 9999")
    assert result.content.startswith("1\n2\n")
    assert result.content.endswith("\n9999")
    assert len(result.content) < 8100
    assert "\n5000\n" in result.raw


def test_view_file_shows_numbered_lines(scene: Scene) -> None:
    shown = scene.reply("view_file", path="pkg/area.py", start_line="2", end_line=99)
    assert shown.split("\n")[1:3] == ["     2\t    return w + h", "     3\t"]
    scene.sandbox.write_file("long", b"\n" * 5000 + b"y" * 50_000)
    assert len(scene.reply("view_file", path="long").split("\n")) == 401
    assert len(scene.reply("view_file", path="long", start_line=5001)) < 20_000
    for start, end in ((0, 1), (3, 2), (7, None), ("x", None), (True, None)):
        ranged = scene.call("view_file", path="pkg/area.py", start_line=start, end_line=end)
        assert not ranged.ok
        assert "start_line" in ranged.content


def test_str_replace_wants_one_occurrence(scene: Scene) -> None:
    def is_replaced(old: str, new: str) -> bool:
        return scene.call("str_replace", path="pkg/area.py", old_str=old, new_str=new).ok

    assert is_replaced("w + h", "w * h")
    for old in ("w + h", "x = 1", ""):
        assert not is_replaced(old, "z")
    assert scene.sandbox.read_file("pkg/area.py").startswith(b"def area(w, h):\n    return w * h\n")
