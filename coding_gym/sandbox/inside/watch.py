"""Waits for a command in a sandbox, and reports its outcome."""

import fcntl
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Set
from enum import Enum
from functools import partial

from coding_gym.sandbox.inside import process_table
from coding_gym.sandbox.inside.memory import MemoryWatch
from coding_gym.sandbox.inside.output import BoundedOutput
from coding_gym.sandbox.inside.spawn import Bash, Enclosure, Feed, Launcher
from coding_gym.sandbox.inside.wire import header_text

# How long the output may still be open after the shell ended, as with `tee >(wc)`, before what
# holds it open is taken for a background process.
GRACE_S = 0.05
_READ_BYTES = 1 << 16
_REAP_INTERVAL_S = 1.0
_FIONREAD = 0x541B
_TIMEOUT_EXIT_CODE = 124  # as of `timeout`
_OUT_OF_MEMORY_EXIT_CODE = 137
# The header of almost every reply, without what making JSON of it costs.
_USUAL = b'{"exit_code":%d,"duration_s":%.6f,"num_bytes":%d,"head_bytes":%d}'

# A header's text and a body.
Reply = tuple[bytes, bytes]


class Outcome(Enum):
    """How a wait ended."""

    ENDED = "the shell ended"
    REPLIED = "the shell replied, and lives on"
    TIMED_OUT = "the time was up"
    OUT_OF_MEMORY = "the sandbox's processes held too much memory"


class Poller:
    """Waits for descriptors, and calls the handler of each that is ready.

    Args:
        launcher: Its listeners are waited for too.
    """

    def __init__(self, launcher: Launcher) -> None:
        self._poll = select.poll()
        self._handlers: dict[int, Callable[[int], object]] = {}
        for listener, handler in launcher.listeners.items():
            self.add(listener, handler)

    def add(
        self, descriptor: int, handler: Callable[[int], object], events: int = select.POLLIN
    ) -> None:
        """Waits for a descriptor too, until its handler, which gets the events, returns false."""
        self._handlers[descriptor] = handler
        self._poll.register(descriptor, events)

    def wait(self, timeout_s: float) -> bool:
        """Calls the handlers of what is ready within a time; False where nothing was."""
        ready = self._poll.poll(timeout_s * 1000)
        for descriptor, events in ready:
            if not self._handlers[descriptor](events):
                self._poll.unregister(descriptor)
        return bool(ready)


class Answer:
    """The end of one command, as a shell that lives on reports it.

    Args:
        descriptor: Carries the shell's report, not blocking.
        label: Its beginning. Everything else on the descriptor is that of another command,
            or forged.

    Attributes:
        exit_code: The reported one; None before that.
    """

    def __init__(self, descriptor: int, label: bytes) -> None:
        self.descriptor = descriptor
        self.exit_code: int | None = None
        self._start = label + b"x"
        self._seen = b""

    def read(self) -> bool:
        """Takes one chunk; False when no other can come.

        Most often it ceases as another program takes the shell's place.
        """
        try:
            chunk = os.read(self.descriptor, _READ_BYTES)
        except BlockingIOError:
            return True
        self._seen += chunk
        code, ending, _ = self._seen.partition(self._start)[2].partition(b"\n")
        if ending and code.isdigit():
            self.exit_code = int(code[:4]) & 0xFF
        self._seen = self._seen[-(len(self._start) + 8) :]
        return bool(chunk)


