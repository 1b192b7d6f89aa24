from episodes import Scene

from coding_gym.calls import ToolCall
from coding_gym.tools import get_toolset, tool_names

TOOLSET = "thesis"
FILES = {"pkg/area.py": "def area(w, h):\n    return w + h\n\n\nx = 1\nx = 1\n"}


def test_its_tools_are_those_of_the_thesis() -> None:
    names = ("bash", "str_replace", "view_file", "write_file", "submit")
    assert tool_names(get_toolset("thesis")) == names


def test_bash_tells_output_and_how_it_ended(scene: Scene) -> None:
    assert scene.reply("bash", command="echo out; echo err >&2") == "out\nerr"
    assert scene.reply("bash", command="true") == "(no output)"
    failed = scene.call("bash", command="echo no; exit 3")
    assert (failed.content, failed.ok) == ("no\n[exit code 3]", False)
    assert scene.reply("bash", command="echo 3 passed in 1.23s") == "3 passed in 0.00s"
    scene.command_timeout_s = 0.2
    assert scene.reply("bash", command="echo begun; sleep 60") == "begun\n[killed after 0.2 s]"
    assert "1 background process was killed" in scene.reply("bash", command="sleep 60 &")


def test_a_long_output_loses_its_middle_and_is_kept_beside(scene: Scene) -> None:
    result = scene.call("bash", command="seq 9999")
    assert result.content.startswith("1\n2\n")
    assert result.content.endswith("\n9999")
    assert "characters left out ...]" in result.content
    assert len(result.content) < 8100
    assert "\n5000\n" in result.raw


def test_a_command_that_no_shell_takes_is_an_answer(scene: Scene) -> None:
    for command in ("a\0b", "x" * (2 << 20)):
        assert scene.reply("bash", command=command).startswith("Error: the command cannot be run")


def test_view_file_shows_numbered_lines(scene: Scene) -> None:
    assert scene.reply("view_file", path="pkg/area.py", start_line=2, end_line=99) == (
        "Lines 2 to 6 of 6 in pkg/area.py:\n"
        "     2\t    return w + h\n     3\t\n     4\t\n     5\tx = 1\n     6\tx = 1"
    )
    assert scene.reply("view_file", path="pkg/area.py", start_line="2", end_line="2").endswith("h")
    scene.sandbox.write_file("empty", b"")
    assert scene.reply("view_file", path="empty") == "empty is empty."
    scene.sandbox.write_file("long", b"\n" * 5000 + b"y" * 5000)
    assert scene.reply("view_file", path="long").startswith("Lines 1 to 400 of 5001 in long:\n")
    assert "[... 3000 more characters]" in scene.reply("view_file", path="long", start_line=5001)


def test_a_range_that_cannot_be_is_refused_by_name(scene: Scene) -> None:
    for start, end, said in [
        (0, 1, "`start_line` must be at least 1, got 0"),
        (3, 2, "`end_line` must be at least `start_line`, got 2 and 3"),
        (7, None, "pkg/area.py has 6 lines, got `start_line` 7"),
        ("x", None, "`start_line` must be a whole number, got 'x'"),
        (True, None, "`start_line` must be a whole number, got True"),
    ]:
        told = scene.reply("view_file", path="pkg/area.py", start_line=start, end_line=end)
        assert told == f"Error: {said}"


def test_str_replace_wants_one_occurrence(scene: Scene) -> None:
    def replace(old: str, new: str) -> str:
        return scene.reply("str_replace", path="pkg/area.py", old_str=old, new_str=new)

    assert replace("w + h", "w * h") == "Replaced the text at line 2 of pkg/area.py."
    assert "does not occur in pkg/area.py" in replace("w + h", "")
    assert "occurs 2 times in pkg/area.py, at lines 5, 6;" in replace("x = 1", "")
    assert "must not be empty" in replace("", "x")
    assert scene.sandbox.read_file("pkg/area.py").startswith(b"def area(w, h):\n    return w * h\n")


def test_missing_and_wrong_arguments_are_named(scene: Scene) -> None:
    assert scene.reply("str_replace", path="a", old="b") == (
        "Error: str_replace needs the argument `old_str`, got 'path', 'old'"
    )
    assert scene.reply("bash") == "Error: bash needs the argument `command`, got nothing"
    assert scene.reply("bash", command=["ls"]) == "Error: `command` must be a string, got ['ls']"
    assert "`content` holds a lone surrogate" in scene.reply(
        "write_file", path="a", content="\ud800"
    )
    assert scene.reply("shell", cmd="ls").startswith("Error: unknown tool: shell; there are bash, ")
    broken = ToolCall("bash", error="Expecting value")
    assert get_toolset("thesis").execute(broken, scene).content == (
        "Error: the arguments are no JSON: Expecting value"
    )


def test_write_file_says_what_it_did(scene: Scene) -> None:
    assert scene.reply("write_file", path="new.py", content="a\nb\n") == "Created new.py, 2 lines."
    assert scene.reply("write_file", path="new.py", content="a") == "Wrote new.py, 1 line."


def test_submit_ends_and_no_call_says_what_was_expected(scene: Scene) -> None:
    assert scene.call("submit").submitted
    answer = get_toolset("thesis").on_no_call(scene)
    assert (answer.ends, answer.costs_call) == (False, True)
    assert "view_file" in answer.reply
