"""A running container of Apptainer: a process of ours whose pipes lead to the loop inside."""

import contextlib
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from typing import IO

from coding_gym.errors import SandboxError, last_line
from coding_gym.sandbox.containers.channel import ContainerChannel

_END_TIMEOUT_S = 5.0
# Of what a Docker daemon puts before each piece of a stream: type 1, three zeros, the size.
_MARK = b"\x01\0\0\0"
_HEADER_BYTES = 8
_MAX_ERROR_BYTES = 1 << 16


class PipeStream:
    """Two pipes in the form of the one socket that a Docker daemon gives, its marks included.

    So that one channel serves both. Of a socket's methods it has those that the channel calls.

    Args:
        process: Its standard input and output are pipes.
        errors: What the program writes to standard error, which says why the output has ended.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", errors: IO[bytes]) -> None:
        assert process.stdin is not None  # noqa: S101 - for the type checker: we asked for pipes
        assert process.stdout is not None  # noqa: S101 - as above
        self._input, self._output = process.stdin, process.stdout
        os.set_blocking(self._input.fileno(), False)
        self._errors = errors
        self._timeout_s: float | None = None

    def settimeout(self, timeout_s: float | None) -> None:
        """Sets how long each call may wait."""
        self._timeout_s = timeout_s

    def sendall(self, data: bytes) -> None:
        """Writes everything; raises TimeoutError where it is not taken.

        Where nobody reads it any more, the next `recv` says why.
        """
        view = memoryview(data)
        while view:
            self._wait(self._input.fileno(), select.POLLOUT)
            try:
                view = view[os.write(self._input.fileno(), view) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                return

    def recv(self, size: int) -> bytes:
        """Returns what is there, marked as the daemon marks it; nothing at the end.

        Raises:
            ConnectionError: It has ended, and the program says why.
        """
        self._wait(self._output.fileno(), select.POLLIN)
        data = os.read(self._output.fileno(), size - _HEADER_BYTES)
        if not data and (said := os.pread(self._errors.fileno(), _MAX_ERROR_BYTES, 0)):
            raise ConnectionError(last_line(said.decode("utf-8", "replace")))
        return data and _MARK + len(data).to_bytes(4, "big") + data

    def shutdown(self, _how: int) -> None:
        """Ends the input, and with it the container."""
        with contextlib.suppress(OSError):
            self._input.close()

    def close(self) -> None:
        """Lets go of the pipes."""
        for pipe in (self._input, self._output, self._errors):
            with contextlib.suppress(OSError):
                pipe.close()

    def _wait(self, descriptor: int, event: int) -> None:
        poller = select.poll()
        poller.register(descriptor, event)
        if not poller.poll(None if self._timeout_s is None else self._timeout_s * 1000):
            raise TimeoutError("no answer in time")


class ApptainerContainer:
    """A container that runs the loop of the ``docker`` backend.

    Args:
        command: What starts it.
        env: Variables that ``apptainer`` itself is given.

    Attributes:
        channel: Runs commands in it.

    Raises:
        SandboxError: The program cannot be started.
    """

    def __init__(self, command: list[str], env: Mapping[str, str]) -> None:
        # No command reaches it: the loop closes it before the first.
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - the stream closes it
        try:
            self._process = subprocess.Popen(
                command,
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            errors.close()
            raise SandboxError(f"{command[0]} cannot be started: {error}") from error
        stream = PipeStream(self._process, errors)
        self.channel = ContainerChannel(stream, self._interrupt)  # type: ignore[arg-type]

    def close(self) -> None:
        """Ends it and waits for that; idempotent."""
        self.channel.close()
        try:
            self._process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _interrupt(self) -> None:
        self._process.send_signal(signal.SIGUSR1)
