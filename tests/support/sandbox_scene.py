"""What tests of sandboxes share: types of fixtures, and a pipe by which commands report."""

import os
import select
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from coding_gym.sandbox import Mount, Sandbox, SandboxSpec
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


class Beacon:
    """Lets a command in a sandbox tell the test that it got somewhere, while it runs on."""

    def __init__(self, folder: Path, owner: tuple[int, int]) -> None:
        folder.mkdir()
        os.mkfifo(folder / "fifo")
        for path in (folder, folder / "fifo"):
            os.chown(path, *owner)
        self.mount = Mount(source=folder, target="/opt/beacon", writable=True)
        self.light = "echo > /opt/beacon/fifo"
        self._descriptor = os.open(folder / "fifo", os.O_RDWR | os.O_NONBLOCK)

    def wait(self, count: int = 1) -> None:
        poller = select.poll()
        poller.register(self._descriptor, select.POLLIN)
        seen = 0
        while seen < count:
            assert poller.poll(30_000), f"{seen} of {count} commands lit the beacon"
            seen += os.read(self._descriptor, 100).count(b"\n")

    def close(self) -> None:
        os.close(self._descriptor)
