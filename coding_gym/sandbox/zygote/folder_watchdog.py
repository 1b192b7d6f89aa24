"""The first process of a sandbox in a folder: dies with the owner, and leaves nothing behind.

It stays outside the enclosure. It reads its orders before anything of a policy runs, and from then
on nothing that comes from the sandbox.
"""

import os

from coding_gym.sandbox.zygote import folder_server, owner, processes, scratch, wire
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.steps import SetupError, step

_PR_SET_CHILD_SUBREAPER = 36
# What the server, which hears of the owner's end too, may take to end its processes all at once.
_PATIENCE_S = 2.0


def main(channel_descriptor: int) -> None:
    """Reads the orders, starts the server, waits for its end or the owner's; never returns."""
    channel, orders = owner.connect(channel_descriptor)
    try:
        watched = owner.watch(orders["owner"])
        with step("adopt what the sandbox leaves behind"):
            sc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
        with step("start the server"):
            pid = os.fork()
    except SetupError as error:
        channel.sendall(wire.pack(error.to_json()))
        os._exit(1)
    if pid == 0:
        os.close(watched)
        folder_server.main(channel, orders)
    channel.close()
    server = os.pidfd_open(pid)
    owner.wait_for_either(watched, server)
    owner.has_ended(server, _PATIENCE_S)
    processes.end_all(processes.Descendants(is_scoped=False))
    scratch.remove(orders["folder"])
    os._exit(0)
