"""Shells that are there before their command: that wait for it, begin with it, outlive it."""

import contextlib
import os
import select
import socket
import time
from collections.abc import Callable
from typing import Any

from coding_gym.sandbox.zygote import processes, replies, spawn
from coding_gym.sandbox.zygote.answers import Answer
from coding_gym.sandbox.zygote.memory import MemoryWatch
from coding_gym.sandbox.zygote.replies import Reply
from coding_gym.sandbox.zygote.watch import GRACE_S, Command, Outcome, watch

_NUM_WATCHED = 32
_GONE = "its folder, variables, functions and background processes are gone"
_WHY_LOST = {
    Outcome.ENDED: "exited",
    Outcome.TIMED_OUT: "was killed at the time limit",
    Outcome.OUT_OF_MEMORY: "was killed: the sandbox's processes held too much memory",
}


class WaitingShell:
    """A bash that is started while nobody waits for it, and waits for the next command.

    It exists only between a reply and the next request, when no process of a command is left that
    could reach it.
    """

    def __init__(self, env: dict[bytes, bytes]) -> None:
        self._env = env
        self._bash: spawn.WaitingBash | None = None

    def prepare(self, go_home: Callable[[], None]) -> None:
        """Starts it, where that is possible now, after changing to its folder."""
        # A file that it would read at its start may still be written before the command comes.
        if self._bash is None and b"BASH_ENV" not in self._env:
            with contextlib.suppress(OSError):  # `start` tries again, and says what is wrong
                go_home()
                self._bash = spawn.WaitingBash(self._env)

    def start(self, command: bytes) -> spawn.Bash:
        """Hands a command over; the same way where no bash was ready, so that results repeat.

        Raises:
            OSError: bash could not be started.
        """
        bash, self._bash = self._bash, None
        if bash is not None and not bash.is_running():
            bash.end(is_running=False)
            bash = None
        return (bash or spawn.WaitingBash(self._env)).give(command)

    def end(self) -> None:
        """Ends it: no other command may find it."""
        bash, self._bash = self._bash, None
        if bash is not None:
            bash.end(is_running=bash.is_running())


class PreparedShell:
    """A bash that has begun with a command that the owner is expected to run."""

    def __init__(self, env: dict[bytes, bytes]) -> None:
        self._env = env
        self._bash: spawn.PreparedBash | None = None

    def start(self, command: bytes, stdin: bytes, go_home: Callable[[], None]) -> None:
        """Starts it in place of another, where it can be started.

        Args:
            command: Its text.
            stdin: The beginning of what it will read.
            go_home: Changes to its folder.
        """
        self._drop()
        with contextlib.suppress(OSError):  # `commands.Commands.run` tries again, and says why
            go_home()
            self._bash = spawn.PreparedBash(command, stdin, self._env)

    def is_there(self) -> bool:
        """Whether one is to be spared by other commands."""
        return self._bash is not None

    def take(self, command: bytes, stdin: bytes) -> spawn.Bash | None:
        """Hands over all that a command reads to the bash that began with it, and returns that.

        None where this is another command, or the bash has ended meanwhile.
        """
        if self._bash is None or not self._bash.is_for(command, stdin):
            return None
        if not self._bash.is_running():
            self._drop()
            return None
        bash, self._bash = self._bash, None
        return bash.give(stdin)

    def _drop(self) -> None:
        bash, self._bash = self._bash, None
        if bash is not None:
            processes.kill_all()
            bash.end()


class LastingShell:
    """A bash that runs command after command, and what they left running in the background.

    Background processes print to the same pipe as commands; what they print between two commands
    comes with the next one. When its end is forced, everything ends with it.
    """

    def __init__(
        self, env: dict[bytes, bytes], channel: socket.socket, memory: MemoryWatch
    ) -> None:
        self._env = env
        self._channel = channel
        self._memory = memory
        self._bash: spawn.LastingBash | None = None
        self._known: frozenset[int] = frozenset()
        self._last_exit_code = 0
        self._num_commands = 0
        self._notice = ""

    def is_running(self) -> bool:
        """Whether the next command meets the shell of the last one."""
        return self._bash is not None and self._bash.is_running()

    def run(self, request: dict[str, Any], body: bytes, started: float) -> Reply:
        """Runs a command in it; see `commands.Commands.run`."""
        bash = self._ready()
        command = Command(bash.shell, request["max_output_bytes"])
        command.output.add(self._notice.encode())
        self._notice = ""
        # A count: what `set -v` or a trap shows of it is to be the same in every run.
        self._num_commands += 1
        label = b"%016x" % self._num_commands
        bash.give(body, label, self._last_exit_code)
        answer = Answer(bash.answers, label)
        deadline = started + request["timeout_s"]
        outcome = watch(command, deadline, self._channel, self._memory, answer)
        # What it has not read would be taken for the beginning of the next command.
        if outcome is Outcome.ANSWERED and not bash.shell.feeds:
            self._last_exit_code = answer.exit_code or 0
            self._take_output(command)
            return replies.ended(command, outcome, started, exit_code=self._last_exit_code)
        if outcome is Outcome.ANSWERED:
            outcome = Outcome.ENDED
        num_leftovers = command.kill_all()
        command.read_all()
        self._forget()
        notice = f"[the shell {_WHY_LOST[outcome]}; {_GONE}]\n"
        return replies.ended(command, outcome, started, num_leftovers=num_leftovers, notice=notice)

    def rest(self, go_home: Callable[[], None]) -> None:
        """Watches what runs in the background until the owner asks for something.

        A shell that is to be started is, after changing to its folder.

        The shell too: a command that forged its answer goes on in it.
        """
        with contextlib.suppress(OSError):  # `run` tries again, and says what is wrong
            go_home()
            self._ready()
        poller = select.poll()
        poller.register(self._channel, select.POLLIN | select.POLLRDHUP)
        while self._bash is not None:
            now = time.monotonic()
            if now >= self._memory.next_look and self._memory.is_exceeded(now):
                self.end(_WHY_LOST[Outcome.OUT_OF_MEMORY])
            elif poller.poll(max(0.0, self._memory.next_look - now) * 1000):
                return
            else:
                processes.reap()

    def end(self, why: str) -> None:
        """Ends it and all that runs in the background; the next command is told."""
        processes.kill_all()
        self._forget()
        self._notice = f"[the last shell {why}; {_GONE}]\n"

    def _ready(self) -> spawn.LastingBash:
        if self._bash is not None and not self._bash.is_running():
            self.end("ended")
        if self._bash is None:
            self._bash = spawn.LastingBash(self._env)
        return self._bash

    def _forget(self) -> None:
        if self._bash is not None:
            self._bash.close()
        self._bash = None
        self._known = frozenset()
        self._last_exit_code = 0

    def _take_output(self, command: Command) -> None:
        """Takes what the command printed, and what its new processes print at once."""
        command.read_present()
        new = processes.pids() - self._known - {command.shell.pid}
        if new:
            with contextlib.ExitStack() as opened:
                descriptors = []
                for pid in sorted(new)[:_NUM_WATCHED]:
                    with contextlib.suppress(ProcessLookupError):
                        descriptors.append(os.pidfd_open(pid))
                        opened.callback(os.close, descriptors[-1])
                if descriptors:
                    command.wait_for_output(descriptors, GRACE_S)
            command.read_present()
        self._known = processes.pids()
