"""Runs the commands of one sandbox, each in the kind of shell that its owner asked for."""

import contextlib
import errno
import os
import socket
import time
from collections.abc import Set
from contextlib import AbstractContextManager
from typing import Any

from coding_gym.sandbox.inside import spawn
from coding_gym.sandbox.inside.memory import MemoryWatch
from coding_gym.sandbox.inside.preloaders import PreloadedLauncher, PreloadedPython
from coding_gym.sandbox.inside.process_table import num_threads
from coding_gym.sandbox.inside.shells import LastingShell, WaitingShell
from coding_gym.sandbox.inside.spawn import NAMESPACE, Enclosure
from coding_gym.sandbox.inside.watch import GRACE_S, Command, Outcome, Reply, refused
from coding_gym.sandbox.inside.wire import header_text, parse

_OUT_OF_PROCESSES = (errno.EAGAIN, errno.ENOMEM)
_WORKSPACE = "/workspace"
# The most processes that our own commands, such as git's, start at one time.
_NUM_OWN_PROCESSES = 24


class Commands:
    """Runs commands, one at a time.

    A command with its own folder, variables or standard input runs in a bash of its own whatever
    the sandbox's kind of shell is: commands of our own machinery never run in a policy's shell.

    Args:
        request: The request for the sandbox: ``env``, ``limits``, ``network``, ``shell``
            (``"fresh"``, ``"waiting"`` or ``"persistent"``).
        channel: The owner's; its end ends this process.
        home: Where commands start: always the workspace.
        enclosure: Starts, lists and ends processes.

    Attributes:
        enclosure: As given.
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
        self._num_processes: int = request["limits"]["num_processes"]
        self._memory = MemoryWatch(
            request["limits"]["memory_bytes"],
            enclosure.processes.pids,
            owns_network=enclosure.owns_network and not request["network"],
        )
        self._preloaded = PreloadedLauncher(request["limits"]) if request.get("preload") else None
        self._shell: str = request["shell"]
        self._make_shells()

    def go_home(self) -> None:
        """Changes to where commands start."""
        os.chdir(self._home)

    def rest(self) -> None:
        """Works while the owner sends no request; returns when it does."""
        shell = self._waiting or self._lasting
        if shell is not None:
            with contextlib.suppress(OSError):  # `run` tries again, and says what is wrong
                self.go_home()
                shell.prepare()
        if self._lasting is not None:
            self._lasting.watch()

    def reset(self) -> None:
        """Ends all processes; the next command gets a shell as the first one did."""
        if self._waiting is not None:
            self._waiting.end()
        if self._lasting is not None:
            self._lasting.end("")
        self._make_shells()

    def stopped(self) -> AbstractContextManager[None]:
        """Stops all processes of the sandbox meanwhile."""
        return self.enclosure.processes.stopped()

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
            return self._run_somewhere(request, body, started)
        except OSError as error:
            if error.errno == errno.E2BIG:
                return refused("Argument list too long", 126)
            if error.errno in _OUT_OF_PROCESSES or error.filename != spawn.BASH:
                raise
            # In an image a policy may remove it, put anything else there, or hold it open.
            return refused(f"{spawn.BASH}: {error.strerror}", 127)

    def _make_shells(self) -> None:
        self._waiting: WaitingShell | None = None
        self._lasting: LastingShell | None = None
        if self._shell == "waiting":
            self._waiting = WaitingShell(self.enclosure.launcher, self._env)
        elif self._shell == "persistent":
            self._lasting = LastingShell(self.enclosure, self._env, self._channel, self._memory)

    def _enter(self, request: dict[str, Any]) -> None:
        """Changes to the folder of a command, but for a shell that is in one already."""
        if not request["is_plain"]:
            flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
            folder = self.enclosure.open_file(request["cwd"], flags, 0)
            try:
                os.fchdir(folder)
            finally:
                os.close(folder)
        elif self._lasting is None or not self._lasting.is_running():
            self.go_home()

    def _run_somewhere(self, request: dict[str, Any], body: bytes, started: float) -> Reply:
        if self._lasting is None:
            return self._watch(self._start(request, body), request, started)
        if request["is_plain"]:
            return self._lasting.run(request, body, started)
        with self.stopped():
            kept = self.enclosure.processes.pids()
            if self._are_too_many(kept):
                self._lasting.end("left no room for another process")
                kept = frozenset()
            return self._watch(self._start(request, body), request, started, kept)

    def _are_too_many(self, kept: Set[int]) -> bool:
        """Whether so many processes run that a command beside them may not start."""
        reserve = min(_NUM_OWN_PROCESSES, self._num_processes // 2)
        return num_threads(kept) > self._num_processes - reserve

    def _start(self, request: dict[str, Any], body: bytes) -> spawn.Bash:
        text, stdin = _parted(request, body)
        if self._waiting is not None:
            if request["is_plain"]:
                return self._waiting.start(text)
            self._waiting.end()
        env = self._env | _encoded(request["env"]) if request["env"] else self._env
        if self._preloaded is not None and "source" in request:
            forked = self._preloaded.start(request, stdin, env)
            if forked is not None:
                return forked
        return spawn.fresh(self.enclosure.launcher, text, env, stdin)

    def _watch(
        self,
        shell: spawn.Bash,
        request: dict[str, Any],
        started: float,
        kept: Set[int] = frozenset(),
    ) -> Reply:
        """Waits for a command and ends all that it started; ``kept`` processes are not its own."""
        command = Command(shell, self.enclosure, request["max_output_bytes"], started)
        try:
            if self._lasting is None:
                self._memory.begin(started)
            outcome = command.wait(request["timeout_s"], self._channel, self._memory)
            num_leftovers = self._finish(command, outcome, kept)
        finally:
            shell.close()
        header, body = command.reply(num_leftovers=num_leftovers)
        if "source" in request and not isinstance(shell, PreloadedPython):
            header = header_text(parse(header) | {"is_cold": True})
        return header, body

    def _finish(self, command: Command, outcome: Outcome, kept: Set[int]) -> int:
        """Ends all that is left, takes the rest of the output, returns how many were killed."""
        are_left = command.reap()
        running = self.enclosure.processes
        if outcome is Outcome.ENDED and are_left and (not kept or running.pids() - kept):
            command.wait_for_output(GRACE_S)
            are_left = command.reap()
        if outcome is Outcome.OUT_OF_MEMORY:
            kept = frozenset()
        num_leftovers = command.kill_all(but=kept) if are_left else 0
        command.read_all()
        return num_leftovers


def _parted(request: dict[str, Any], body: bytes) -> tuple[bytes, bytes]:
    """A command's text, and its standard input."""
    size = len(body) - request["stdin_bytes"]
    return body[:size], body[size:]


def _encoded(env: dict[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
