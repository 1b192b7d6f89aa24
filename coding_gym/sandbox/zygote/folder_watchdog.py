"""The zygote of sandboxes in folders of the host, and the watchdog that it forks for each of them.

The zygote stays outside every enclosure and holds nothing of any sandbox: it hands the owner's end
of a new channel out and closes both. A watchdog is the first process of one sandbox. It reads its
orders from that channel before anything of a policy runs, and from then on nothing that comes from
the sandbox. It dies with the owner, not with the zygote, and leaves nothing behind.
"""

import gc
import os
import signal
import socket
from functools import partial
from typing import NoReturn

from coding_gym.sandbox.zygote import folder_server, owner, process_table, scratch, wire
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.steps import SetupError, step

_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36
# The server hears of the owner's end too, and may take so long to end its processes all at once.
_PATIENCE_S = 2.0


def main() -> None:
    """Reads the configuration, then forks watchdogs until the owner ends; never returns."""
    control, config = owner.connect()
    try:
        watched = owner.watch(config["owner"])
        with step("refuse to be traced"):
            sc.prctl(_PR_SET_DUMPABLE, 0)
    except SetupError as error:
        control.sendall(wire.pack(error.to_json()))
        os._exit(1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the watchdogs
    gc.collect()
    gc.freeze()
    control.sendall(wire.pack({}))
    os.dup2(0, 2)
    try:
        owner.serve(control, watched, partial(_start, control, watched))
    finally:
        os._exit(0)


def _start(control: socket.socket, watched: int, _: bytes, group: int | None) -> tuple[int, int]:
    """Forks a watchdog; returns the owner's end of its channel, and a descriptor to kill it by."""
    with step("start a sandbox's watchdog"):
        theirs, its = sc.socket_pair()
        try:
            pid = os.fork()
            if pid == 0:
                os.close(theirs)
                _become_watchdog(its, control, watched, group)
            watchdog = os.pidfd_open(pid)
        except OSError:
            os.close(theirs)
            raise
        finally:
            os.close(its)
    return theirs, watchdog


def _become_watchdog(its: int, control: socket.socket, watched: int, group: int | None) -> NoReturn:
    """Leaves the zygote behind, whose ``control`` becomes the sandbox's channel; never returns."""
    try:
        os.dup2(its, control.fileno(), inheritable=False)
        os.close(its)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        try:
            if group is not None:
                with step("join the sandbox's control group"):
                    os.write(group, b"0")
                os.close(group)
            _watch_over(control, watched)
        except SetupError as error:
            control.sendall(wire.pack(error.to_json()))
    finally:  # nothing may unwind into the zygote's code in this process
        os._exit(1)


def _watch_over(channel: socket.socket, watched: int) -> None:
    """Starts the server, waits for its end or the owner's, ends and removes what is left.

    The channel stays open here as well: its end tells the owner that all of that is done.
    """
    orders, _ = wire.receive(channel, max_body_bytes=0)
    with step("adopt what the sandbox leaves behind"):
        sc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    with step("start the server"):
        pid = os.fork()
    if pid == 0:
        os.close(watched)
        # Of a process that may not be traced, the files in /proc are root's, even for itself.
        sc.prctl(_PR_SET_DUMPABLE, 1)
        folder_server.main(channel, orders)
    server = os.pidfd_open(pid)
    owner.wait_for_either(watched, server)
    owner.has_ended(server, _PATIENCE_S)
    process_table.Processes(process_table.descendants, has_own_signals=False).end()
    scratch.remove(orders["folder"])
