"""Answers the requests of a sandbox's owner, one after the other, whatever the engine."""

import socket
from collections.abc import Callable, Mapping
from typing import Any

from coding_gym.sandbox.zygote import files, replies, wire
from coding_gym.sandbox.zygote.commands import Commands
from coding_gym.sandbox.zygote.replies import Reply

# Reads what it needs from the channel, and sends the whole reply.
Operation = Callable[[socket.socket], None]

MAX_BODY_BYTES = (64 << 20) + (1 << 20)
_NO_OPERATIONS: Mapping[str, Operation] = {}
_DONE = wire.header_text({})


def serve(channel: socket.socket, runner: Commands, operations: Mapping[str, Operation]) -> None:
    """Answers the owner, one request after the other, until it closes the channel.

    Args:
        channel: To the owner.
        runner: Runs commands.
        operations: What else this kind of sandbox can do, by name.
    """
    try:
        while True:
            answer_next(channel, runner, operations)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def answer_next(
    channel: socket.socket,
    runner: Commands,
    operations: Mapping[str, Operation] = _NO_OPERATIONS,
) -> None:
    """Waits for a request of the owner and answers it; see `serve`.

    Raises:
        EOFError, BrokenPipeError, ConnectionResetError: The owner closed the channel.
    """
    runner.rest()
    text, body = wire.receive_single(channel, max_body_bytes=MAX_BODY_BYTES)
    request = runner.parse(text)
    operation = operations.get(request["op"])
    if operation is not None:
        operation(channel)
        return
    header, answer = _answer(request, body, runner)
    channel.sendall(wire.pack_text(header, answer))


def _answer(request: dict[str, Any], body: bytes, runner: Commands) -> Reply:
    if request["op"] == "run":
        return runner.run(request, body)
    if request["op"] == "prepare":
        runner.prepare(request, body)
        return _DONE, b""
    try:
        runner.go_home()
        if request["op"] == "read":
            opener = runner.enclosure.open_file
            return _DONE, files.read(request["path"], request["max_bytes"], opener)
        files.write(request["path"], body, runner.enclosure.open_file)
    except OSError as error:
        return replies.failed(error), b""
    return _DONE, b""
