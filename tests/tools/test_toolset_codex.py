import json
from typing import Any

from episodes import Scene

from coding_gym.calls import ToolCall
from coding_gym.tools import get_toolset, tool_names
from coding_gym.tools.codex import repaired

CODEX = get_toolset("codex")


TOOLSET = "codex"
FILES = {"pkg/area.py": "def area(w, h):\n    return w + h\n", "README.md": "# Title\nthe text\n"}


def told(scene: Scene, tool: str, **arguments: Any) -> dict[str, Any]:
    content = scene.reply(tool, **arguments)
    result: dict[str, Any] = json.loads(content)
    assert content == json.dumps(result, ensure_ascii=False, sort_keys=True)
    return result


def error(scene: Scene, tool: str, **arguments: Any) -> str:
    assert not scene.call(tool, **arguments).ok
    result = told(scene, tool, **arguments)
    assert list(result) == ["error"]
    return str(result["error"])


def test_its_tools_are_arenos_nine() -> None:
    names = "list_files inspect_tree read_file rg apply_patch replace_text write_file run_command"
    assert tool_names(CODEX) == (*names.split(), "submit")
    assert CODEX.text_formats == ("apply_patch",)


def test_list_files_is_sorted_bounded_and_leaves_caches_out(scene: Scene) -> None:
    scene.sandbox.run("mkdir .git __pycache__ .github a; touch .git/x __pycache__/y .github/z a/b")
    scene.sandbox.run("touch a.py; ln -s /etc/passwd link; ln -s /etc folder")
    files = [".github/z", "README.md", "a/b", "a.py", "pkg/area.py"]
    assert told(scene, "list_files") == {"files": files, "truncated": False}
    assert told(scene, "list_files", path="pkg")["files"] == ["pkg/area.py"]
    assert told(scene, "list_files", path="pkg/area.py")["files"] == ["pkg/area.py"]
    scene.sandbox.run("cd a; seq 300 | xargs touch")
    many = told(scene, "list_files", path="a")
    assert (len(many["files"]), many["truncated"]) == (200, True)
    assert "outside the repository" in error(scene, "list_files", path="folder")


def test_inspect_tree_indents_by_depth(scene: Scene) -> None:
    scene.sandbox.run("mkdir -p a/b/c/d/e/f/g; touch a/b/x a.py")
    rows = ["README.md", "a/", "  b/", "    c/", "    x", "a.py", "pkg/", "  area.py"]
    assert told(scene, "inspect_tree") == {"tree": rows, "truncated": False}
    assert told(scene, "inspect_tree", max_depth=1)["tree"] == ["README.md", "a/", "a.py", "pkg/"]
    deepest = told(scene, "inspect_tree", path="a", max_depth=99)["tree"]
    assert deepest == ["b/", "  c/", "    d/", "      e/", "        f/", "          g/", "  x"]
    assert told(scene, "inspect_tree", path="a", max_depth="0")["tree"] == ["b/"]
    assert "is a file" in error(scene, "inspect_tree", path="a.py")


def test_read_file_numbers_a_bounded_range(scene: Scene) -> None:
    assert told(scene, "read_file", path="pkg/area.py", start_line=2) == {
        "content": "2:     return w + h",
        "end_line": 2,
        "path": "pkg/area.py",
        "start_line": 2,
        "total_lines": 2,
    }
    scene.sandbox.write_file("long", b"".join(b"%d\n" % i for i in range(1, 999)))
    assert told(scene, "read_file", path="long")["end_line"] == 80
    assert told(scene, "read_file", path="long", max_lines=999)["end_line"] == 200
    behind = told(scene, "read_file", path="long", start_line="5000")
    assert (behind["content"], behind["end_line"]) == ("", 4999)


def test_rg_finds_lines_without_ripgrep(scene: Scene) -> None:
    scene.sandbox.write_file("é/b.py", "x = 'größe'\r\n".encode() + b"\xff\n")
    scene.sandbox.write_file("data", b"def area\0")
    assert told(scene, "rg", pattern=r"def \w+\(|(?i)GRÖSSE|größe") == {
        "matches": [
            {"line": 1, "path": "pkg/area.py", "text": "def area(w, h):"},
            {"line": 1, "path": "é/b.py", "text": "x = 'größe'"},
        ],
        "truncated": False,
    }
    only = told(scene, "rg", pattern="RETURN", path="pkg/area.py", case_sensitive="false")
    assert [match["path"] for match in only["matches"]] == ["pkg/area.py"]
    assert told(scene, "rg", pattern="-v")["matches"] == []
    assert told(scene, "rg", pattern="nowhere")["matches"] == []


def test_rg_is_bounded(scene: Scene) -> None:
    scene.sandbox.write_file("long", (b"y" * 9000 + b"\n") * 60)
    found = told(scene, "rg", pattern="y+")
    assert (len(found["matches"]), found["truncated"]) == (50, True)
    assert {len(match["text"]) for match in found["matches"]} == {240}


def test_rg_refuses_what_is_no_pattern(scene: Scene) -> None:
    assert "invalid `pattern`: " in error(scene, "rg", pattern="(")
    for pattern in ("", "a\nb", "a\0b", "x" * 2000):
        assert "`pattern` must be one line" in error(scene, "rg", pattern=pattern)
    assert "outside the repository" in error(scene, "rg", pattern="root", path="/etc/passwd")


