"""No command that a tool runs for itself gets more time than the episode has left."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
from episodes import Scene

from coding_gym.calls import ExecResult
from coding_gym.sandbox import Sandbox, SandboxSpec, default_interpreter, open_sandbox

LEFT_S = 7.0
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+c\n*** End Patch"
EDIT = "str_replace_editor"
CALLS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("nano", "apply_patch", {"file": "a.py", "search": "a", "replace": "b"}),
    ("thesis", "write_file", {"path": "new.py", "content": "a"}),
    ("editor", EDIT, {"command": "view", "path": "."}),
    ("editor", EDIT, {"command": "create", "path": "new.py", "file_text": "a"}),
    ("codex", "list_files", {}),
    ("codex", "rg", {"pattern": "a"}),
    ("codex", "apply_patch", {"patch": PATCH}),
    ("heavy", "create", {"path": "new.sh", "content": "true\n"}),
    ("heavy", "edit", {"path": "a.py", "old": "a", "new": "b"}),
)


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


@pytest.mark.parametrize(("toolset", "tool", "arguments"), CALLS)
def test_a_tools_own_commands_take_only_the_time_left(
    sandbox: Sandbox, toolset: str, tool: str, arguments: dict[str, Any]
) -> None:
    sandbox.run("rm -f new*")
    sandbox.write_file("a.py", b"a\n")
    watched = Watched(sandbox)
    scene = Scene(cast("Sandbox", watched), toolset=toolset, command_timeout_s=LEFT_S)
    result = scene.call(tool, **arguments)
    assert result.ok, result.content
    assert watched.times
    assert max(watched.times) <= LEFT_S
