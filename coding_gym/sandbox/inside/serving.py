"""Answers the requests of a sandbox's owner, one after the other, whatever the engine."""

import contextlib
import os
import socket
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from coding_gym.sandbox.inside import files, packing, preloaders, wire
from coding_gym.sandbox.inside import syscalls as sc
from coding_gym.sandbox.inside.commands import Commands
from coding_gym.sandbox.inside.syscalls import SetupError, step
from coding_gym.sandbox.inside.watch import Reply

if TYPE_CHECKING:  # loaded by the server of one engine only
    from coding_gym.sandbox.inside.plan import PlannedSandbox

# Reads what it needs from the channel, and sends the whole reply.
Operation = Callable[[socket.socket], None]

_MAX_BODY_BYTES = (64 << 20) + (1 << 20)
_DONE = wire.header_text({})

# Instructions are rewritten from the eighth time on.
_NUM_WARM_UPS = 10
_WARM_UP_SANDBOX = {
    "env": {},
    "limits": {"memory_bytes": 1 << 62, "num_processes": 1},
}
_WARM_UP_REQUEST = {
    "op": "run",
    "timeout_s": 1,
    "max_output_bytes": 1,
    "cwd": "/",
    "env": {},
    "stdin_bytes": 0,
    "is_plain": True,
}


def main(
    channel: socket.socket,
    planned: "PlannedSandbox",
    preloader: tuple[int, int] | None,
) -> None:
    """Makes a sandbox of which this is pid 1, and serves until the owner closes the channel.

    Args:
        channel: To the owner.
        planned: The sandbox.
        preloader: Its sockets to its preloader.
    """
    try:
        if preloader is not None:
            with step("offer the preloader its namespaces"):
                preloaders.offer(preloader)
        planned.program.run()
    except SetupError as error:
        channel.sendall(wire.pack(error.to_json()))
        os._exit(1)
    serve(channel, planned.commands, {"snapshot": partial(_snapshot, planned)})
    # No process is left between requests, and the mounts end with this one.
    os._exit(0)


def serve(channel: socket.socket, runner: Commands, operations: Mapping[str, Operation]) -> None:
    """Answers the owner, one request after the other, until it closes the channel.

    ``operations`` are those of this kind of sandbox alone, by name.
    """
    try:
        while True:
            _answer_next(channel, runner, operations)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def warm_up() -> int:
    """Answers requests of our own before there is any sandbox; returns how many commands ran.

    Python rewrites its instructions as it learns what they meet (PEP 659), and makes some objects
    when they are first needed. All sandboxes share the work done before the first clone; work in
    each of them costs each a quarter of a megabyte, and time in its first command.

    To be called in the first process of a pid namespace: there, what ends a command's leftovers
    ends no other process.
    """
    count = 0
    owner, channel = socket.socketpair()
    with owner, channel, contextlib.suppress(OSError):
        commands = Commands(_WARM_UP_SANDBOX, channel, home="/")
        for _ in range(_NUM_WARM_UPS):
            owner.sendall(wire.pack(_WARM_UP_REQUEST, b":"))
            _answer_next(channel, commands, {})
            reply, _ = wire.receive(owner, max_body_bytes=_MAX_BODY_BYTES)
            count += reply["exit_code"] == 0
        descriptor = os.memfd_create("warm-up")
        path = f"/proc/self/fd/{descriptor}"
        for _ in range(_NUM_WARM_UPS):
            files.write(path, b"x")
            files.read(path, 1)
            os.close(sc.open_without_magic("/", os.O_RDONLY | os.O_CLOEXEC))
        os.close(descriptor)
    return count


def _answer_next(
    channel: socket.socket, runner: Commands, operations: Mapping[str, Operation]
) -> None:
    """Waits for a request of the owner and answers it; see `serve`."""
    text, body = wire.receive_single(channel, max_body_bytes=_MAX_BODY_BYTES)
    request = _parsed(text)
    operation = operations.get(request["op"])
    if operation is not None:
        operation(channel)
        return
    header, answer = _answer(request, body, runner)
    channel.sendall(wire.pack_text(header, answer))


@lru_cache(maxsize=1)
def _parsed(text: bytes) -> dict[str, Any]:
    """Returns a request, most often equal to the last one; never to be changed."""
    return wire.parse(text)


def _answer(request: dict[str, Any], body: bytes, runner: Commands) -> Reply:
    if request["op"] == "run":
        return runner.run(request, body)
    try:
        runner.go_home()
        if request["op"] == "read":
            opener = runner.enclosure.open_file
            return _DONE, files.read(request["path"], request["max_bytes"], opener)
        files.write(request["path"], body, runner.enclosure.open_file)
    except OSError as error:
        reason = error.strerror or str(error)
        return wire.header_text({"errno": error.errno or 0, "reason": reason}), b""
    return _DONE, b""


def _snapshot(planned: "PlannedSandbox", channel: socket.socket) -> None:
    packing.send(planned.changed, channel)
