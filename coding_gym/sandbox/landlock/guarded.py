"""Starting the two processes of a ``landlock`` sandbox, and their end, as the owner sees them."""

import os
import socket
from pathlib import Path
from typing import Any

from coding_gym.errors import SandboxError, last_line
from coding_gym.sandbox import cgroups, standalone
from coding_gym.sandbox.channel import Channel
from coding_gym.sandbox.removal import remove_folder
from coding_gym.sandbox.spec import SandboxLimits
from coding_gym.sandbox.zygote import wire
from coding_gym.sandbox.zygote.steps import SetupError

_MAIN = Path(__file__).parents[1] / "zygote" / "landlock" / "__main__.py"
_READY_TIMEOUT_S = 30.0
_END_TIMEOUT_S = 5.0


class Guarded:
    """A sandbox's channel, its guardian, and its folder.

    Args:
        folder: Everything that the sandbox wrote; goes with it.
        orders: What the guardian is told.
        limits: For its control group, where groups can be had.

    Attributes:
        channel: The owner's end of the channel to the sandbox's first process.

    Raises:
        SetupError: A step of the set-up failed.
        SandboxError: The processes could not be started.
    """

    def __init__(self, folder: Path, orders: dict[str, Any], limits: SandboxLimits) -> None:
        self._folder = folder
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        errors_read, errors_write = os.pipe2(os.O_CLOEXEC)
        self.channel = Channel(ours)
        self._pid = 0
        self._group: cgroups.Group | None = None
        try:
            try:
                self._pid = standalone.start(_MAIN, theirs.fileno(), errors_write)
            except OSError as error:
                raise SandboxError(f"cannot start a process: {error}") from error
            finally:
                theirs.close()
                os.close(errors_write)
            self._group = cgroups.make_group(limits)
            if self._group is not None:
                self._group.add(self._pid)
            header, _ = self.channel.call(
                wire.pack(orders), timeout_s=_READY_TIMEOUT_S, max_body_bytes=0
            )
            if "error" in header:
                raise SetupError.from_json(header["error"])
        except SandboxError as error:
            reason = last_line(standalone.what_it_said(errors_read), otherwise=str(error))
            self.close()
            raise SandboxError(f"the sandbox did not start: {reason}") from error
        except BaseException:
            self.close()
            raise
        finally:
            os.close(errors_read)

    def close(self) -> None:
        """Ends every process and drops every file; idempotent."""
        if not self.channel.close():
            return
        if self._pid:
            standalone.end(self._pid, _END_TIMEOUT_S)
        if self._group is not None:
            self._group.close()
        remove_folder(self._folder)
