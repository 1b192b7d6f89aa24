"""The process outside the confinement: dies with the owner, and leaves nothing behind.

It reads its orders before anything of a policy runs, and from then on nothing that comes from the
sandbox.
"""

import os
import select
import signal
import socket

from coding_gym.sandbox.zygote import processes, scratch, wire
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.landlock import init
from coding_gym.sandbox.zygote.steps import SetupError, step

_PR_SET_CHILD_SUBREAPER = 36
# What init, which hears of the owner's end too, may take to end its processes all at once.
_PATIENCE_MS = 2000


def main(channel_descriptor: int) -> None:
    """Reads the orders, starts init, waits for its end or the owner's; never returns."""
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, channel_descriptor)
    channel.set_inheritable(False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    orders, _ = wire.receive(channel, max_body_bytes=0)
    try:
        owner = _watch_owner(orders["owner"])
        with step("adopt what the sandbox leaves behind"):
            sc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
        pid = os.fork()
    except (SetupError, OSError) as error:
        failure = error if isinstance(error, SetupError) else SetupError("fork", 0, str(error))
        channel.sendall(wire.pack(failure.to_json()))
        os._exit(1)
    if pid == 0:
        os.close(owner)
        init.main(channel, orders)
    channel.close()
    _wait_for_either(owner, pid)
    processes.end_all(processes.Descendants(is_scoped=False))
    scratch.remove(orders["folder"])
    os._exit(0)


def _watch_owner(pid: int) -> int:
    """Returns a descriptor that becomes readable when the owner ends."""
    with step("watch the owner"):
        descriptor = os.pidfd_open(pid)
    if os.getppid() != pid:
        os._exit(0)
    return descriptor


def _wait_for_either(owner: int, pid: int) -> None:
    ended = os.pidfd_open(pid)
    poller = select.poll()
    poller.register(owner, select.POLLIN)
    poller.register(ended, select.POLLIN)
    if any(descriptor == ended for descriptor, _ in poller.poll()):
        return
    poller.unregister(owner)
    poller.poll(_PATIENCE_MS)
