"""What the first process of either engine does: gets its orders, and watches its owner."""

import os
import select
import signal
import socket
from typing import Any

from coding_gym.sandbox.zygote import wire
from coding_gym.sandbox.zygote.steps import step


def connect(descriptor: int) -> tuple[socket.socket, dict[str, Any]]:
    """Returns the channel to the owner, and what the owner wants."""
    # What the owner's parents left open for everybody is nothing for commands.
    os.closerange(descriptor + 1, os.sysconf("SC_OPEN_MAX"))
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, descriptor)
    channel.set_inheritable(False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.umask(0o022)  # of every folder that is made from here on, and of the sandboxes' commands
    config, _ = wire.receive(channel, max_body_bytes=0)
    return channel, config


def watch(pid: int) -> int:
    """Returns a descriptor that becomes readable when the owner ends."""
    with step("watch the owner"):
        descriptor = os.pidfd_open(pid)
    if os.getppid() != pid:
        os._exit(0)
    return descriptor


def wait_for_either(owner: int, child: int) -> None:
    """Returns when the owner or a child of this process has ended."""
    poller = select.poll()
    poller.register(owner, select.POLLIN)
    poller.register(child, select.POLLIN)
    poller.poll()


def has_ended(descriptor: int, patience_s: float = 0) -> bool:
    """Whether the process of a descriptor ends within some time."""
    return bool(select.select([descriptor], [], [], patience_s)[0])
