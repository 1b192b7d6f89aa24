"""Runs the commands of one sandbox, each in a bash of its own."""

import errno
import os
import socket
import time
from typing import Any

from coding_gym.sandbox.inside import spawn
from coding_gym.sandbox.inside.memory import MemoryWatch
from coding_gym.sandbox.inside.preloaders import PreloadedLauncher, PreloadedPython
from coding_gym.sandbox.inside.spawn import NAMESPACE, Enclosure
from coding_gym.sandbox.inside.watch import GRACE_S, Command, Outcome, Reply, refused
from coding_gym.sandbox.inside.wire import header_text, parse

_OUT_OF_PROCESSES = (errno.EAGAIN, errno.ENOMEM)
_WORKSPACE = "/workspace"


class Commands:
    """Runs commands, one at a time.

    Args:
        request: The request for the sandbox: ``env``, ``limits``.
        channel: The owner's; its end ends this process.
        home: Where commands start: always the workspace.
        enclosure: Starts and lists processes.

    Attributes:
        enclosure: As the argument.
    """

    def __init__(
        self,
        request: dict[str, Any],
        channel: socket.socket,
        *,
        home: str = _WORKSPACE,
        enclosure: Enclosure = NAMESPACE,
    ) -> None:
        self.enclosure = enclosure
        self._home = home
        # Encoded once; each start of a process would do it again.
        self._env = _encoded(request["env"])
        self._channel = channel
        self._memory = MemoryWatch(request["limits"]["memory_bytes"], enclosure.list_pids)
        self._preloaded = PreloadedLauncher(request["limits"]) if request.get("preload") else None

    def go_home(self) -> None:
        """Changes to where commands start."""
        os.chdir(self._home)

    def run(self, request: dict[str, Any], body: bytes) -> Reply:
        """Runs a command and returns the reply's header and body.

        Args:
            request: From `served_sandbox`; ``is_plain`` says that folder, variables and standard
                input are the sandbox's own.
            body: The command's text, then its standard input.
        """
        started = time.monotonic()
        try:
            self._enter(request)
        except OSError as error:
            return refused(f"cd: {request['cwd']}: {error.strerror}", 1)
        try:
            return self._watch(self._start(request, body), request, started)
        except OSError as error:
            if error.errno == errno.E2BIG:
                return refused("Argument list too long", 126)
            if error.errno in _OUT_OF_PROCESSES or error.filename != spawn.BASH:
                raise
            # In an image a policy may remove it, put anything else there, or hold it open.
            return refused(f"{spawn.BASH}: {error.strerror}", 127)

    def _enter(self, request: dict[str, Any]) -> None:
        """Changes to the folder of a command."""
        if request["is_plain"]:
            self.go_home()
            return
        flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
        folder = self.enclosure.open_file(request["cwd"], flags, 0)
        try:
            os.fchdir(folder)
        finally:
            os.close(folder)

    def _start(self, request: dict[str, Any], body: bytes) -> spawn.Bash:
        size = len(body) - request["stdin_bytes"]
        text, stdin = body[:size], body[size:]
        env = self._env | _encoded(request["env"]) if request["env"] else self._env
        if self._preloaded is not None and "source" in request:
            forked = self._preloaded.start(request, stdin, env)
            if forked is not None:
                return forked
        return spawn.fresh(self.enclosure.launcher, text, env, stdin)

    def _watch(self, shell: spawn.Bash, request: dict[str, Any], started: float) -> Reply:
        """Waits for a command and ends all that it started."""
        command = Command(shell, request["max_output_bytes"], started)
        try:
            self._memory.begin(started)
            outcome = command.wait(request["timeout_s"], self._channel, self._memory)
            num_leftovers = _finish(command, outcome)
        finally:
            shell.close()
        header, body = command.reply(num_leftovers)
        if "source" in request and not isinstance(shell, PreloadedPython):
            header = header_text(parse(header) | {"is_cold": True})
        return header, body


def _finish(command: Command, outcome: Outcome) -> int:
    """Ends all that is left, takes the rest of the output, returns how many were killed."""
    are_left = command.reap()
    if outcome is Outcome.ENDED and are_left:
        command.wait_for_output(GRACE_S)
        are_left = command.reap()
    num_leftovers = command.kill_all() if are_left else 0
    command.read_all()
    return num_leftovers


def _encoded(env: dict[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
