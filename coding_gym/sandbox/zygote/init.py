"""Pid 1 of one sandbox: sets it up, then serves its owner, one request at a time."""

import os
import socket
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from coding_gym.sandbox.zygote import changes, commands, files, replies, wire
from coding_gym.sandbox.zygote.plan import PlannedSandbox
from coding_gym.sandbox.zygote.replies import Reply
from coding_gym.sandbox.zygote.steps import SetupError, step

MAX_BODY_BYTES = (64 << 20) + (1 << 20)
# Reads what it needs from the channel, and sends the whole reply.
Operation = Callable[[socket.socket], None]
_NO_OPERATIONS: Mapping[str, Operation] = {}
_DONE = wire.header_text({})


def main(channel: socket.socket, planned: PlannedSandbox, group: int | None) -> None:
    """Makes the sandbox, says that it is ready, serves until the owner closes the channel.

    Args:
        channel: To the owner.
        planned: What to make.
        group: By which this process, and all that it starts, joins the sandbox's control group.
    """
    try:
        if group is not None:
            with step("join the sandbox's control group"):
                os.write(group, b"0")
        planned.program.run()
    except SetupError as error:
        channel.sendall(wire.pack(error.to_json()))
        os._exit(1)
    serve(channel, planned.commands, {"snapshot": partial(_snapshot, planned)})
    # No process is left between requests, and the mounts end with this one.
    os._exit(0)


def serve(
    channel: socket.socket, runner: commands.Commands, operations: Mapping[str, Operation]
) -> None:
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
    runner: commands.Commands,
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


def _snapshot(planned: PlannedSandbox, channel: socket.socket) -> None:
    with planned.commands.stopped():
        changes.send(planned.changed, channel)


def _answer(request: dict[str, Any], body: bytes, runner: commands.Commands) -> Reply:
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
