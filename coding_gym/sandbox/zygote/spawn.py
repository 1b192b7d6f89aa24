"""Starts bash, by posix_spawn: from a small process it costs less than half of a fork."""

import contextlib
import os
import signal
from collections.abc import Mapping

from coding_gym.sandbox.zygote.feeds import Feed, feeding_pipe

BASH = "/bin/bash"
# What $0 is, and complaints begin with.
_NAME = b"bash"
# One argument of exec may not be longer (MAX_ARG_STRLEN, 32 pages).
_MAX_ARGUMENT_BYTES = 128 << 10
_COMMAND_DESCRIPTOR = 9
# Below those that bash takes for its own use, and none that scripts are used to.
_ANSWER_DESCRIPTOR = 47
# Sourcing reads a pipe in large pieces, `read` byte by byte. What comes is an assignment to the
# variable that holds the text of `bash -c`. The rest is what a new shell would show of itself.
_LISTEN = (
    b". /dev/fd/%d; exec %d<&-; " % (_COMMAND_DESCRIPTOR, _COMMAND_DESCRIPTOR)
    + b"SECONDS=0; : %s; " % BASH.encode()
    + b'eval -- "$BASH_EXECUTION_STRING"'
)
_HAS_ENDED = os.WEXITED | os.WNOHANG | os.WNOWAIT


class Bash:
    """A bash that was started.

    Attributes:
        pid: Its process id.
        reader: Where its output can be read, not blocking.
        feeds: What is still to be written to it.
    """

    def __init__(
        self, arguments: list[bytes], env: Mapping[bytes, bytes], inputs: Mapping[int, int]
    ) -> None:
        """Starts it in a session of its own.

        This process can write to its output too until `let_output_end`: who waits for the process
        is not woken by the end of its output just before.

        Args:
            arguments: Those of bash.
            env: All its environment variables.
            inputs: Descriptors here by descriptor there; without a standard input it is empty.

        Raises:
            OSError: E2BIG when the environment is too large; EAGAIN when there are too many
                processes.
        """
        self.feeds: list[Feed] = []
        self.reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self._writer, True)
        null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        actions = [(os.POSIX_SPAWN_DUP2, inputs.get(0, null), 0)]
        actions += [(os.POSIX_SPAWN_DUP2, self._writer, number) for number in (1, 2)]
        actions += [(os.POSIX_SPAWN_DUP2, here, there) for there, here in inputs.items() if there]
        try:
            self.pid = os.posix_spawn(
                BASH,
                # By its path, or it would look for itself in PATH, for what $BASH says.
                [os.fsencode(BASH), *arguments],
                env,
                file_actions=actions,
                setsid=True,
                setsigmask=(),
                # Python ignores these, and what is ignored stays ignored across exec.
                setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
            )
        except BaseException:
            self.let_output_end()
            os.close(self.reader)
            raise
        finally:
            for descriptor in (null, *inputs.values()):
                os.close(descriptor)

    def let_output_end(self) -> None:
        """Lets its output end with the last process that may write to it; idempotent."""
        if self._writer >= 0:
            os.close(self._writer)
            self._writer = -1

    def close(self) -> None:
        """Lets go of its pipes."""
        self.let_output_end()
        for feed in self.feeds:
            feed.end()
        os.close(self.reader)


def fresh(command: bytes, stdin: bytes, env: Mapping[bytes, bytes]) -> Bash:
    """Starts a bash that runs one command.

    Args:
        command: Shell text of any length.
        stdin: What it reads; nothing when empty.
        env: All its environment variables.

    Raises:
        OSError: As `Bash`.
    """
    is_long = len(command) >= _MAX_ARGUMENT_BYTES
    inputs, feeds = {}, []
    if stdin:
        inputs[0], feed = feeding_pipe(stdin)
        feeds.append(feed)
    if is_long:
        inputs[_COMMAND_DESCRIPTOR], feed = feeding_pipe(_assignment(command))
        feeds.append(feed)
    try:
        shell = Bash([b"-c", b"--", _LISTEN if is_long else command, _NAME], env, inputs)
    except OSError:
        for feed in feeds:
            feed.end()
        raise
    shell.feeds = [feed for feed in feeds if feed.write()]
    return shell