class Command:
    """One running command, which began at ``started`` on the clock of ``time.monotonic``.

    Attributes:
        shell: The bash that runs it.
        output: Its output so far.
        outcome: How the wait for it ended; None before that.
        is_open: Whether a process may still write output.
    """

    def __init__(
        self, shell: Bash, enclosure: Enclosure, max_output_bytes: int, started: float
    ) -> None:
        self.shell = shell
        self.output = BoundedOutput(max_output_bytes)
        self.outcome: Outcome | None = None
        self.is_open = True
        self._enclosure = enclosure
        self._started = started
        self._status = 0

    def wait(
        self,
        timeout_s: float,
        channel: socket.socket,
        memory: MemoryWatch,
        answer: Answer | None = None,
    ) -> Outcome:
        """Collects output and feeds the shell until it ends, answers, or must be ended.

        The time limit counts from its beginning. The end of the owner's channel ends this process.
        """
        deadline = self._started + timeout_s
        process = os.pidfd_open(self.shell.pid)
        poller = self._poller(process, channel, answer)
        try:
            while self.outcome is None:
                now = time.monotonic()
                if now >= deadline:
                    self.outcome = Outcome.TIMED_OUT
                elif now >= memory.next_look and memory.is_exceeded(now):
                    self.outcome = Outcome.OUT_OF_MEMORY
                elif not poller.wait(min(deadline, memory.next_look, now + _REAP_INTERVAL_S) - now):
                    self.reap()
        finally:
            os.close(process)
            self.shell.let_output_end()
        return self.outcome

    def _poller(self, process: int, channel: socket.socket, answer: Answer | None) -> Poller:
        """Returns the poller of all descriptors; the end of the shell comes first."""
        poller = Poller(self._enclosure.launcher)
        poller.add(process, lambda _: self._settle(Outcome.ENDED))
        poller.add(self.shell.reader, lambda _: self.read())
        poller.add(channel.fileno(), lambda _: self._end_with_owner(), select.POLLRDHUP)
        for feed in self.shell.feeds:
            poller.add(feed.descriptor, partial(self._write, feed), select.POLLOUT)
        if answer is not None:
            poller.add(answer.descriptor, lambda _: self._hear(answer))
        return poller

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
        """Takes the rest of the output, which has no writer any more."""
        while self.is_open and self.read():
            pass

    def read_present(self) -> None:
        """Takes the output until now, even if a process goes on printing."""
        size = fcntl.ioctl(self.shell.reader, _FIONREAD, b"\0\0\0\0")
        left = struct.unpack("i", size)[0]
        while left > 0 and (taken := self.read(min(left, _READ_BYTES))):
            left -= taken

    def wait_for_output(self, grace_s: float) -> None:
        """Lets processes that may still print finish, for a time at most."""
        poller = Poller(self._enclosure.launcher)
        poller.add(self.shell.reader, lambda _: self.read())
        deadline = time.monotonic() + grace_s
        while self.is_open and (left := deadline - time.monotonic()) > 0:
            poller.wait(left)

    def reap(self) -> bool:
        """Reaps ended processes; returns whether any are left."""
        ended, are_left = process_table.reap()
        self._count(ended)
        return are_left

    def kill_all(self, but: Set[int] = frozenset()) -> int:
        """Ends the processes of the sandbox; returns how many that were besides the shell.

        Args:
            but: Those that stay, stopped.
        """
        processes = self._enclosure.processes
        return self._count(processes.end_all_but(but) if but else processes.end())

    def reply(
        self, *, num_leftovers: int = 0, exit_code: int | None = None, notice: str = ""
    ) -> Reply:
        """Returns the reply to the command, after its leftovers were killed.

        Args:
            num_leftovers: How many processes it left and that were killed.
            exit_code: As its shell reported; by default the shell's own.
            notice: A line that follows the output, whatever its bounds.
        """
        head, tail = self.output.parts()
        printed = tail or head
        if notice and printed and not printed.endswith(b"\n"):
            notice = f"\n{notice}"
        code = self._exit_code() if exit_code is None else exit_code
        duration_s = time.monotonic() - self._started
        num_bytes = self.output.num_bytes + len(notice)
        is_in_time = self.outcome in (Outcome.ENDED, Outcome.REPLIED)
        if is_in_time and not num_leftovers and not notice:
            return _USUAL % (code, duration_s, num_bytes, len(head)), head + tail
        header = {
            "exit_code": code,
            "duration_s": duration_s,
            "num_bytes": num_bytes,
            "head_bytes": len(head),
            "num_leftovers": num_leftovers if is_in_time else 0,
            "timed_out": self.outcome is Outcome.TIMED_OUT,
            "out_of_memory": self.outcome is Outcome.OUT_OF_MEMORY,
            "shell_lost": bool(notice),
        }
        return header_text(header), head + tail + notice.encode()

    def _exit_code(self) -> int:
        """Returns the exit code that a shell would give."""
        if self.outcome is Outcome.OUT_OF_MEMORY:
            return _OUT_OF_MEMORY_EXIT_CODE
        if self.outcome is Outcome.TIMED_OUT:
            return _TIMEOUT_EXIT_CODE
        code = os.waitstatus_to_exitcode(self._status)
        return code if code >= 0 else 128 - code

    def _count(self, ended: dict[int, int]) -> int:
        """Returns how many processes ended besides the shell, whose status is remembered."""
        self._status = ended.pop(self.shell.pid, self._status)
        return len(ended)

    def _settle(self, outcome: Outcome) -> bool:
        self.outcome = self.outcome or outcome
        return False

    def _hear(self, answer: Answer) -> bool:
        goes_on = answer.read()
        return goes_on if answer.exit_code is None else self._settle(Outcome.REPLIED)

    def _write(self, feed: Feed, _: int) -> bool:
        if feed.write():
            return True
        self.shell.feeds.remove(feed)
        return False

    def _end_with_owner(self) -> None:
        """Ends the sandbox; the owner sees the channel close when everything in it is dead."""
        self.kill_all()
        os._exit(0)


def refused(reason: str, exit_code: int) -> Reply:
    """Replies as bash does to a command that could not be started."""
    text = f"bash: {reason}\n".encode()
    size = len(text)
    header = {"exit_code": exit_code, "duration_s": 0.0, "num_bytes": size, "head_bytes": size}
    return header_text(header), text
