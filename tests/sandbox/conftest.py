"""Layers that sandboxes may own, and sandboxes of the namespace backend."""

import os
import select
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from coding_gym.sandbox import Mount, Sandbox, SandboxSpec, default_interpreter
from coding_gym.sandbox.namespace import NamespaceBackend

MakeLayer = Callable[[Mapping[str, str]], Path]


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
            assert poller.poll(10_000), f"{seen} of {count} commands lit the beacon"
            seen += os.read(self._descriptor, 100).count(b"\n")

    def close(self) -> None:
        os.close(self._descriptor)


@pytest.fixture
def backend() -> NamespaceBackend:
    return NamespaceBackend()


@pytest.fixture
def make_layer(tmp_path: Path, backend: NamespaceBackend) -> MakeLayer:
    """Makes folders with the given files, owned as layers must be."""
    count = iter(range(1000))

    def make(files: Mapping[str, str]) -> Path:
        folder = tmp_path / f"layer{next(count)}"
        folder.mkdir()
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        for path in (folder, *folder.rglob("*")):
            os.chown(path, *backend.owner(), follow_symlinks=False)
        return folder

    return make


@pytest.fixture
def beacon(tmp_path: Path, backend: NamespaceBackend) -> Iterator[Beacon]:
    lit = Beacon(tmp_path / "beacon", backend.owner())
    yield lit
    lit.close()


@pytest.fixture
def sandbox(backend: NamespaceBackend) -> Iterator[Sandbox]:
    with backend.open(SandboxSpec(python=default_interpreter())) as opened:
        yield opened
