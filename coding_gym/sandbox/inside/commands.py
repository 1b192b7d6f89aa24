"""One command: the start of its bash, its output, its end, and its limits of time and memory."""

import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

from coding_gym.sandbox.inside import processes
from coding_gym.sandbox.inside import syscalls as sc
from coding_gym.sandbox.inside.fixed import BASH, KILLED_CODE, TIMEOUT_CODE
from coding_gym.sandbox.inside.processes import MemoryWatch

# The value of $0, with which bash's error messages begin.
NAME = b"bash"
# Grace period after the shell's exit, for process substitutions such as `tee >(wc)`; a process that
# keeps the output open for longer is a background process.
GRACE_S = 0.05
_READ_BYTES = 1 << 16
_CHILD_ENDED = (1 << (signal.SIGCHLD - 1)).to_bytes(8, sys.byteorder)  # a set of signals
_SIGNAL_INFO_BYTES = 128

# A header and a body.
Reply = tuple[dict[str, Any], bytes]


# A function like `spawn_bash`; it starts bash or another process in place of bash.
Start = Callable[[list[bytes], Mapping[bytes, bytes], Sequence[int]], int]


def spawn_bash(
    arguments: list[bytes], env: Mapping[bytes, bytes], descriptors: Sequence[int]
) -> int:
    """Starts bash in a new session and returns its process id.

    The start uses posix_spawn, which takes less than half the time of a fork.

    Args:
        arguments: All arguments of bash, beginning with its name.
        env: All environment variables of bash.
        descriptors: Standard input, output and error; bash gets no other descriptors.

    Raises:
        OSError: E2BIG when the environment is too large; EAGAIN when there are too many processes.
    """
    return os.posix_spawn(
        BASH,
        arguments,
        env,
        file_actions=[(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(descriptors)],
        setsid=True,
        setsigmask=(),
        # Python ignores these signals, and ignored signals stay ignored across exec.
        setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
    )


class Outcome(Enum):
    """The reason why the wait for a command ended."""

    ENDED = "the shell ended"
    TIMED_OUT = "the time limit passed"
    OUT_OF_MEMORY = "the sandbox's processes held too much memory"


class BoundedOutput:
    """Keeps at most ``max_bytes`` of all added bytes: half from the start, half from the end.

    Attributes:
        num_bytes: Number of added bytes.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_head = max_bytes - max_bytes // 2
        self._max_tail = max_bytes // 2
        self._head, self._tail = bytearray(), bytearray()
        self.num_bytes = 0

    def add(self, chunk: bytes) -> None:
        """Appends a chunk."""
        self.num_bytes += len(chunk)
        num_free = self._max_head - len(self._head)
        self._head += chunk[:num_free]
        self._tail += chunk[num_free:]
        if len(self._tail) > 2 * self._max_tail:  # rarely, because a removal moves the rest
            del self._tail[: len(self._tail) - self._max_tail]

    def parts(self) -> tuple[bytes, bytes]:
        """Returns head and tail, which together are all added bytes unless bytes were dropped."""
        return bytes(self._head), bytes(self._tail[max(0, len(self._tail) - self._max_tail) :])


class Command:
    """One running command, in a bash that the constructor starts.

    Args:
        start: Starts bash.
        arguments: The arguments of bash after its name.
        env: All environment variables of bash.
        request: The owner's request. ``file`` is the descriptor of the standard input, below 0 for
            empty input; ``max_output_bytes`` is the limit of the output.
        start_time: The time of the start, on the clock of ``time.monotonic``.

    Attributes:
        outcome: How the command ended; None while it runs.
        is_open: Whether a process may still write output.

    Raises:
        OSError: As `spawn_bash`.
    """

    def __init__(
        self,
        start: Start,
        arguments: list[bytes],
        env: Mapping[bytes, bytes],
        request: Mapping[str, Any],
        start_time: float,
    ) -> None:
        self.outcome: Outcome | None = None
        self.is_open = True
        self._output = BoundedOutput(request["max_output_bytes"])
        self._start_time = start_time
        self._status = 0
        # This process keeps a write end until the shell ends; otherwise end-of-file on the output
        # would wake the poll just before the shell's exit does.
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self._writer, True)
        null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        stdin = request["file"]
        descriptors = (null if stdin < 0 else stdin, self._writer, self._writer)
        try:
            # argv[0] is the path: with a bare name bash searches PATH for itself to set $BASH.
            self._pid = start([os.fsencode(BASH), *arguments], env, descriptors)
        except BaseException:
            self.close()
            raise
        finally:
            os.close(null)

    def close(self) -> None:
        """Closes the pipe of the command's output."""
        self._close_writer()
        os.close(self._reader)

    def wait(self, timeout_s: float, channel: socket.socket, memory: MemoryWatch) -> Outcome:
        """Collects output until the shell ends or reaches a limit.

        The time limit counts from the command's start. This process ends if the owner's channel
        closes. Ended processes are reaped at once: the process limit counts them until then.
        """
        deadline = self._start_time + timeout_s
        process, owner = os.pidfd_open(self._pid), channel.fileno()
        # signalfd, not a handler: a command that sends many SIGCHLD could nest the handler's calls.
        signals = sc.call("signalfd4", -1, _CHILD_ENDED, len(_CHILD_ENDED), os.O_CLOEXEC)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        poll = select.poll()
        for descriptor in (process, signals, self._reader):
            poll.register(descriptor, select.POLLIN)
        poll.register(owner, select.POLLRDHUP)
        try:
            while self.outcome is None:
                now = time.monotonic()
                if now >= deadline:
                    self.outcome = Outcome.TIMED_OUT
                elif now >= memory.next_check and memory.is_exceeded(now):
                    self.outcome = Outcome.OUT_OF_MEMORY
                else:
                    wait_s = min(deadline, memory.next_check) - now
                    ready = {descriptor for descriptor, _ in poll.poll(wait_s * 1000)}
                    if signals in ready:
                        os.read(signals, _SIGNAL_INFO_BYTES)
                        self.reap()
                    self._handle(ready, process, owner)
        finally:
            os.close(signals)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            os.close(process)
            self._close_writer()
        return self.outcome

    def _handle(self, ready: set[int], process: int, owner: int) -> None:
        """Handles the descriptors that are ready."""
        if owner in ready:  # the channel closes after all processes of the sandbox have ended
            self.kill_all()
            os._exit(0)
        if process in ready:
            self.outcome = Outcome.ENDED
        if self._reader in ready:
            self.read()

    def _close_writer(self) -> None:
        """Closes the write end; the reader gets end-of-file when the last writer closes."""
        if self._writer >= 0:
            os.close(self._writer)
            self._writer = -1

    def read(self) -> int:
        """Reads one chunk of output and returns its size, 0 if no output is available."""
        try:
            chunk = os.read(self._reader, _READ_BYTES)
        except BlockingIOError:
            return 0
        self._output.add(chunk)
        self.is_open = bool(chunk)
        return len(chunk)

    def wait_for_output(self, grace_s: float) -> None:
        """Reads output of processes that outlive the shell, for a limited time."""
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        deadline = time.monotonic() + grace_s
        while self.is_open and (remaining_s := deadline - time.monotonic()) > 0:
            if poll.poll(remaining_s * 1000):
                self.read()

    def reap(self) -> bool:
        """Reaps ended processes; returns whether other processes remain."""
        statuses, has_children = processes.reap()
        self._count(statuses)
        return has_children

    def kill_all(self) -> int:
        """Kills the processes of the sandbox; returns their number, not counting the shell."""
        return self._count(processes.end_all())

    def reply(self, num_leftovers: int) -> Reply:
        """Returns the reply for the command, of which ``num_leftovers`` processes were killed."""
        head, tail = self._output.parts()
        header = {
            "exit_code": self._exit_code(),
            "duration_s": time.monotonic() - self._start_time,
            "num_bytes": self._output.num_bytes,
            "head_bytes": len(head),
        }
        if self.outcome is Outcome.TIMED_OUT:
            header["timed_out"] = True
        elif self.outcome is Outcome.OUT_OF_MEMORY:
            header["out_of_memory"] = True
        elif num_leftovers:
            header["num_leftovers"] = num_leftovers
        return header, head + tail

    def _exit_code(self) -> int:
        """Returns the exit code as a shell reports it."""
        if self.outcome is Outcome.OUT_OF_MEMORY:
            return KILLED_CODE
        if self.outcome is Outcome.TIMED_OUT:
            return TIMEOUT_CODE
        code = os.waitstatus_to_exitcode(self._status)
        return code if code >= 0 else 128 - code

    def _count(self, statuses: dict[int, int]) -> int:
        """Stores the shell's status, and returns the number of other processes that ended."""
        self._status = statuses.pop(self._pid, self._status)
        return len(statuses)


def refusal(reason: str, exit_code: int, request: Mapping[str, Any]) -> Reply:
    """Returns the reply to a request whose command could not start, with bash's error message."""
    output = BoundedOutput(request["max_output_bytes"])
    output.add(f"bash: {reason}\n".encode("utf-8", "surrogateescape"))
    head, tail = output.parts()
    sizes = {"num_bytes": output.num_bytes, "head_bytes": len(head)}
    return {"exit_code": exit_code, "duration_s": 0.0, **sizes}, head + tail
