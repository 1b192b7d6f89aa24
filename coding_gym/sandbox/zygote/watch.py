"""Waits for a command in a sandbox: its output, its end, its time, its memory, its owner."""

import fcntl
import os
import select
import socket
import struct
import time
from collections.abc import Sequence
from enum import Enum

from coding_gym.sandbox.zygote import process_table
from coding_gym.sandbox.zygote.enclosures import Enclosure
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


class Answer:
    """The end of one command, as a shell that lives on says it.

    Args:
        descriptor: Where the shell says it, not blocking.
        label: What it begins with. Everything else on the descriptor is that of another command,
            or forged.

    Attributes:
        exit_code: What it said; None before that.
        is_possible: False when nobody can say anything any more.
    """

    def __init__(self, descriptor: int, label: bytes) -> None:
        self.descriptor = descriptor
        self.exit_code: int | None = None
        self.is_possible = True
        self._start = label + b"x"
        self._seen = b""

    def read(self) -> bool:
        """Takes one chunk; True when the answer is there."""
        try:
            chunk = os.read(self.descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        self.is_possible = bool(chunk)
        self._seen += chunk
        code, ending, _ = self._seen.partition(self._start)[2].partition(b"\n")
        if ending and code.isdigit():
            self.exit_code = int(code[:4]) & 0xFF
        self._seen = self._seen[-(len(self._start) + 8) :]
        return self.exit_code is not None


class Command:
    """One running command.

    Attributes:
        shell: The bash that runs it.
        enclosure: That of the sandbox.
        output: What it printed so far.
        status: How the shell ended; None while it runs.
        is_open: Whether somebody may still write output.
    """

    def __init__(self, shell: Bash, enclosure: Enclosure, max_output_bytes: int) -> None:
        self.shell = shell
        self.enclosure = enclosure
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

    def reap(self, wait: bool = False) -> tuple[int, bool]:
        """Reaps ended processes; returns how many besides the shell, and whether any are left."""
        ended, are_left = process_table.reap(wait)
        self.status = ended.pop(self.shell.pid, self.status)
        return len(ended), are_left

    def kill_all(self) -> int:
        """Ends every process of the sandbox; returns how many that were besides the shell."""
        return self.enclosure.processes.end(self.reap)

    def wait_for_output(self, others: Sequence[int], grace_s: float) -> None:
        """Gives processes that may still print a moment to finish on their own.

        Args:
            others: Descriptors of the processes; without them the end of the output is waited for.
            grace_s: How long, at most.
        """
        launcher = self.enclosure.launcher
        poller = select.poll()
        for descriptor in (self.shell.reader, *others, *launcher.listeners):
            poller.register(descriptor, select.POLLIN)
        left_over = set(others)
        deadline = time.monotonic() + grace_s
        while self.is_open and (left := deadline - time.monotonic()) > 0:
            for ready, events in poller.poll(left * 1000):
                if ready == self.shell.reader:
                    self.read()
                elif ready in left_over or not launcher.attend(ready, events):
                    poller.unregister(ready)
                    left_over.discard(ready)
            if others and not left_over:
                return


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
    process = os.pidfd_open(command.shell.pid)
    poller = _poller(process, command, channel, answer)
    try:
        while True:
            now = time.monotonic()
            if now >= deadline:
                return Outcome.TIMED_OUT
            if now >= memory.next_look and memory.is_exceeded(now):
                return Outcome.OUT_OF_MEMORY
            wait_s = min(deadline, memory.next_look, now + _REAP_INTERVAL_S) - now
            ready = poller.poll(wait_s * 1000)
            if not ready:
                command.reap()
            for descriptor, events in ready:
                if descriptor == process:
                    return Outcome.ENDED
                if descriptor == channel.fileno():
                    _end_with_owner(command)
                if answer is not None and descriptor == answer.descriptor and answer.read():
                    return Outcome.ANSWERED
                if not _attend(descriptor, events, command, answer):
                    poller.unregister(descriptor)
    finally:
        os.close(process)
        command.shell.let_output_end()


def _poller(
    process: int, command: Command, channel: socket.socket, answer: Answer | None
) -> select.poll:
    """Returns what waits for everything; the end of the shell comes first."""
    poller = select.poll()
    poller.register(process, select.POLLIN)
    poller.register(command.shell.reader, select.POLLIN)
    poller.register(channel.fileno(), select.POLLRDHUP)
    for listener in command.enclosure.launcher.listeners:
        poller.register(listener, select.POLLIN)
    for feed in command.shell.feeds:
        poller.register(feed.descriptor, select.POLLOUT)
    if answer is not None:
        poller.register(answer.descriptor, select.POLLIN)
    return poller


def _attend(descriptor: int, events: int, command: Command, answer: Answer | None) -> bool:
    """Reads or writes what a command's descriptor is ready for; False when that was the last."""
    if descriptor == command.shell.reader:
        return command.read() > 0
    if answer is not None and descriptor == answer.descriptor:
        return answer.is_possible  # most often it ceases as another program takes the shell's place
    if descriptor in command.enclosure.launcher.listeners:
        return command.enclosure.launcher.attend(descriptor, events)
    feed = next(feed for feed in command.shell.feeds if feed.descriptor == descriptor)
    if feed.write():
        return True
    command.shell.feeds.remove(feed)
    return False


def _end_with_owner(command: Command) -> None:
    """Ends the sandbox; the owner sees the channel close when everything in it is dead."""
    command.kill_all()
    os._exit(0)
