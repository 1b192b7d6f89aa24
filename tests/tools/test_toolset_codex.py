import json
from typing import Any

from episodes import Scene

TOOLSET = "codex"
FILES = {"pkg/area.py": "def area(w, h):\n    return w + h\n", "README.md": "# Title\nthe text\n"}


def parsed(scene: Scene, tool: str, **arguments: Any) -> dict[str, Any]:
    content = scene.reply(tool, **arguments)
    result: dict[str, Any] = json.loads(content)
    assert content == json.dumps(result, ensure_ascii=False, sort_keys=True)
    return result


def assert_refused(scene: Scene, tool: str, **arguments: Any) -> None:
    assert not scene.call(tool, **arguments).ok
    assert list(parsed(scene, tool, **arguments)) == ["error"]


def test_list_files_is_sorted_bounded_and_without_caches(scene: Scene) -> None:
    scene.sandbox.run("mkdir .git __pycache__ .github a; touch .git/x __pycache__/y .github/z a/b")
    scene.sandbox.run("touch a.py; ln -s /etc/passwd link; ln -s /etc folder")
    files = [".github/z", "README.md", "a/b", "a.py", "pkg/area.py"]
    assert parsed(scene, "list_files") == {"files": files, "truncated": False}
    assert parsed(scene, "list_files", path="pkg")["files"] == ["pkg/area.py"]
    scene.sandbox.run("cd a; seq 300 | xargs touch")
    result = parsed(scene, "list_files", path="a")
    assert (len(result["files"]), result["truncated"]) == (200, True)


def test_inspect_tree_indents_by_depth(scene: Scene) -> None:
    scene.sandbox.run("mkdir -p a/b/c/d/e/f/g; touch a/b/x a.py")
    rows = ["README.md", "a/", "  b/", "    c/", "    x", "a.py", "pkg/", "  area.py"]
    assert parsed(scene, "inspect_tree") == {"tree": rows, "truncated": False}
    rows_of_a = parsed(scene, "inspect_tree", path="a", max_depth=99)["tree"]
    assert rows_of_a == ["b/", "  c/", "    d/", "      e/", "        f/", "          g/", "  x"]
    assert parsed(scene, "inspect_tree", path="a", max_depth=0)["tree"] == ["b/"]
    assert_refused(scene, "inspect_tree", path="a.py")


def test_read_file_numbers_a_bounded_range(scene: Scene) -> None:
    assert parsed(scene, "read_file", path="pkg/area.py", start_line=2, max_lines=1.0) == {
        "content": "2:     return w + h",
        "end_line": 2,
        "path": "pkg/area.py",
        "start_line": 2,
        "total_lines": 2,
    }
    scene.sandbox.write_file("long", b"".join(b"%d\n" % i for i in range(1, 999)))
    assert parsed(scene, "read_file", path="long")["end_line"] == 80
    assert parsed(scene, "read_file", path="long", max_lines=999)["end_line"] == 200


def test_rg_finds_lines_without_ripgrep(scene: Scene) -> None:
    scene.sandbox.write_file("é/b.py", "x = 'größe'\r\n".encode() + b"\xff\n")
    scene.sandbox.write_file("data", b"def area\0")
    assert parsed(scene, "rg", pattern=r"def \w+\(|(?i)GRÖSSE|größe") == {
        "matches": [
            {"line": 1, "path": "pkg/area.py", "text": "def area(w, h):"},
            {"line": 1, "path": "é/b.py", "text": "x = 'größe'"},
        ],
        "truncated": False,
    }
    result = parsed(scene, "rg", pattern="RETURN", path="pkg/area.py", case_sensitive=False)
    assert [match["path"] for match in result["matches"]] == ["pkg/area.py"]
    assert parsed(scene, "rg", pattern="-v")["matches"] == []
    scene.sandbox.write_file("long", (b"y" * 9000 + b"\n") * 60)
    result = parsed(scene, "rg", pattern="y+")
    assert (len(result["matches"]), result["truncated"]) == (50, True)
    assert {len(match["text"]) for match in result["matches"]} == {240}
    for pattern in ("(", "", "a\nb", "a\0b", "x" * 2000):
        assert_refused(scene, "rg", pattern=pattern)
    for path in ("", "a\0b", "\ud800", "é" * 3_000_000):
        assert_refused(scene, "rg", pattern="y", path=path)
        assert_refused(scene, "list_files", path=path)
        assert_refused(scene, "read_file", path=path)
    assert parsed(scene, "rg", pattern="y+") == result


def test_replace_text_limits_and_counts_replacements(scene: Scene) -> None:
    scene.sandbox.write_file("file", b"a a a\n")
    words = {"path": "file", "old_text": "a", "new_text": "b"}
    assert parsed(scene, "replace_text", **words, count=1) == {"path": "file", "replaced": 1}
    assert parsed(scene, "replace_text", **words)["replaced"] == 2
    assert scene.sandbox.read_file("file") == b"b b b\n"
    assert_refused(scene, "replace_text", **words)
    assert_refused(scene, "replace_text", path="file", old_text="b", new_text="", count=-1)
    scene.sandbox.write_file("many", b"a" * 100_000)
    assert_refused(scene, "replace_text", path="many", old_text="a", new_text="b" * 100_000)


def test_write_file_writes_and_appends(scene: Scene) -> None:
    assert parsed(scene, "write_file", path="d/n.txt", content="é\n") == {
        "append": False,
        "bytes": 3,
        "created": True,
        "path": "d/n.txt",
    }
    assert parsed(scene, "write_file", path="d/n.txt", content="b", append=True)["bytes"] == 4
    assert scene.sandbox.read_file("d/n.txt") == "é\nb".encode()
    scene.sandbox.write_file("data", b"\0")
    assert_refused(scene, "write_file", path="data", content="b", append=True)
    assert_refused(scene, "write_file", path="n", content="", append="maybe")


def test_run_command_is_bounded_in_time_and_text(scene: Scene) -> None:
    assert parsed(scene, "run_command", command="echo a; echo b >&2; exit 3") == {
        "output": "a\nb\n",
        "returncode": 3,
        "timed_out": False,
    }
    timeout = parsed(scene, "run_command", command="echo begun; sleep 60", timeout_s=0)
    assert (timeout["returncode"], timeout["timed_out"]) == (124, True)
    result = scene.call("run_command", command="seq 9999")
    assert len(result.content) < 9000
    assert parsed(scene, "run_command", command="sleep 60 &")["notes"]
    assert_refused(scene, "run_command", command="", timeout_s="x")
    assert_refused(scene, "run_command", command="a\0b")


def test_submit_has_a_status_and_a_short_summary(scene: Scene) -> None:
    result = scene.call("submit", status="blocked", summary="x" * 600)
    assert result.submitted
    assert json.loads(result.content) == {"submitted": {"status": "blocked", "summary": "x" * 500}}
    assert not scene.call("submit", status="done").submitted
    assert_refused(scene, "submit")
