"""Pid 1 of one sandbox: sets it up, then serves its owner."""

import os
import socket
from functools import partial

from coding_gym.sandbox.zygote import packing, preloaders, wire
from coding_gym.sandbox.zygote.plan import PlannedSandbox
from coding_gym.sandbox.zygote.serving import serve
from coding_gym.sandbox.zygote.steps import SetupError, step


def main(
    channel: socket.socket, planned: PlannedSandbox, group: int | None, bell: int | None
) -> None:
    """Makes the sandbox, says that it is ready, serves until the owner closes the channel.

    Args:
        channel: To the owner.
        planned: What to make.
        group: By which this process, and all that it starts, joins the sandbox's control group.
        bell: Its end of the way to its preloader.
    """
    try:
        if group is not None:
            with step("join the sandbox's control group"):
                os.write(group, b"0")
        if bell is not None:
            with step("offer the preloader its namespaces"):
                preloaders.offer(bell, group)
                os.dup2(bell, preloaders.BELL, inheritable=False)
        planned.program.run()
    except SetupError as error:
        channel.sendall(wire.pack(error.to_json()))
        os._exit(1)
    serve(channel, planned.commands, {"snapshot": partial(_snapshot, planned)})
    # No process is left between requests, and the mounts end with this one.
    os._exit(0)


def _snapshot(planned: PlannedSandbox, channel: socket.socket) -> None:
    with planned.commands.stopped():
        packing.send(planned.changed, channel)
