"""Runs shell commands, each in a Landlock domain of its own, and leaves nothing of them running."""

import errno
import os
import select
import signal
import socket
import time
from typing import Any

from coding_gym.sandbox.zygote.landlock import descendants, rights
from coding_gym.sandbox.zygote.landlock.clerk import Clerk
from coding_gym.sandbox.zygote.landlock.launching import launch
from coding_gym.sandbox.zygote.output import BoundedOutput
from coding_gym.sandbox.zygote.replies import Reply, refused, shell_exit_code
from coding_gym.sandbox.zygote.watch import GRACE_S, Outcome
from coding_gym.sandbox.zygote.wire import header_text

_READ_BYTES = 1 << 16
# How much memory a command holds is looked at from time to time, and less often where that is slow.
_FIRST_LOOK_S, _LOOK_INTERVAL_S, _LOOK_REST = 0.1, 0.1, 20


def is_scoped(version: int) -> bool:
    """Whether signals of this process stay in its domain.

    Not concluded from the version alone: a ``kill`` of everything that is not held back would end
    all that this user runs.
    """
    try:
        os.kill(os.getppid(), 0)
    except PermissionError:
        return rights.scopes_signals(version)
    except ProcessLookupError:
        return False
    return False


class Shells:
    """Starts a bash per command.

    Args:
        ruleset: Descriptor of the rules that commands live under.
        roots: Folders in which commands may change permissions and dates.
        env: The sandbox's environment variables.
        limits: What a command may have at a time: ``num_processes``, ``num_open_files`` and
            ``memory_bytes``.
        is_scoped: Whether signals of this process stay in its domain.
    """

    def __init__(
        self,
        *,
        ruleset: int,
        roots: list[str],
        env: dict[str, str],
        limits: dict[str, int],
        is_scoped: bool,
    ) -> None:
        self.is_scoped = is_scoped
        self._ruleset = ruleset
        self._roots = roots
        self._env = env
        self._limits = limits

    def run(self, request: dict[str, Any], body: bytes, channel: socket.socket) -> Reply:
        """Runs a command and returns the reply's header and body; see `zygote.commands.run`."""
        started = time.monotonic()
        size = len(body) - request["stdin_bytes"]
        try:
            os.chdir(request["cwd"])
        except OSError as error:
            return refused(f"cd: {request['cwd']}: {error.strerror}", 1)
        reader, writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(reader, False)
        try:
            pid, listener = launch(
                body[:size],
                body[size:],
                self._env | request["env"],
                writer,
                ruleset=self._ruleset,
                num_open_files=self._limits["num_open_files"],
            )
        except OSError as error:
            os.close(reader)
            if error.errno not in (errno.E2BIG, errno.EAGAIN):
                raise
            return refused(error.strerror or str(error), 126)
        finally:
            os.close(writer)
        clerk = Clerk(listener, self._roots, self._limits["num_processes"])
        command = _Command(pid, reader, request["max_output_bytes"], clerk)
        try:
            outcome = self._watch(command, started + request["timeout_s"], channel)
            num_leftovers = self._finish(command, outcome)
        finally:
            clerk.close()
            os.close(reader)
        return _reply(command, outcome, num_leftovers, time.monotonic() - started)

    def _watch(self, command: "_Command", deadline: float, channel: socket.socket) -> Outcome:
        """Collects output until the shell ends, or must be ended."""
        process = os.pidfd_open(command.pid)
        poller = select.poll()
        for descriptor in (command.reader, process):
            poller.register(descriptor, select.POLLIN)
        poller.register(command.clerk.listener, select.POLLIN)
        poller.register(channel, select.POLLRDHUP)
        next_look = time.monotonic() + _FIRST_LOOK_S
        try:
            while (left := deadline - time.monotonic()) > 0:
                pause = max(0, min(left, next_look - time.monotonic()))
                ready = {fd for fd, _ in poller.poll(pause * 1000)}
                if channel.fileno() in ready:
                    raise EOFError("the owner closed the channel")
                if command.clerk.listener in ready:
                    command.clerk.answer()
                if command.reader in ready and not command.read():
                    poller.unregister(command.reader)
                if process in ready:
                    return Outcome.ENDED
                if (now := time.monotonic()) >= next_look:
                    descendants.reap(command.statuses)
                    if descendants.memory_bytes() > self._limits["memory_bytes"]:
                        return Outcome.OUT_OF_MEMORY
                    took_s = time.monotonic() - now
                    next_look = now + max(_LOOK_INTERVAL_S, _LOOK_REST * took_s)
            return Outcome.TIMED_OUT
        finally:
            os.close(process)

    def _finish(self, command: "_Command", outcome: Outcome) -> int:
        """Ends what is left, takes the rest of the output, returns how many were killed."""
        num_leftovers = 0
        _, others = descendants.reap(command.statuses)
        if outcome is Outcome.ENDED and others:
            command.wait_for_output()
            _, others = descendants.reap(command.statuses)
        if others:
            num_leftovers = descendants.end(command.statuses, is_scoped=self.is_scoped)
        while command.open and command.read():
            pass
        return num_leftovers if outcome is Outcome.ENDED else 0


class _Command:
    """One running command."""

    def __init__(self, pid: int, reader: int, max_output_bytes: int, clerk: Clerk) -> None:
        self.pid = pid
        self.clerk = clerk
        self.reader = reader
        self.output = BoundedOutput(max_output_bytes)
        self.statuses = {pid: 0}
        self.open = True

    def read(self) -> bool:
        """Takes one chunk of output; False when there is none now, or never again."""
        try:
            chunk = os.read(self.reader, _READ_BYTES)
        except BlockingIOError:
            return False
        self.output.add(chunk)
        self.open = bool(chunk)
        return self.open

    def wait_for_output(self) -> None:
        """Gives processes that still hold the output a moment to finish on their own."""
        poller = select.poll()
        poller.register(self.reader, select.POLLIN)
        poller.register(self.clerk.listener, select.POLLIN)
        deadline = time.monotonic() + GRACE_S
        while self.open and (left := deadline - time.monotonic()) > 0:
            for ready, _ in poller.poll(left * 1000):
                if ready == self.reader:
                    self.read()
                else:
                    self.clerk.answer()


def _reply(command: _Command, outcome: Outcome, num_leftovers: int, duration_s: float) -> Reply:
    head, tail = command.output.parts()
    code = os.waitstatus_to_exitcode(command.statuses[command.pid])
    if outcome is Outcome.OUT_OF_MEMORY:
        code = -signal.SIGKILL
    header = {
        "exit_code": shell_exit_code(code, finished=outcome is not Outcome.TIMED_OUT),
        "timed_out": outcome is Outcome.TIMED_OUT,
        "out_of_memory": outcome is Outcome.OUT_OF_MEMORY,
        "duration_s": duration_s,
        "num_leftovers": num_leftovers,
        "num_bytes": command.output.num_bytes,
        "head_bytes": len(head),
    }
    return header_text(header), head + tail
