"""Starting and ending our own processes that run nothing but Python's standard library."""

import contextlib
import fcntl
import os
import select
import signal
import socket
from pathlib import Path

from coding_gym.errors import last_line
from coding_gym.host.interpreters import default_interpreter

_MAIN = Path(__file__).parent / "zygote" / "__main__.py"
# The descriptor at which such a process finds its channel.
_CHANNEL = 3


class Standalone:
    """A process of ours, with nothing of ours but a channel.

    Args:
        engine: What it serves: ``"namespace"`` or ``"folder"``.
        main: Its program; the package's own when None.

    Attributes:
        pid: Its process id.
        channel: The owner's end of its channel.

    Raises:
        OSError: There are too many processes, or too little memory.
    """

    def __init__(self, engine: str, main: Path | None = None) -> None:
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._errors, errors = os.pipe2(os.O_CLOEXEC)
        try:
            self.pid = start(main or _MAIN, engine, theirs.fileno(), errors)
        except OSError:
            self.channel.close()
            self.stop_listening()
            raise
        finally:
            theirs.close()
            os.close(errors)

    def last_words(self, otherwise: str) -> str:
        """Returns the last line that it wrote to standard error, or another text."""
        os.set_blocking(self._errors, False)
        with contextlib.suppress(BlockingIOError):
            said = os.read(self._errors, 1 << 16).decode("utf-8", "replace")
            return last_line(said, otherwise=otherwise)
        return otherwise

    def stop_listening(self) -> None:
        """Lets go of its standard error; it is ready, or has ended."""
        os.close(self._errors)

    def end(self, timeout_s: float) -> None:
        """Waits for its end, and kills it where that takes too long."""
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            descriptor = os.pidfd_open(self.pid)
            try:
                poller = select.poll()
                poller.register(descriptor, select.POLLIN)
                if not poller.poll(timeout_s * 1000):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            finally:
                os.close(descriptor)
            os.waitpid(self.pid, 0)


def start(main: Path, engine: str, channel: int, errors: int) -> int:
    """Starts a program with nothing of ours but two descriptors, and returns its pid.

    Args:
        main: The program; its arguments are the number of the channel's descriptor and the engine.
        engine: What it is to serve: ``"namespace"`` or ``"folder"``.
        channel: Its channel.
        errors: Where it writes what goes wrong.

    Raises:
        OSError: There are too many processes, or too little memory.
    """
    # What a Python that is not installed system-wide may need in order to start at all.
    env = {k: v for k, v in os.environ.items() if k == "LD_LIBRARY_PATH"}
    python = str(default_interpreter().executable)
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    # Out of the way of 0 to 3, which a daemon may have closed and got again.
    moved = [fcntl.fcntl(ours, fcntl.F_DUPFD_CLOEXEC, 10) for ours in (null, errors, channel)]
    # Its copies are made when it starts, so that ours are never inheritable: other threads may
    # start processes just now.
    copies = zip((moved[0], *moved), range(_CHANNEL + 1), strict=True)
    try:
        return os.posix_spawn(
            python,
            [python, "-I", "-S", str(main), str(_CHANNEL), engine],
            env,
            file_actions=[(os.POSIX_SPAWN_DUP2, ours, its) for ours, its in copies],
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGPIPE, signal.SIGCHLD),
        )
    finally:
        for descriptor in (null, *moved):
            os.close(descriptor)
