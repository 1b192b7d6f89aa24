"""Starts bash in a kind of sandbox, with pipes for its input and output."""

import os
import signal
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from coding_gym.sandbox.inside import syscalls as sc
from coding_gym.sandbox.inside.files import Opener
from coding_gym.sandbox.inside.process_table import all_but_first

BASH = "/bin/bash"
# The value of $0, with which error messages begin.
NAME = b"bash"
COMMAND_DESCRIPTOR = 9
# One argument of exec may not be longer (MAX_ARG_STRLEN, 32 pages).
_MAX_ARGUMENT_BYTES = 128 << 10
# Sourcing reads a pipe in large pieces, `read` byte by byte. What comes is an assignment to the
# variable that holds the text of `bash -c`. The rest is what a new shell would show of itself.
_LISTEN = (
    b". /dev/fd/%d; exec %d<&-; " % (COMMAND_DESCRIPTOR, COMMAND_DESCRIPTOR)
    + b"SECONDS=0; : %s; " % BASH.encode()
    + b'eval -- "$BASH_EXECUTION_STRING"'
)


class Launcher:
    """Starts bash by posix_spawn: from a small process it costs less than half of a fork."""

    def start(
        self, arguments: list[bytes], env: Mapping[bytes, bytes], descriptors: Mapping[int, int]
    ) -> int:
        """Starts bash in a session of its own and returns its process id.

        Args:
            arguments: All of them, its name first.
            env: All its environment variables.
            descriptors: Descriptors here by descriptor there; it has no others.

        Raises:
            OSError: E2BIG when the environment is too large; EAGAIN when there are too many
                processes.
        """
        return os.posix_spawn(
            BASH,
            arguments,
            env,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, here, there) for there, here in descriptors.items()
            ],
            setsid=True,
            setsigmask=(),
            # Python ignores these, and what is ignored stays ignored across exec.
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Enclosure:
    """The strategies of one kind of sandbox.

    Attributes:
        launcher: Starts bash.
        list_pids: Lists the ids of all that runs in the sandbox.
        open_file: Opens files for the owner.
    """

    launcher: Launcher
    list_pids: Callable[[], frozenset[int]]
    open_file: Opener


# In a pid namespace of its own, whose first process the inner server is.
NAMESPACE = Enclosure(
    launcher=Launcher(),
    list_pids=all_but_first,
    open_file=sc.open_without_magic,
)


class Feed:
    """Data that is still to be written to a pipe that a shell reads.

    A pipe, because bytes in it are bounded; a file would need room on the sandbox's disk, which a
    command may have filled, and one in memory could grow without limit in a command's hands.

    Args:
        descriptor: The pipe's end to write to, not blocking.
        data: The bytes to write.
    """

    def __init__(self, descriptor: int, data: bytes) -> None:
        self.descriptor = descriptor
        self._data = memoryview(data)
        self._is_closed = False

    def write(self) -> bool:
        """Writes what fits now; False when nothing is left to write, or there is no reader."""
        try:
            while self._data:
                self._data = self._data[os.write(self.descriptor, self._data) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            self._data = memoryview(b"")
        self.end()
        return False

    def end(self) -> None:
        """Closes the pipe; idempotent."""
        if not self._is_closed:
            self._is_closed = True
            os.close(self.descriptor)


class Bash:
    """A bash that was started.

    Attributes:
        pid: Its process id.
        reader: Where its output can be read, not blocking.
        feeds: Data that is still to be written to it.
    """

    def __init__(
        self,
        launcher: Launcher,
        arguments: list[bytes],
        env: Mapping[bytes, bytes],
        inputs: Mapping[int, int],
        writers: Iterable[int] = (),
    ) -> None:
        """Starts it.

        This process can write to its output too until `let_output_end`: who waits for the process
        is not woken by the end of its output just before.

        Args:
            launcher: Starts it.
            arguments: Those that follow its name.
            env: All its environment variables.
            inputs: Descriptors here by descriptor there, which are closed here; without a standard
                input it is empty.
            writers: Descriptors that are closed if it cannot be started.

        Raises:
            OSError: As `Launcher.start`.
        """
        self.feeds: list[Feed] = []
        self.reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self._writer, True)
        null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        descriptors = {0: null, 1: self._writer, 2: self._writer, **inputs}
        try:
            # By its path, or it would look for itself in PATH, for what $BASH says.
            self.pid = launcher.start([os.fsencode(BASH), *arguments], env, descriptors)
        except BaseException:
            self.let_output_end()
            for descriptor in (self.reader, *writers):
                os.close(descriptor)
            raise
        finally:
            for descriptor in (null, *inputs.values()):
                os.close(descriptor)

    def feed(self, *feeds: Feed) -> "Bash":
        """Writes what fits now; the rest follows during the wait. Returns this."""
        self.feeds = [feed for feed in feeds if feed.write()]
        return self

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


def fresh(launcher: Launcher, command: bytes, env: Mapping[bytes, bytes], stdin: bytes) -> Bash:
    """Starts a bash that runs one command, of any length; raises OSError as `Bash`."""
    inputs: dict[int, int] = {}
    feeds = []
    if stdin:
        inputs[0], writer = pipe()
        feeds.append(Feed(writer, stdin))
    if len(command) >= _MAX_ARGUMENT_BYTES:
        inputs[COMMAND_DESCRIPTOR], writer = pipe()
        feeds.append(Feed(writer, assignment(command)))
        command = _LISTEN
    writers = [feed.descriptor for feed in feeds]
    return Bash(launcher, [b"-c", b"--", command, NAME], env, inputs, writers).feed(*feeds)


def pipe() -> tuple[int, int]:
    """Returns both ends of a pipe; the one to write to does not block."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(writer, False)
    return reader, writer


def assignment(command: bytes) -> bytes:
    """Returns the assignment that `_LISTEN` reads."""
    return b"BASH_EXECUTION_STRING='" + command.replace(b"'", b"'\\''") + b"'"
