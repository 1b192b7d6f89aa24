"""Starting and ending our own processes that run nothing but Python's standard library."""

import contextlib
import fcntl
import os
import select
import signal
from pathlib import Path

from coding_gym.host.interpreters import default_interpreter

# The descriptor at which such a process finds its channel.
CHANNEL = 3


def start(main: Path, channel: int, errors: int) -> int:
    """Starts a program with nothing of ours but two descriptors, and returns its pid.

    Args:
        main: The program; its one argument is the number of the channel's descriptor.
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
    copies = zip((moved[0], *moved), range(CHANNEL + 1), strict=True)
    try:
        return os.posix_spawn(
            python,
            [python, "-I", "-S", str(main), str(CHANNEL)],
            env,
            file_actions=[(os.POSIX_SPAWN_DUP2, ours, its) for ours, its in copies],
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGPIPE, signal.SIGCHLD),
        )
    finally:
        for descriptor in (null, *moved):
            os.close(descriptor)


def end(pid: int, timeout_s: float) -> None:
    """Waits for the end of a process, and kills it where that takes too long."""
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        descriptor = os.pidfd_open(pid)
        try:
            poller = select.poll()
            poller.register(descriptor, select.POLLIN)
            if not poller.poll(timeout_s * 1000):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)
        os.waitpid(pid, 0)


def what_it_said(errors: int) -> str:
    """Returns what is in a pipe now."""
    os.set_blocking(errors, False)
    try:
        return os.read(errors, 1 << 16).decode("utf-8", "replace")
    except BlockingIOError:
        return ""
