"""Runs one shell command in a sandbox, and leaves nothing of it running."""

import errno
import os
import select
import signal
import socket
import time
from typing import Any

from coding_gym.sandbox.zygote import spawn
from coding_gym.sandbox.zygote.output import BoundedOutput

# How long the output may still be open after the shell ended, as with `tee >(wc)`, before what
# holds it open is taken for a background process.
GRACE_S = 0.05
_TIMEOUT_EXIT_CODE = 124
_READ_BYTES = 1 << 16
_REAP_INTERVAL_S = 1.0

Reply = tuple[dict[str, Any], bytes]


class _Command:
    """One running command."""

    def __init__(self, pid: int, reader: int, max_output_bytes: int) -> None:
        self.pid = pid
        self.reader = reader
        self.output = BoundedOutput(max_output_bytes)
        self.status: int | None = None
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

    def reap(self, *, wait: bool = False) -> tuple[int, bool]:
        """Reaps ended processes; returns how many, and whether others are left."""
        count = 0
        while True:
            try:
                pid, status = os.waitpid(-1, 0 if wait else os.WNOHANG)
            except ChildProcessError:
                return count, False
            if pid == 0:
                return count, True
            if pid == self.pid:
                self.status = status
            else:
                count += 1


def run(request: dict[str, Any], body: bytes, env: dict[str, str], channel: socket.socket) -> Reply:
    """Runs a command and returns the reply's header and body.

    Args:
        request: ``timeout_s``, ``max_output_bytes``, ``cwd``, ``env``, ``command_bytes``.
        body: The command's text, then what it reads on standard input.
        env: The sandbox's environment variables.
        channel: The owner's; its end ends this process.
    """
    started = time.monotonic()
    size = request["command_bytes"]
    try:
        os.chdir(request["cwd"])
    except OSError as error:
        return _refused(f"cd: {request['cwd']}: {error.strerror}", 1)
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    os.set_blocking(writer, True)
    try:
        pid = spawn.bash(body[:size], body[size:], env | request["env"], writer)
    except OSError as error:
        os.close(reader)
        if error.errno != errno.E2BIG:
            raise
        return _refused("Argument list too long", 126)
    finally:
        os.close(writer)
    command = _Command(pid, reader, request["max_output_bytes"])
    try:
        finished = _watch(command, started + request["timeout_s"], channel)
        num_leftovers = _finish(command, finished)
    finally:
        os.close(reader)
    duration_s = time.monotonic() - started
    return _reply(command, finished, num_leftovers, duration_s)


def shell_exit_code(code: int, *, finished: bool) -> int:
    """Returns the exit code that a shell would give.

    Args:
        code: That of the process; minus the signal's number where one ended it.
        finished: Whether it ended within its time; if not, the code is that of ``timeout``.
    """
    if not finished:
        return _TIMEOUT_EXIT_CODE
    return code if code >= 0 else 128 - code


def _watch(command: _Command, deadline: float, channel: socket.socket) -> bool:
    """Collects output until the shell ends; False when the deadline came first."""
    process = os.pidfd_open(command.pid)
    poller = select.poll()
    poller.register(command.reader, select.POLLIN)
    poller.register(process, select.POLLIN)
    poller.register(channel, select.POLLRDHUP)
    try:
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            ready = {fd for fd, _ in poller.poll(min(left, _REAP_INTERVAL_S) * 1000)}
            if channel.fileno() in ready:
                _end_with_owner(command)
            if command.reader in ready and not command.read():
                poller.unregister(command.reader)
            if process in ready:
                return True
            if not ready:
                command.reap()
    finally:
        os.close(process)


def _end_with_owner(command: _Command) -> None:
    """Ends the sandbox; the owner sees the channel close when everything in it is dead."""
    os.kill(-1, signal.SIGKILL)
    command.reap(wait=True)
    os._exit(0)


def _finish(command: _Command, finished: bool) -> int:
    """Ends everything that is left, takes the rest of the output, returns how many were killed."""
    num_leftovers = 0
    _, others = command.reap()
    if finished and others:
        _wait_for_output(command)
        _, others = command.reap()
    if others:
        os.kill(-1, signal.SIGKILL)
        num_leftovers, _ = command.reap(wait=True)
    while command.open and command.read():
        pass
    return num_leftovers


def _wait_for_output(command: _Command) -> None:
    """Gives processes that still hold the output a moment to finish on their own."""
    poller = select.poll()
    poller.register(command.reader, select.POLLIN)
    deadline = time.monotonic() + GRACE_S
    while command.open and (left := deadline - time.monotonic()) > 0:
        if poller.poll(left * 1000):
            command.read()


def _reply(command: _Command, finished: bool, num_leftovers: int, duration_s: float) -> Reply:
    head, tail = command.output.parts()
    code = os.waitstatus_to_exitcode(command.status or 0)
    header = {
        "exit_code": shell_exit_code(code, finished=finished),
        "timed_out": not finished,
        "duration_s": duration_s,
        "num_leftovers": num_leftovers if finished else 0,
        "num_bytes": command.output.num_bytes,
        "head_bytes": len(head),
    }
    return header, head + tail


def _refused(reason: str, exit_code: int) -> Reply:
    """Answers as bash does for what could not be started."""
    text = f"bash: {reason}\n".encode()
    header = {
        "exit_code": exit_code,
        "timed_out": False,
        "duration_s": 0.0,
        "num_leftovers": 0,
        "num_bytes": len(text),
        "head_bytes": len(text),
    }
    return header, text