class PreparedBash:
    """A bash that has begun with its command, and may wait for the rest of its standard input.

    Raises:
        OSError: As `Bash`; E2BIG too where the command is too long for one argument.
    """

    def __init__(self, command: bytes, stdin: bytes, env: Mapping[bytes, bytes]) -> None:
        self._command, self._stdin = command, stdin
        theirs, self._writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._writer, False)
        try:
            self._shell = Bash([b"-c", b"--", command, _NAME], env, {0: theirs})
        except OSError:
            os.close(self._writer)
            raise
        self._feed = Feed(self._writer, stdin, closes=False)
        self._feed.write()

    def is_for(self, command: bytes, stdin: bytes) -> bool:
        """Whether a command is the one that was begun, and what it reads begins as foreseen."""
        return command == self._command and stdin.startswith(self._stdin)

    def give(self, stdin: bytes) -> Bash:
        """Hands over all that it reads, of which it has the beginning, and returns it."""
        feed = Feed(self._writer, self._feed.rest + stdin[len(self._stdin) :])
        self._shell.feeds = [feed] if feed.write() else []
        return self._shell

    def is_running(self) -> bool:
        """Whether it has not ended, nor been reaped."""
        return _is_running(self._shell.pid)

    def end(self) -> None:
        """Ends it, if it runs; what it started is for the caller to end."""
        if self.is_running():
            os.kill(self._shell.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._shell.pid, 0)
        os.close(self._writer)
        self._shell.close()


class WaitingBash:
    """A bash that waits for its command.

    Raises:
        OSError: As `Bash`.
    """

    def __init__(self, env: Mapping[bytes, bytes]) -> None:
        theirs, self._writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._writer, False)
        try:
            self._shell = Bash([b"-c", _LISTEN, _NAME], env, {_COMMAND_DESCRIPTOR: theirs})
        except OSError:
            os.close(self._writer)
            raise

    def give(self, command: bytes) -> Bash:
        """Hands the command over."""
        feed = Feed(self._writer, _assignment(command))
        self._shell.feeds = [feed] if feed.write() else []
        return self._shell

    def is_running(self) -> bool:
        """Whether nothing has ended it yet; reaps it where something has."""
        return os.waitpid(self._shell.pid, os.WNOHANG)[0] == 0

    def end(self, *, is_running: bool = True) -> None:
        """Ends it without a command."""
        if is_running:
            os.kill(self._shell.pid, signal.SIGKILL)
            os.waitpid(self._shell.pid, 0)
        os.close(self._writer)
        self._shell.close()


class LastingBash:
    """A bash that runs command after command.

    It reads them as a script on its standard input: in a loop of ours, a ``break`` of theirs would
    end it. The commands themselves have neither that nor the descriptor of the answers.

    Attributes:
        shell: The process.
        answers: Where its answers can be read, not blocking.
    """

    def __init__(self, env: Mapping[bytes, bytes]) -> None:
        theirs, self._writer = os.pipe2(os.O_CLOEXEC)
        self.answers, answering = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._writer, False)
        os.set_blocking(self.answers, False)
        try:
            self.shell = Bash([b"-s"], env, {0: theirs, _ANSWER_DESCRIPTOR: answering})
        except OSError:
            os.close(self._writer)
            os.close(self.answers)
            raise

    def give(self, command: bytes, label: bytes, last_exit_code: int) -> None:
        """Hands a command over; its answer will be ``label``, ``x``, the exit code, a line feed.

        Args:
            command: Shell text.
            label: Letters and digits that no other command of this shell has.
            last_exit_code: What ``$?`` is at its start.
        """
        text = b"eval -- " + quoted(command) + b" </dev/null %d>&-; " % _ANSWER_DESCRIPTOR
        # Without standard error `set -x` does not show this; a restricted shell may close only.
        text += b"{ builtin printf '%sx%%s\\n' \"$?\" >&%d; } 2>&-\n" % (label, _ANSWER_DESCRIPTOR)
        if last_exit_code:
            text = b"(exit %d) || %s" % (last_exit_code, text)
        feed = Feed(self._writer, text, closes=False)
        self.shell.feeds = [feed] if feed.write() else []

    def is_running(self) -> bool:
        """Whether it has not ended, nor been reaped."""
        return _is_running(self.shell.pid)

    def close(self) -> None:
        """Lets go of its pipes."""
        os.close(self._writer)
        os.close(self.answers)
        self.shell.close()


def _is_running(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, _HAS_ENDED) is None
    except ChildProcessError:
        return False


def quoted(text: bytes) -> bytes:
    """Returns text as one word of a shell."""
    return b"'" + text.replace(b"'", b"'\\''") + b"'"


def _assignment(command: bytes) -> bytes:
    return b"BASH_EXECUTION_STRING=" + quoted(command)
