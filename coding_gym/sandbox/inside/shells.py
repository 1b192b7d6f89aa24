"""Shells that are there before their command: that wait for it, begin with it, outlive it."""

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Mapping
from typing import Any

from coding_gym.sandbox.inside import process_table, spawn
from coding_gym.sandbox.inside.memory import MemoryWatch
from coding_gym.sandbox.inside.spawn import Bash, Enclosure, Feed
from coding_gym.sandbox.inside.watch import GRACE_S, Answer, Command, Outcome, Poller, Reply

# Below those that bash takes for its own use, and none that scripts are used to.
_ANSWER_DESCRIPTOR = 47
# How often it is looked whether new background processes have ended.
_LOOK_S = 0.002
_GONE = "its folder, variables, functions and background processes are gone"
_WHY_LOST = {
    Outcome.ENDED: "exited",
    Outcome.TIMED_OUT: "was killed at the time limit",
    Outcome.OUT_OF_MEMORY: "was killed: the sandbox's processes held too much memory",
}


class WaitingShell:
    """A bash that is started between a reply and the next request, and waits for its command.

    It exists only then, when no process of a command is left that could reach it.
    """

    def __init__(self, launcher: spawn.Launcher, env: Mapping[bytes, bytes]) -> None:
        self._launcher = launcher
        self._env = env
        self._bash: Bash | None = None
        self._writer = -1

    def prepare(self) -> None:
        """Starts it in the folder of this process.

        Raises:
            OSError: bash could not be started; `start` tries again.
        """
        # A file that it would read at its start may still be written before the command comes.
        if self._bash is None and b"BASH_ENV" not in self._env:
            self._bash = self._listen()

    def start(self, command: bytes) -> Bash:
        """Hands a command over; the same way where no bash was ready, so that results repeat.

        Raises:
            OSError: bash could not be started.
        """
        if self._bash is not None and not self._bash.is_running():
            self.end()
        bash, self._bash = self._bash or self._listen(), None
        return bash.feed(Feed(self._writer, spawn.assignment(command)))

    def end(self) -> None:
        """Ends it: no other command may find it."""
        bash, self._bash = self._bash, None
        if bash is not None:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(bash.pid, signal.SIGKILL)
                os.waitpid(bash.pid, 0)
            bash.close()
            os.close(self._writer)

    def _listen(self) -> Bash:
        reader, self._writer = spawn.pipe()
        arguments, inputs = [b"-c", spawn.LISTEN, spawn.NAME], {spawn.COMMAND_DESCRIPTOR: reader}
        return Bash(self._launcher, arguments, self._env, inputs, [self._writer])


class LastingShell:
    """A bash that runs command after command, and their background processes.

    It reads commands as a script on its standard input: in a loop of ours, a ``break`` of theirs
    would end it. The commands themselves have neither that nor the descriptor of the answers.
    Background processes print to the same pipe as commands; what they print between two commands
    comes with the next one. When its end is forced, everything ends with it.
    """

    def __init__(
        self,
        enclosure: Enclosure,
        env: Mapping[bytes, bytes],
        channel: socket.socket,
        memory: MemoryWatch,
    ) -> None:
        self._enclosure = enclosure
        self._env = env
        self._channel = channel
        self._memory = memory
        self._bash: Bash | None = None
        self._writer = self._answers = -1
        self._known: frozenset[int] = frozenset()
        self._last_exit_code = 0
        self._num_commands = 0
        self._notice = ""

    def is_running(self) -> bool:
        """Whether the next command meets the shell of the last one."""
        return self._bash is not None and self._bash.is_running()

    def prepare(self) -> Bash:
        """Starts it, where it does not run, in the folder of this process.

        Raises:
            OSError: bash could not be started.
        """
        if self._bash is not None and not self._bash.is_running():
            self.end("ended")
        if self._bash is None:
            self._bash = self._start()
        return self._bash

    def run(self, request: dict[str, Any], body: bytes, started: float) -> Reply:
        """Runs a command in it; see `commands.Commands.run`."""
        bash = self.prepare()
        command = Command(bash, self._enclosure, request["max_output_bytes"], started)
        command.output.add(self._notice.encode())
        self._notice = ""
        # A count: what `set -v` or a trap shows of it is to be the same in every run.
        self._num_commands += 1
        label = b"%016x" % self._num_commands
        bash.feed(Feed(self._writer, self._script(body, label), closes=False))
        answer = Answer(self._answers, label)
        outcome = command.wait(request["timeout_s"], self._channel, self._memory, answer)
        # Unread input would be run as the beginning of the next command.
        if outcome is Outcome.REPLIED and not bash.feeds:
            self._last_exit_code = answer.exit_code or 0
            self._take_output(command)
            return command.reply(exit_code=self._last_exit_code)
        num_leftovers = command.kill_all()
        command.read_all()
        self._forget()
        why = _WHY_LOST.get(outcome, _WHY_LOST[Outcome.ENDED])
        return command.reply(num_leftovers=num_leftovers, notice=f"[the shell {why}; {_GONE}]\n")

    def watch(self) -> None:
        """Watches background processes until the owner's next request.

        The shell too: a command that forged its answer goes on in it.
        """
        asked: list[int] = []
        poller = Poller(self._enclosure.launcher)
        poller.add(self._channel.fileno(), asked.append, select.POLLIN | select.POLLRDHUP)
        while self._bash is not None and not asked:
            now = time.monotonic()
            if now >= self._memory.next_look and self._memory.is_exceeded(now):
                self.end(_WHY_LOST[Outcome.OUT_OF_MEMORY])
            elif not poller.wait(max(0.0, self._memory.next_look - now)):
                process_table.reap()

    def end(self, why: str) -> None:
        """Ends it and all background processes; the next output reports that."""
        self._enclosure.processes.end()
        self._forget()
        self._notice = f"[the last shell {why}; {_GONE}]\n"

    def _start(self) -> Bash:
        reader, self._writer = spawn.pipe()
        self._answers, answering = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._answers, False)
        inputs = {0: reader, _ANSWER_DESCRIPTOR: answering}
        ours = [self._writer, self._answers]
        return Bash(self._enclosure.launcher, [b"-s"], self._env, inputs, ours)

    def _script(self, command: bytes, label: bytes) -> bytes:
        """Returns its script; it will answer ``label``, ``x``, the exit code, a line feed."""
        text = b"eval -- " + spawn.quoted(command) + b" </dev/null %d>&-; " % _ANSWER_DESCRIPTOR
        # Without standard error `set -x` does not show this; a restricted shell may close only.
        text += b"{ builtin printf '%sx%%s\\n' \"$?\" >&%d; } 2>&-\n" % (label, _ANSWER_DESCRIPTOR)
        if self._last_exit_code:  # what `$?` is at its start
            text = b"(exit %d) || %s" % (self._last_exit_code, text)
        return text

    def _forget(self) -> None:
        if self._bash is not None:
            os.close(self._writer)
            os.close(self._answers)
            self._bash.close()
        self._bash = None
        self._known = frozenset()
        self._last_exit_code = 0

    def _take_output(self, command: Command) -> None:
        """Takes what the command printed, and what its new processes print at once."""
        command.read_present()
        known = self._known | {command.shell.pid}
        deadline = time.monotonic() + GRACE_S
        while command.is_open and time.monotonic() < deadline:
            process_table.reap()
            if self._enclosure.processes.pids() <= known:
                break
            command.wait_for_output(_LOOK_S)
        command.read_present()
        self._known = self._enclosure.processes.pids()
