"""What tests of sandboxes share: types of fixtures, and sandboxes of one backend."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from coding_gym.sandbox import Sandbox, SandboxSpec
from coding_gym.sandbox.namespace import NamespaceBackend

BACKEND = NamespaceBackend()
MakeLayer = Callable[[Mapping[str, str]], Path]


def make_sandbox(**fields: Any) -> Sandbox:
    """Opens a sandbox of the namespace backend; the fields are those of its spec."""
    return BACKEND.open(SandboxSpec(**fields))


def output(sandbox: Sandbox, command: str) -> str:
    """Runs a command that must succeed; its output, without blanks around it."""
    result = sandbox.run(command)
    assert result.ok, result.output
    return result.output.strip()