def test_replace_text_counts(scene: Scene) -> None:
    scene.sandbox.write_file("file", b"a a a\n")
    one = told(scene, "replace_text", path="file", old_text="a", new_text="b", count=1)
    assert one == {"path": "file", "replaced": 1}
    assert told(scene, "replace_text", path="file", old_text="a", new_text="b")["replaced"] == 2
    assert scene.sandbox.read_file("file") == b"b b b\n"
    assert "does not occur" in error(scene, "replace_text", path="file", old_text="a", new_text="")
    wrong = error(scene, "replace_text", path="file", old_text="b", new_text="", count=-1)
    assert "`count` must be at least 0" in wrong
    scene.sandbox.write_file("many", b"a" * 100_000)
    large = error(scene, "replace_text", path="many", old_text="a", new_text="b" * 100_000)
    assert "would be larger than 4 MiB" in large


def test_write_file_writes_and_appends(scene: Scene) -> None:
    assert told(scene, "write_file", path="d/n.txt", content="é\n") == {
        "append": False,
        "bytes": 3,
        "created": True,
        "path": "d/n.txt",
    }
    assert told(scene, "write_file", path="d/n.txt", content="b", append=True)["bytes"] == 4
    assert scene.sandbox.read_file("d/n.txt") == "é\nb".encode()
    scene.sandbox.write_file("data", b"\0")
    assert "binary" in error(scene, "write_file", path="data", content="b", append=True)


def test_run_command_is_bounded_in_time_and_text(scene: Scene) -> None:
    assert told(scene, "run_command", command="echo a; echo b >&2; exit 3") == {
        "output": "a\nb\n",
        "returncode": 3,
        "timed_out": False,
    }
    late = told(scene, "run_command", command="echo begun; sleep 60", timeout_s=0)
    assert (late["returncode"], late["timed_out"]) == (124, True)
    long = scene.call("run_command", command="seq 9999")
    assert len(long.content) < 9000
    assert "\n5000\n" in long.raw
    assert "background process" in told(scene, "run_command", command="sleep 60 &")["notes"][0]
    assert "`timeout_s` must be a number" in error(scene, "run_command", command="", timeout_s="x")
    assert "cannot be run" in error(scene, "run_command", command="a\0b")


def test_submit_has_a_status_and_a_short_summary(scene: Scene) -> None:
    result = scene.call("submit", status="blocked", summary="x" * 600)
    assert result.submitted
    assert json.loads(result.content) == {"submitted": {"status": "blocked", "summary": "x" * 500}}
    assert not scene.call("submit", status="done").submitted
    assert "needs the argument `status`" in error(scene, "submit")


def test_arguments_are_repaired_where_the_meaning_is_plain() -> None:
    for arguments, meant in [
        ({"path": '"pkg/area.py"'}, {"path": "pkg/area.py"}),
        ({"path": 'pkg/area.py"'}, {"path": "pkg/area.py"}),
        ({'{"path"': "pkg/area.py"}, {"path": "pkg/area.py"}),
        ({"arguments": '{"path": "a", "start_line": 2}'}, {"path": "a", "start_line": 2}),
        ({"command": 'echo "a"'}, {"command": 'echo "a"'}),
        ({"command": 'ls -la"'}, {"command": "ls -la"}),
        ({"content": '"a"'}, {"content": '"a"'}),
        ({"pattern": 'a"'}, {"pattern": 'a"'}),
        ({"patch": '"*** Begin\\n"'}, {"patch": "*** Begin\n"}),
        ({"patch": "--- a\\n+++ b\\n"}, {"patch": "--- a\n+++ b\n"}),
    ]:
        assert dict(repaired(ToolCall("any", arguments)).arguments) == meant, (arguments, meant)


def test_a_name_that_is_there_twice_is_the_exact_one_or_an_error(scene: Scene) -> None:
    both = repaired(ToolCall("any", {"path": "a.py", '"path"': "b.py"}))
    assert dict(both.arguments) == {"path": "a.py"}
    assert not both.error
    assert "`path` is there twice" in error(scene, "list_files", **{'"path"': ".", "{path": "pkg"})


def test_numbers_and_truth_values_may_be_text(scene: Scene) -> None:
    read = told(scene, "read_file", path="pkg/area.py", start_line="2", max_lines=1.0)
    assert read["content"] == "2:     return w + h"
    assert told(scene, "write_file", path="n", content="", append="True")["append"] is True
    wrong = error(scene, "write_file", path="n", content="", append="maybe")
    assert wrong == "`append` must be true or false, got 'maybe'"


def test_unknown_tools_and_broken_arguments_are_errors(scene: Scene) -> None:
    assert error(scene, "shell", cmd="ls").startswith("unknown tool: shell; there are list_files, ")
    broken = CODEX.execute(ToolCall("rg", error="Expecting value"), scene)
    assert json.loads(broken.content) == {"error": "invalid JSON arguments: Expecting value"}
    assert CODEX.on_no_call(scene).costs_call
