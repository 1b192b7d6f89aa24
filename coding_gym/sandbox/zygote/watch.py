"""Waits for a command in a sandbox: its output, its end, its time, its memory, its owner."""

import contextlib
import fcntl
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial

from coding_gym.sandbox.zygote.answers import Answer
from coding_gym.sandbox.zygote.feeds import Feed
from coding_gym.sandbox.zygote.memory import MemoryWatch
from coding_gym.sandbox.zygote.output import BoundedOutput
from coding_gym.sandbox.zygote.spawn import Bash

# How long the output may still be open after the shell ended, as with `tee >(wc)`, before what
# holds it open is taken for a background process.
GRACE_S = 0.05
_READ_BYTES = 1 << 16
_REAP_INTERVAL_S = 1.0
_FIONREAD = 0x541B


class Outcome(Enum):
    """How a wait ended."""

    ENDED = "the shell ended"
    ANSWERED = "the shell answered, and lives on"
    TIMED_OUT = "the time was up"
    OUT_OF_MEMORY = "the sandbox's processes held too much memory"


class Command:
    """One running command.

    Attributes:
        shell: The bash that runs it.
        output: What it printed so far.
        status: How the shell ended; None while it runs.
        is_open: Whether somebody may still write output.
    """

    def __init__(self, shell: Bash, max_output_bytes: int) -> None:
        self.shell = shell
        self.output = BoundedOutput(max_output_bytes)
        self.status: int | None = None
        self.is_open = True

    def read(self, max_bytes: int = _READ_BYTES) -> int:
        """Takes one chunk of output; returns its size, 0 when there is none now or never again."""
        try:
            chunk = os.read(self.shell.reader, max_bytes)
        except BlockingIOError:
            return 0
        self.output.add(chunk)
        self.is_open = bool(chunk)
        return len(chunk)

    def read_all(self) -> None:
        """Takes the rest of the output, which nobody writes to any more."""
        while self.is_open and self.read():
            pass

    def read_present(self) -> None:
        """Takes what was printed until now, even if somebody goes on printing."""
        size = fcntl.ioctl(self.shell.reader, _FIONREAD, b"\0\0\0\0")
        left = struct.unpack("i", size)[0]
        while left > 0 and (taken := self.read(min(left, _READ_BYTES))):
            left -= taken

    def reap(self, *, wait: bool = False) -> tuple[int, bool]:
        """Reaps ended processes; returns how many besides the shell, and whether any are left."""
        count = 0
        while True:
            try:
                pid, status = os.waitpid(-1, 0 if wait else os.WNOHANG)
            except ChildProcessError:
                return count, False
            if pid == 0:
                return count, True
            if pid == self.shell.pid:
                self.status = status
            else:
                count += 1

    def kill_all(self) -> int:
        """Ends every process of the sandbox; returns how many that were besides the shell."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        return self.reap(wait=True)[0]

    def wait_for_output(self, others: Sequence[int], grace_s: float) -> None:
        """Gives processes that may still print a moment to finish on their own.

        Args:
            others: Descriptors of the processes; without them the end of the output is waited for.
            grace_s: How long, at most.
        """
        poller = select.poll()
        poller.register(self.shell.reader, select.POLLIN)
        for descriptor in others:
            poller.register(descriptor, select.POLLIN)
        left_over = set(others)
        deadline = time.monotonic() + grace_s
        while self.is_open and (left := deadline - time.monotonic()) > 0:
            for ready, _ in poller.poll(left * 1000):
                if ready == self.shell.reader:
                    self.read()
                else:
                    poller.unregister(ready)
                    left_over.discard(ready)
            if others and not left_over:
                return


class _Wait:
    """What is waited for, and what is to be done about each."""

    def __init__(self, command: Command, channel: socket.socket, answer: Answer | None) -> None:
        self._command = command
        self._answer = answer
        self._poller = select.poll()
        self._actions: dict[int, Callable[[], Outcome | None]] = {}
        self._process = os.pidfd_open(command.shell.pid)
        self._add(self._process, lambda: Outcome.ENDED)
        self._add(command.shell.reader, self._read)
        self._add(channel.fileno(), self._end_with_owner, select.POLLRDHUP)
        for feed in command.shell.feeds:
            self._add(feed.descriptor, partial(self._write, feed), select.POLLOUT)
        if answer is not None:
            self._add(answer.descriptor, partial(self._hear, answer))

    def step(self, wait_s: float) -> Outcome | None:
        """Waits for something to happen, and sees to it; returns how the command ended, if so."""
        ready = self._poller.poll(wait_s * 1000)
        for descriptor, _ in ready:
            outcome = self._actions[descriptor]()
            if outcome is not None:
                return outcome
        if not ready:
            self._command.reap()
        return None

    def close(self) -> None:
        os.close(self._process)
        self._actions.clear()  # they know this object; no collector runs here

    def _add(
        self, descriptor: int, action: Callable[[], Outcome | None], event: int = select.POLLIN
    ) -> None:
        self._poller.register(descriptor, event)
        self._actions[descriptor] = action

    def _read(self) -> None:
        if not self._command.read():
            self._poller.unregister(self._command.shell.reader)

    def _write(self, feed: Feed) -> None:
        if not feed.write():
            self._poller.unregister(feed.descriptor)
            self._command.shell.feeds.remove(feed)

    def _hear(self, answer: Answer) -> Outcome | None:
        if answer.read():
            return Outcome.ANSWERED
        if not answer.is_possible:  # most often, another program took the shell's place
            self._poller.unregister(answer.descriptor)
        return None

    def _end_with_owner(self) -> None:
        """Ends the sandbox; the owner sees the channel close when everything in it is dead."""
        self._command.kill_all()
        os._exit(0)


def watch(
    command: Command,
    deadline: float,
    channel: socket.socket,
    memory: MemoryWatch,
    answer: Answer | None = None,
) -> Outcome:
    """Collects output and feeds the shell until it ends, answers, or must be ended.

    Args:
        command: What runs.
        deadline: When its time is up, on the clock of ``time.monotonic``.
        channel: The owner's; its end ends this process.
        memory: Looks at the sandbox's processes meanwhile.
        answer: What a shell that lives on will say.
    """
    wait = _Wait(command, channel, answer)
    try:
        while True:
            now = time.monotonic()
            if now >= deadline:
                return Outcome.TIMED_OUT
            if now >= memory.next_look and memory.is_exceeded(now):
                return Outcome.OUT_OF_MEMORY
            outcome = wait.step(min(deadline, memory.next_look, now + _REAP_INTERVAL_S) - now)
            if outcome is not None:
                return outcome
    finally:
        wait.close()
