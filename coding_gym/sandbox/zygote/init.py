"""Pid 1 of one sandbox: sets it up, then serves its owner, one request at a time."""

import os
import socket
from typing import Any

from coding_gym.sandbox.zygote import commands, files, lockdown, parts, room, wire
from coding_gym.sandbox.zygote.steps import SetupError

MAX_BODY_BYTES = (64 << 20) + (1 << 20)


def main(
    channel: socket.socket, request: dict[str, Any], prepared: parts.Parts, ids: tuple[int, int]
) -> None:
    """Builds the sandbox, says that it is ready, serves until the owner closes the channel."""
    try:
        room.build(request, prepared, ids)
        room.set_up_network(shared=request["network"])
        lockdown.apply(request["limits"])
    except SetupError as error:
        channel.sendall(wire.pack(error.to_json()))
        os._exit(1)
    channel.sendall(wire.pack({}))
    _serve(channel, request["env"])


def _serve(channel: socket.socket, env: dict[str, str]) -> None:
    while True:
        try:
            request, body = wire.receive(channel, max_body_bytes=MAX_BODY_BYTES)
            header, answer = _answer(request, body, env, channel)
            channel.sendall(wire.pack(header, answer))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            # No process is left between requests, and the mounts end with this one.
            os._exit(0)


def _answer(
    request: dict[str, Any], body: bytes, env: dict[str, str], channel: socket.socket
) -> commands.Reply:
    if request["op"] == "run":
        return commands.run(request, body, env, channel)
    try:
        os.chdir("/workspace")
        if request["op"] == "read":
            return {}, files.read(request["path"], request["max_bytes"])
        files.write(request["path"], body)
    except OSError as error:
        return {"errno": error.errno or 0, "reason": error.strerror or str(error)}, b""
    return {}, b""
