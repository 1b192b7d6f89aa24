"""The owner's end of a container's channel: one request out, one answer back, over one socket."""

import contextlib
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from coding_gym.errors import SandboxError
from coding_gym.sandbox.containers.frames import Answer, Demultiplexer, kill_frame, request_frame
from coding_gym.sandbox.spec import WORKDIR
from coding_gym.sandbox.zygote.output import BoundedOutput

_READ_BYTES = 1 << 18
_CLOSE_TIMEOUT_S = 5.0
_SCRIPT_TIMEOUT_S = 120.0
_MAX_SCRIPT_OUTPUT_BYTES = 1 << 20
# What an answer may take beyond the command's own time limit.
_ANSWER_TIMEOUT_S = 20.0
_SLOWEST_BYTES_PER_S = 2 << 20
# bash may sleep through the end of a command, very rarely; see loop.sh.
_FIRST_POKE_S, _LAST_POKE_S = 0.05, 4.0
_KILL_AGAIN_S = 0.5
_NUM_KILLS_BY_CHANNEL, _MAX_KILLS = 4, 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a command ended.

    Attributes:
        exit_code: That of its bash.
        num_leftovers: Processes that it left running.
        ran_out_of_memory: Whether the kernel killed something of it for want of memory.
        timed_out: Whether it was killed at its time limit.
        duration_s: Wall time.
    """

    exit_code: int
    num_leftovers: int
    ran_out_of_memory: bool
    timed_out: bool
    duration_s: float


class ContainerChannel:
    """A stream to the first process of a container.

    Whatever goes wrong on it is the sandbox's end: from then on every call says why.

    Args:
        stream: The hijacked connection of an attach call.
        interrupt: Has the daemon send SIGUSR1 to the container's first process.
    """

    def __init__(self, stream: socket.socket, interrupt: Callable[[], None]) -> None:
        self._stream = stream
        self._interrupt = interrupt
        self._frames = Demultiplexer()
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._is_closed = False
        self._why_dead = ""
        self._num_out_of_memory = 0

    def run(
        self,
        command: bytes,
        *,
        folder: str,
        variables: Mapping[str, str],
        stdin: bytes,
        timeout_s: float,
        output: BoundedOutput,
    ) -> Ending:
        """Runs a command; what it prints goes to ``output``.

        Raises:
            SandboxError: The container is gone, or does not answer in time, or answers nonsense.
        """
        self.require_open()
        with self._lock:
            self.require_open()
            nonce = secrets.token_hex(16).encode()
            frame = request_frame(nonce, command, folder, variables, stdin)
            try:
                self._stream.settimeout(_ANSWER_TIMEOUT_S + len(frame) / _SLOWEST_BYTES_PER_S)
                self._stream.sendall(frame)
                return self._await_answer(nonce, timeout_s, output)
            except (OSError, EOFError, ValueError) as error:
                reason = (
                    "the sandbox is closed" if self._is_closed else f"the sandbox died: {error}"
                )
                raise self.give_up(reason) from error
            except BaseException:
                # The answer may still come, and would be taken for that of the next call.
                self._why_dead = "a call was interrupted"
                raise

    def run_script(
        self,
        script: bytes,
        stdin: bytes = b"",
        *,
        max_output_bytes: int = _MAX_SCRIPT_OUTPUT_BYTES,
    ) -> tuple[int, bytes]:
        """Runs a command of ours and returns its exit code and output.

        Raises:
            SandboxError: The container died, or there is more output, or it takes too long.
        """
        # Kept as head and tail, which join to the whole.
        kept = BoundedOutput(2 * max_output_bytes)
        ending = self.run(
            script,
            folder=WORKDIR,
            variables={},
            stdin=stdin,
            timeout_s=_SCRIPT_TIMEOUT_S,
            output=kept,
        )
        if ending.timed_out:
            raise self.give_up("the sandbox's files do not answer")
        if kept.num_bytes > max_output_bytes:
            raise SandboxError(f"more than {max_output_bytes} bytes came out of the sandbox")
        return ending.exit_code, b"".join(kept.parts())

    def require_open(self) -> None:
        """Raises SandboxError where a call would, without one."""
        if os.getpid() != self._owner:
            raise SandboxError("the sandbox belongs to the process that opened it; open another")
        if self._is_closed or self._why_dead:
            raise SandboxError(self._why_dead or "the sandbox is closed")

    def give_up(self, reason: str) -> SandboxError:
        """Returns the error that this and every later call raises."""
        self._why_dead = reason
        return SandboxError(reason)

    def close(self) -> bool:
        """Ends the container and waits until its processes are dead; False when that failed.

        Closing twice, or in a fork of the owner, does nothing to the container.
        """
        if self._is_closed:
            return True
        self._is_closed = True
        if os.getpid() != self._owner:
            self._stream.close()
            return True
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_WR)
        # A call in another thread sees the end of the stream first.
        is_mine = self._lock.acquire(timeout=_CLOSE_TIMEOUT_S)
        is_over = is_mine and self._drain(time.monotonic() + _CLOSE_TIMEOUT_S)
        if is_mine:
            self._lock.release()
        self._stream.close()
        return is_over

    def _drain(self, deadline: float) -> bool:
        """Whether the stream ends by then; what still comes is dropped."""
        with contextlib.suppress(OSError):
            while (left_s := deadline - time.monotonic()) > 0:
                self._stream.settimeout(left_s)
                if not self._stream.recv(_READ_BYTES):
                    return True
        return False

    def _await_answer(self, nonce: bytes, timeout_s: float, output: BoundedOutput) -> Ending:
        started = time.monotonic()
        answer = Answer(nonce, output)
        words = _Words(started, timeout_s)
        while not answer.numbers:
            left_s = words.next_at - time.monotonic()
            if left_s <= 0:
                self._say(nonce, words)
                continue
            self._stream.settimeout(left_s)
            try:
                data = self._stream.recv(_READ_BYTES)
            except TimeoutError:
                continue
            if not data:
                raise EOFError("the container ended")
            for chunk in self._frames.feed(data):
                answer.add(chunk)
        exit_code, num_leftovers, num_out_of_memory = answer.numbers
        before, self._num_out_of_memory = self._num_out_of_memory, num_out_of_memory
        return Ending(
            exit_code=exit_code,
            num_leftovers=num_leftovers,
            ran_out_of_memory=num_out_of_memory > before,
            timed_out=words.num_kills > 0,
            duration_s=time.monotonic() - started,
        )

    def _say(self, nonce: bytes, words: "_Words") -> None:
        """Pokes the container, or has the command killed, and notes that."""
        if not words.is_overdue():
            self._stream.sendall(b"\n")
        elif words.num_kills > _MAX_KILLS:
            raise EOFError("a command outlived its time limit")
        else:
            self._stream.sendall(kill_frame(nonce))
            if words.num_kills > _NUM_KILLS_BY_CHANNEL:
                self._interrupt()
        words.said()


class _Words:
    """When the owner says something to the container while a command runs."""

    def __init__(self, started: float, timeout_s: float) -> None:
        self._deadline = started + timeout_s
        self._pause_s = _FIRST_POKE_S
        self.num_kills = 0
        self.next_at = min(self._deadline, started + self._pause_s)

    def is_overdue(self) -> bool:
        return time.monotonic() >= self._deadline

    def said(self) -> None:
        now = time.monotonic()
        if now >= self._deadline:
            self.num_kills += 1
            self.next_at = now + _KILL_AGAIN_S
        else:
            self._pause_s = min(2 * self._pause_s, _LAST_POKE_S)
            self.next_at = min(self._deadline, now + self._pause_s)
