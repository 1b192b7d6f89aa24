"""Replies to the requests of a sandbox's owner, in sequence."""

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
    refusal,
    spawn_bash,
)
from coding_gym.sandbox.inside.files import Opener
from coding_gym.sandbox.inside.fixed import BASH, CANNOT_RUN_CODE, MAX_DATA_BYTES, NO_PROGRAM_CODE
from coding_gym.sandbox.inside.processes import MemoryWatch, all_but_first

# Handles a request: closes the request's ``file``, and sends the reply.
Operation = Callable[[dict[str, Any], socket.socket], None]

_OUT_OF_PROCESSES = (errno.EAGAIN, errno.ENOMEM)


class Commands:
    """Runs the commands of one sandbox, each in a new bash, one at a time.

    Args:
        env: The variables of commands.
        memory_bytes: Limit on the memory of all processes together.
        channel: The channel to the owner; this process ends when the channel closes.
        start: Starts bash.
        fork: Starts Python without bash; None if bash starts Python.
        list_pids: Returns the ids of all processes of the sandbox, except this process.
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
        self._env = _encode(env)
        self._channel = channel
        self._memory = MemoryWatch(memory_bytes, list_pids)

    def run(self, request: dict[str, Any], body: bytes) -> Reply:
        """Runs a command and returns the reply's header and body.

        Args:
            request: From `ServedSandbox`, with a descriptor of the standard input as ``file``.
            body: The command's text; empty for a fork, which reads the source from ``file``.
        """
        start_time = time.monotonic()
        try:
            self._enter(request["cwd"])
        except OSError as error:
            return refusal(f"cd: {request['cwd']}: {error.strerror}", 1, request)
        env = self._env | _encode(request["env"]) if request["env"] else self._env
        arguments = [b"-c", b"--", body, commands.NAME]
        try:
            command = Command(self._starts[request["op"]], arguments, env, request, start_time)
            return self._watch(command, request["timeout_s"], start_time)
        except OSError as error:
            if error.errno == errno.E2BIG:
                return refusal("Argument list too long", CANNOT_RUN_CODE, request)
            if error.errno in _OUT_OF_PROCESSES or error.filename != BASH:
                raise
            # In an image a policy can remove or replace bash, or keep it open for writing.
            return refusal(f"{BASH}: {error.strerror}", NO_PROGRAM_CODE, request)

    def _enter(self, path: str) -> None:
        """Changes this process's working folder to ``path``."""
        folder = self.open_file(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0)
        try:
            os.fchdir(folder)
        finally:
            os.close(folder)

    def _watch(self, command: Command, timeout_s: float, start_time: float) -> Reply:
        """Waits for a command and kills all processes that the command started."""
        try:
            self._memory.begin(start_time)
            outcome = command.wait(timeout_s, self._channel, self._memory)
            num_leftovers = _finish(command, outcome)
        finally:
            command.close()
        return command.reply(num_leftovers)


def serve(channel: socket.socket, runner: Commands, operations: Mapping[str, Operation]) -> None:
    """Replies to the owner's requests until the owner closes the channel.

    ``operations`` are functions for the requests that only this kind of sandbox supports, by name.
    """
    try:
        while True:
            request, body = wire.receive_request(channel, max_body_bytes=MAX_DATA_BYTES)
            operation = operations.get(request["op"])
            if operation is not None:
                operation(request, channel)
                continue
            try:
                reply = _reply_to(request, body, runner)
            finally:
                if request["file"] >= 0:
                    os.close(request["file"])
            channel.sendall(wire.pack(*reply))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _reply_to(request: dict[str, Any], body: bytes, runner: Commands) -> Reply:
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
    """Kills the remaining processes, reads the rest of the output; returns the number killed."""
    has_processes = command.reap()
    if outcome is Outcome.ENDED and has_processes:
        command.wait_for_output(GRACE_S)
        has_processes = command.reap()
    num_leftovers = command.kill_all() if has_processes else 0
    while command.is_open and command.read():  # output that is still in the pipe
        pass
    return num_leftovers


def _encode(env: Mapping[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
