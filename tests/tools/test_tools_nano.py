from pathlib import Path

from episodes import Scene

from coding_gym.calls import ToolCall
from coding_gym.sandbox import (
    Mount,
    SandboxSpec,
    open_sandbox,
)
from coding_gym.tools import get_toolset

NANO = get_toolset("nano")


TOOLSET = "nano"
FILES = {"pkg/area.py": "def area(w, h):\n    return w + h\n"}


def shell(scene: Scene, cmd: str) -> str:
    return scene.reply("shell", cmd=cmd)


def patch(scene: Scene, search: str, replace: str, file: str = "pkg/area.py") -> str:
    return scene.reply("apply_patch", search=search, replace=replace, file=file)


def test_shell_replies_as_nano_does(scene: Scene) -> None:
    assert shell(scene, "echo; echo '  out '; echo err >&2") == "out \nerr"
    assert shell(scene, "true") == "command succeeded"
    assert shell(scene, "exit 3") == "command failed with exit code 3"
    assert shell(scene, "echo no; exit 3") == ("command failed with exit code 3. Error output:\nno")
    assert shell(scene, "pwd") == scene.sandbox.workdir


def test_shell_needs_its_argument(scene: Scene) -> None:
    assert scene.reply("shell") == "shell tool missing required 'cmd' parameter"
    assert scene.reply("shell", command="ls") == "shell tool missing required 'cmd' parameter"
    assert scene.reply("shell", cmd=["ls"]) == "shell tool parameter 'cmd' must be a string"


def test_a_command_that_cannot_start_has_an_error_result(scene: Scene) -> None:
    reply = shell(scene, "echo a\0b")
    assert reply.startswith("command failed with exit code 1. Error output:\nExecution failed: ")
    assert "surrogates not allowed" in shell(scene, "echo '\udfff'")
    assert shell(scene, "echo still here") == "still here"


def test_a_timeout_is_reported_as_nano_does(scene: Scene) -> None:
    scene.command_timeout_s = 0.2
    assert shell(scene, "echo before; sleep 60 & sleep 60") == (
        "command failed with exit code 124. Error output:\nCommand timed out after 0.2s"
    )


def test_replies_are_truncated_at_2000_characters(scene: Scene) -> None:
    assert shell(scene, "printf '%2000s' | tr ' ' x") == "x" * 2000
    assert shell(scene, "printf '%2001s' | tr ' ' x") == "x" * 2000 + "... output truncated"
    reply = shell(scene, "printf '%2000s' | tr ' ' é; exit 1")
    assert reply.startswith("command failed with exit code 1. Error output:\n")
    assert len(reply) == 2000 + len("... output truncated")


def test_killed_processes_are_reported_after_the_truncation(scene: Scene) -> None:
    assert shell(scene, "sleep 60 &") == (
        "command succeeded\n(1 background process was killed when the command returned)"
    )
    reply = shell(scene, "sleep 60 & sleep 60 & printf '%3000s' | tr ' ' x")
    assert reply.endswith(
        "... output truncated\n(2 background processes were killed when the command returned)"
    )


def test_apply_patch_replaces_one_occurrence(scene: Scene) -> None:
    assert patch(scene, "w + h", "w * h") == "patch applied successfully"
    assert scene.sandbox.read_file("pkg/area.py") == b"def area(w, h):\n    return w * h\n"
    assert patch(scene, "w - h", "") == (
        "search string not found - try using grep to find the exact text"
    )
    assert patch(scene, "h", "") == (
        "search ambiguous: 2 matches - add more context to make search unique"
    )
    assert patch(scene, "a", "b", "pkg/none.py") == "file pkg/none.py not found"
    assert patch(scene, "a", "b", "no/such/folder.py") == "file no/such/folder.py not found"


def test_apply_patch_needs_three_strings(scene: Scene) -> None:
    for arguments in [
        {},
        {"search": "a", "replace": "b"},
        {"search": "", "replace": "b", "file": "pkg/area.py"},
        {"search": 1, "replace": "b", "file": "pkg/area.py"},
        {"search": "a", "replace": None, "file": "pkg/area.py"},
        {"search": "\ud800", "replace": "b", "file": "pkg/area.py"},
    ]:
        result = scene.call("apply_patch", **arguments)
        assert (result.content, result.ok) == ("invalid `apply_patch` arguments", False), arguments


def test_paths_outside_the_workspace_are_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("one\n")
    mount = Mount(source=outside, target="/workspace-evil")
    with open_sandbox(SandboxSpec(mounts=(mount,))) as sandbox:
        scene = Scene(sandbox, toolset="nano")
        sandbox.write_file("pkg/a.py", b"")
        for path in (
            "/workspace-evil/file",
            "../workspace-evil/file",
            "pkg/../../workspace-evil/file",
        ):
            assert patch(scene, "one", "two", path) == "Path must be inside the repository", path


def test_unknown_tools_and_broken_arguments_are_named(scene: Scene) -> None:
    assert scene.reply("bash", cmd="ls") == "unknown tool: bash"
    call = ToolCall("shell", error="Expecting value: line 1 column 1 (char 0)")
    assert NANO.execute(call, scene).content == (
        "Malformed tool arguments JSON: Expecting value: line 1 column 1 (char 0)"
    )


def test_a_reply_without_a_call_gets_nano_agents_message() -> None:
    assert NANO.no_call_reply == (
        "Use shell to explore or apply_patch to make changes. Do not stop working."
    )
