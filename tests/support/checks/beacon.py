"""A sign of life from inside a sandbox: a named pipe in a folder that commands may write."""

import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from checks.claims import give, tree
from coding_gym.sandbox.protocol import SandboxBackend
from coding_gym.sandbox.spec import Mount

_TARGET = "/opt/coding_gym-beacon"
_PATIENCE_S = 20.0


class Beacon:
    """The owner's end of the pipe.

    Attributes:
        mount: What the sandbox needs for it.
    """

    def __init__(self, folder: Path) -> None:
        self.mount = Mount(source=folder, target=_TARGET, writable=True)
        self._descriptor = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)

    def pipe(self, path: str = _TARGET) -> str:
        """Returns the pipe's path for commands, given that of the mount for them."""
        return f"{path}/pipe"

    def wait_lit(self) -> None:
        """Waits until a command has written a line.

        Raises:
            AssertionError: None came in time.
        """
        if not self._events(_PATIENCE_S) & select.POLLIN or not os.read(self._descriptor, 1):
            raise AssertionError("the command did not start in time")

    def is_out(self, within_s: float) -> bool:
        """Whether every process that held the pipe open has ended by then."""
        return bool(self._events(within_s) & select.POLLHUP)

    def close(self) -> None:
        """Lets go of the pipe."""
        os.close(self._descriptor)

    def _events(self, timeout_s: float) -> int:
        poller = select.poll()
        poller.register(self._descriptor, select.POLLIN)
        return sum(events for _, events in poller.poll(timeout_s * 1000))


@contextmanager
def beacon(backend: SandboxBackend) -> Iterator[Beacon]:
    """Gives a beacon that the backend's commands may use."""
    with tree(backend, {}) as folder:
        os.mkfifo(folder / "pipe")
        give(backend, folder)
        lit = Beacon(folder)
        try:
            yield lit
        finally:
            lit.close()
