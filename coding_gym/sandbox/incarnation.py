"""One life of a sandbox of the ``namespace`` backend: what a restore replaces."""

import socket
from pathlib import Path

from coding_gym.sandbox import cgroups, disk_uppers
from coding_gym.sandbox.channel import Channel
from coding_gym.sandbox.protocol import Snapshot
from coding_gym.sandbox.zygote.steps import SetupError

_READY_TIMEOUT_S = 30.0


class Incarnation:
    """A channel to a sandbox's first process, and what must go when that ends.

    Args:
        stream: Connects to the first process, which is still setting the sandbox up.
        upper: The folder on disk that holds the sandbox's changes.
        group: The control group that the first process joins before anything else.

    Attributes:
        channel: The owner's end of it.
    """

    def __init__(
        self, stream: socket.socket, upper: Path | None, group: cgroups.Group | None
    ) -> None:
        self.channel = Channel(stream)
        self._upper = upper
        self._group = group

    def wait_until_ready(self, snapshot: Snapshot | None) -> None:
        """Sends the files that the sandbox was promised and waits for the end of the set-up.

        Raises:
            SetupError: A step of it failed.
            SandboxError: The first process died, or does not answer.
        """
        try:
            if snapshot is not None:
                self.channel.upload(snapshot.data, timeout_s=_READY_TIMEOUT_S)
            header, _ = self.channel.call(b"", timeout_s=_READY_TIMEOUT_S, max_body_bytes=0)
            if "error" in header:
                raise SetupError.from_json(header["error"])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends every process and drops every file; idempotent."""
        if not self.channel.close():
            return
        if self._group is not None:
            self._group.close()
        if self._upper is not None:
            disk_uppers.remove(self._upper)
