"""Pid 1 of one sandbox: sets it up, then serves its owner, one request at a time."""

import os
import socket
from functools import partial
from typing import Any

from coding_gym.sandbox.zygote import changes, commands, files, lockdown, parts, room, wire
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.replies import Reply
from coding_gym.sandbox.zygote.steps import SetupError

MAX_BODY_BYTES = (64 << 20) + (1 << 20)


def main(
    channel: socket.socket, request: dict[str, Any], prepared: parts.Parts, ids: tuple[int, int]
) -> None:
    """Builds the sandbox, says that it is ready, serves until the owner closes the channel."""
    try:
        restore = partial(changes.restore, channel=channel) if request["restores"] else None
        changed = room.build(request, prepared, ids, restore)
        room.set_up_network(shared=request["network"])
        lockdown.apply(request["limits"])
    except SetupError as error:
        channel.sendall(wire.pack(error.to_json()))
        os._exit(1)
    channel.sendall(wire.pack({}))
    _serve(channel, commands.Commands(request, channel), changed)


def _serve(channel: socket.socket, runner: commands.Commands, changed: changes.Changes) -> None:
    while True:
        try:
            runner.rest()
            request, body = wire.receive(channel, max_body_bytes=MAX_BODY_BYTES)
            if request["op"] == "snapshot":
                changes.send(changed, channel)
                continue
            header, answer = _answer(request, body, runner)
            channel.sendall(wire.pack(header, answer))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            # No process is left between requests, and the mounts end with this one.
            os._exit(0)


def _answer(request: dict[str, Any], body: bytes, runner: commands.Commands) -> Reply:
    if request["op"] == "run":
        return runner.run(request, body)
    try:
        os.chdir("/workspace")
        if request["op"] == "read":
            opener = sc.open_without_magic
            return {}, files.read(request["path"], request["max_bytes"], opener)
        files.write(request["path"], body, sc.open_without_magic)
    except OSError as error:
        return {"errno": error.errno or 0, "reason": error.strerror or str(error)}, b""
    return {}, b""
