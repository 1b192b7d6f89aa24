"""What nano's shell says of ends that nano-agent does not know: memory, lost shells."""

import pytest
from scene import Scene

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.sandbox import SandboxLimits, SandboxSpec, default_interpreter
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.tools import get_toolset

_GONE = "its folder, variables, functions and background processes are gone]"


def _shell(context: Scene, command: str) -> ToolResult:
    return get_toolset("nano").execute(ToolCall("shell", {"cmd": command}), context)


def test_a_command_that_used_too_much_memory_is_told_so() -> None:
    limits = SandboxLimits(memory_bytes=64 << 20)
    with NamespaceBackend().open(SandboxSpec(python=default_interpreter(), limits=limits)) as box:
        take = "python -c \"x = b'x' * (200 << 20); import time; time.sleep(60)\""
        result = _shell(Scene(box, "nano"), f"echo begun; {take}")
    assert not result.ok
    assert result.content == (
        "command failed with exit code 137. Error output:\nbegun\n"
        "(killed: it used more memory than there is)"
    )


LONG = "".join(f"{number}\n" for number in range(1, 10_000))


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        (
            "echo out; exit 3",
            "command failed with exit code 3. Error output:\nout\n[the shell exited",
        ),
        ("exit", "command succeeded\n[the shell exited"),
        ("echo out; exit 0", "out\n[the shell exited"),
        ("seq 9999; exit 0", f"{LONG[:2000]}... output truncated\n[the shell exited"),
        (
            "echo out; sleep 60",
            "command failed with exit code 124. Error output:\n"
            "Command timed out after 0.5s\n[the shell was killed at the time limit",
        ),
    ],
    ids=["fails", "silent", "speaks", "long", "late"],
)
def test_a_lost_shell_is_told_of_below_all_else(command: str, reply: str) -> None:
    with NamespaceBackend().open(SandboxSpec(shell="persistent")) as sandbox:
        context = Scene(sandbox, "nano", command_timeout_s=0.5)
        assert _shell(context, command).content == f"{reply}; {_GONE}"
        assert _shell(context, "echo new").content == "new"
