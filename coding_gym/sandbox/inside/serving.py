"""Answers the requests of a sandbox's owner, one after the other."""

import errno
import os
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from coding_gym.sandbox.inside import commands, files, wire
from coding_gym.sandbox.inside import syscalls as sc
from coding_gym.sandbox.inside.commands import (
    GRACE_S,
    Command,
    Outcome,
    Reply,
    Start,
    refused,
    spawn_bash,
)
from coding_gym.sandbox.inside.files import Opener
from coding_gym.sandbox.inside.processes import MemoryWatch, all_but_first

# Takes a request, whose ``file`` it closes, and sends the whole reply.
Operation = Callable[[dict[str, Any], socket.socket], None]

_MAX_BODY_BYTES = (64 << 20) + (1 << 20)
_OUT_OF_PROCESSES = (errno.EAGAIN, errno.ENOMEM)


class Commands:
    """Runs the commands of one sandbox, each in a new bash, one at a time.

    Args:
        env: The variables of commands.
        memory_bytes: Limit on the memory of all processes together.
        channel: The channel to the owner; this process ends when it closes.
        start: Starts bash.
        fork: Starts a Python run in place of bash; None if bash starts it.
        list_pids: Lists the ids of all processes of the sandbox.
        open_file: Opens files for the owner.

    Attributes:
        open_file: As the argument.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        memory_bytes: int,
        channel: socket.socket,
        *,
        start: Start = spawn_bash,
        fork: Start | None = None,
        list_pids: Callable[[], frozenset[int]] = all_but_first,
        open_file: Opener = sc.open_without_magic,
    ) -> None:
        self.open_file = open_file
        self._starts = {"run": start, "python": fork or start}
        # Encoded once, not for each command.
        self._env = _encoded(env)
        self._channel = channel
        self._memory = MemoryWatch(memory_bytes, list_pids)

    def run(self, request: dict[str, Any], body: bytes) -> Reply:
        """Runs a command and returns the reply's header and body.

        Args:
            request: From `served_sandbox`, with a descriptor of the standard input as ``file``.
            body: The command's text; empty for a fork, which reads its source itself.
        """
        started = time.monotonic()
        try:
            self._enter(request["cwd"])
        except OSError as error:
            return refused(f"cd: {request['cwd']}: {error.strerror}", 1, request)
        env = self._env | _encoded(request["env"]) if request["env"] else self._env
        arguments = [b"-c", b"--", body, commands.NAME]
        try:
            command = Command(self._starts[request["op"]], arguments, env, request, started)
            return self._watch(command, request["timeout_s"], started)
        except OSError as error:
            if error.errno == errno.E2BIG:
                return refused("Argument list too long", 126, request)
            if error.errno in _OUT_OF_PROCESSES or error.filename != commands.BASH:
                raise
            # In an image a policy can remove or replace bash, or keep it open for writing.
            return refused(f"{commands.BASH}: {error.strerror}", 127, request)

    def _enter(self, path: str) -> None:
        """Changes to the folder of a command."""
        folder = self.open_file(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0)
        try:
            os.fchdir(folder)
        finally:
            os.close(folder)

    def _watch(self, command: Command, timeout_s: float, started: float) -> Reply:
        """Waits for a command and kills all processes that it started."""
        try:
            self._memory.begin(started)
            outcome = command.wait(timeout_s, self._channel, self._memory)
            num_leftovers = _finish(command, outcome)
        finally:
            command.close()
        return command.reply(num_leftovers)


def serve(channel: socket.socket, runner: Commands, operations: Mapping[str, Operation]) -> None:
    """Answers the owner, one request after the other, until it closes the channel.

    ``operations`` are further operations of this kind of sandbox, by name.
    """
    try:
        while True:
            request, body = wire.receive_request(channel, max_body_bytes=_MAX_BODY_BYTES)
            operation = operations.get(request["op"])
            if operation is not None:
                operation(request, channel)
                continue
            try:
                header, answer = _answer(request, body, runner)
            finally:
                if request["file"] >= 0:
                    os.close(request["file"])
            channel.sendall(wire.pack(header, answer))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _answer(request: dict[str, Any], body: bytes, runner: Commands) -> Reply:
    if request["op"] in ("run", "python"):
        return runner.run(request, body)
    try:
        if request["op"] == "read":
            return {}, files.read(request["path"], request["max_bytes"], runner.open_file)
        files.write(request["path"], body, runner.open_file)
    except OSError as error:
        return {"errno": error.errno or 0, "reason": error.strerror or str(error)}, b""
    return {}, b""


def _finish(command: Command, outcome: Outcome) -> int:
    """Kills remaining processes and reads the rest of the output; returns their number."""
    are_left = command.reap()
    if outcome is Outcome.ENDED and are_left:
        command.wait_for_output(GRACE_S)
        are_left = command.reap()
    num_leftovers = command.kill_all() if are_left else 0
    while command.is_open and command.read():  # what the last writer left
        pass
    return num_leftovers


def _encoded(env: Mapping[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
