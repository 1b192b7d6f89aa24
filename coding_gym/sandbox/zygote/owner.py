"""The owner's side of a zygote: its orders and requests, and the watch over its end."""

import os
import select
import signal
import socket
import struct
from collections.abc import Callable
from typing import Any

from coding_gym.sandbox.zygote import wire
from coding_gym.sandbox.zygote.steps import SetupError, step

_CHANNEL = 3  # as `plan.CHANNEL`
_DESCRIPTOR = struct.Struct("i")
_CLOSE_ON_EXEC = socket.MSG_CMSG_CLOEXEC


def connect() -> tuple[socket.socket, dict[str, Any]]:
    """Returns the channel to the owner, which came as standard input, and the configuration."""
    os.dup2(0, _CHANNEL, inheritable=False)
    os.dup2(1, 0)  # /dev/null
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, _CHANNEL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
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


def serve(
    control: socket.socket, owner: int, open_sandbox: Callable[[bytes, int | None], int]
) -> None:
    """Opens sandboxes on request until the owner ends.

    What this loop touches between two sandboxes is a page of memory less that they share with it,
    and with each other: see `plan`.

    Args:
        control: The zygote's channel to the owner.
        owner: From `watch`.
        open_sandbox: Given the text of a request, and the descriptor by which the sandbox's first
            process joins its control group, if any, starts that process and returns the owner's
            end of its channel.
    """
    poller = select.poll()
    poller.register(owner, select.POLLIN)
    poller.register(control, select.POLLIN)
    while True:
        for descriptor, _ in poller.poll():
            if descriptor == owner:
                return
        try:
            group = _receive_entrance(control)
            text, _ = wire.receive_text(control, max_body_bytes=0)
        except EOFError:
            return
        try:
            theirs = open_sandbox(text, group)
        except SetupError as error:
            control.sendall(b"-" + wire.pack(error.to_json()))
            continue
        finally:
            if group is not None:
                os.close(group)
        control.sendmsg([b"+"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, _DESCRIPTOR.pack(theirs))])
        os.close(theirs)


def _receive_entrance(control: socket.socket) -> int | None:
    """Returns the descriptor by which the next sandbox joins its control group, if it has one."""
    mark, found, _, _ = control.recvmsg(1, socket.CMSG_SPACE(_DESCRIPTOR.size), _CLOSE_ON_EXEC)
    if not mark:
        raise EOFError("the channel was closed")
    return int(_DESCRIPTOR.unpack(found[0][2])[0]) if found else None


def wait_for_either(owner: int, child: int) -> None:
    """Returns when the owner or a child of this process has ended."""
    poller = select.poll()
    poller.register(owner, select.POLLIN)
    poller.register(child, select.POLLIN)
    poller.poll()


def has_ended(descriptor: int, patience_s: float = 0) -> bool:
    """Whether the process of a descriptor ends within some time."""
    return bool(select.select([descriptor], [], [], patience_s)[0])
