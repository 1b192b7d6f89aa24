"""Connects a zygote to its owner: receives requests, and detects the owner's end."""

import contextlib
import os
import resource
import select
import signal
import socket
from collections.abc import Callable
from typing import Any

from coding_gym.sandbox.inside import wire
from coding_gym.sandbox.inside.syscalls import SetupError, step

_CHANNEL = 3


def connect() -> tuple[socket.socket, dict[str, Any]]:
    """Returns the channel to the owner, taken from standard input, and the configuration."""
    os.dup2(0, _CHANNEL, inheritable=False)
    os.dup2(1, 0)  # /dev/null
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, _CHANNEL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(0o022)  # for all new folders, and for the sandboxes' commands
    config, _ = wire.receive_request(channel)
    return channel, config


def report(channel: socket.socket, error: BaseException) -> None:
    """Sends an error to the owner, as a `SetupError`."""
    if not isinstance(error, SetupError):
        error = SetupError("serve the sandbox", 0, repr(error))
    with contextlib.suppress(OSError):  # the owner has ended or closed the channel
        channel.sendall(wire.pack(error.to_json()))


def watch(pid: int) -> int:
    """Returns a descriptor that becomes readable when the owner ends; exits if it has ended."""
    with step("watch the owner"):
        descriptor = os.pidfd_open(pid)
    if os.getppid() != pid:
        os._exit(0)
    return descriptor


def serve(control: socket.socket, owner: int, open_sandbox: Callable[[Any], int]) -> None:
    """Opens sandboxes on request until the owner ends or closes the channel.

    Args:
        control: The zygote's channel to the owner.
        owner: The descriptor from `watch`.
        open_sandbox: Starts the first process of the sandbox that a request describes; returns the
            owner's end of its channel.
    """
    # The kernel refuses to send if more descriptors of the uid are in transit than this limit, of
    # which sandboxes use at most half (`limit_descriptors`).
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    poller = select.poll()
    poller.register(owner, select.POLLIN)
    poller.register(control, select.POLLIN)
    while True:
        for descriptor, _ in poller.poll():
            if descriptor == owner:
                return
        try:
            message, _ = wire.receive_request(control)
        except EOFError:
            return
        try:
            channel = open_sandbox(message["request"])
        except SetupError as error:
            control.sendall(b"-" + wire.pack(error.to_json()))
            continue
        socket.send_fds(control, [b"+"], [channel])
        os.close(channel)
