"""No command that a tool runs for itself gets more time than the episode has left."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
from episodes import Scene

from coding_gym.calls import ExecResult
from coding_gym.sandbox import Sandbox, SandboxSpec, default_interpreter, open_sandbox

LEFT_S = 7.0
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-b\n+c\n*** End Patch"
CALLS: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "nano": (("apply_patch", {"file": "a.py", "search": "a", "replace": "b"}),),
    "thesis": (
        ("str_replace", {"path": "a.py", "old_str": "a", "new_str": "b"}),
        ("view_file", {"path": "a.py"}),
        ("write_file", {"path": "new.py", "content": "a"}),
    ),
    "editor": (
        ("str_replace_editor", {"command": "view", "path": "."}),
        ("str_replace_editor", {"command": "create", "path": "new.py", "file_text": "a"}),
        ("str_replace_editor", {"command": "undo_edit", "path": "new.py"}),
        (
            "str_replace_editor",
            {"command": "insert", "path": "a.py", "insert_line": 0, "new_str": "x"},
        ),
    ),
    "codex": (
        ("list_files", {}),
        ("inspect_tree", {}),
        ("rg", {"pattern": "a"}),
        ("replace_text", {"path": "a.py", "old_text": "a", "new_text": "b"}),
        ("apply_patch", {"patch": PATCH}),
        ("write_file", {"path": "new.py", "content": "a"}),
    ),
    "heavy": (
        ("create", {"path": "new.sh", "content": "true\n"}),
        ("edit", {"path": "new.sh", "old": "true", "new": "false"}),
        ("edit", {"path": "a.py", "old": "a", "new": "b"}),
    ),
    "pdb": (("view", {"path": "a.py"}), ("rewrite", {"path": "a.py", "new_code": "b"})),
}


class Watched:
    """A sandbox that notes how long its commands may take."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.times: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)

    def run(self, command: str, *, timeout_s: float = 120.0, **options: Any) -> ExecResult:
        self.times.append(timeout_s)
        return self._sandbox.run(command, timeout_s=timeout_s, **options)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with open_sandbox(SandboxSpec(python=default_interpreter())) as sandbox:
        yield sandbox


@pytest.mark.parametrize("toolset", CALLS)
def test_a_tools_own_commands_take_only_the_time_left(sandbox: Sandbox, toolset: str) -> None:
    sandbox.run("rm -f new*")
    sandbox.write_file("a.py", b"a\n")
    watched = Watched(sandbox)
    scene = Scene(cast("Sandbox", watched), toolset=toolset, command_timeout_s=LEFT_S)
    for tool, arguments in CALLS[toolset]:
        result = scene.call(tool, **arguments)
        assert result.ok, result.content
    assert watched.times
    assert max(watched.times) <= LEFT_S
