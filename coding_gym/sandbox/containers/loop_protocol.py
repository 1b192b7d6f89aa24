"""The bytes that pass between a handle and `loop.sh`, and the transport that carries them."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from coding_gym.sandbox.inside.output import BoundedOutput

# For `printf %b`. bash holds no NUL, and marks its own quoting with 1 and 127.
_ESCAPES = {b"\\": b"\\\\", b"\0": b"\\0000", b"\1": b"\\0001", b"\x7f": b"\\0177"}
_CHUNK_BYTES = 1 << 18
# More than a first or last line of an answer has.
_MAX_LINE_BYTES = 200


class Transport(Protocol):
    """A running container: the standard input and output of its first process, and its end.

    Attributes:
        input: Leads to standard input, whose end ends the container.
    """

    input: socket.socket

    def receive(self, timeout_s: float) -> bytes:
        """Returns bytes of standard output; ``b""`` at its end.

        Raises:
            OSError: The output cannot be read; a TimeoutError if nothing came in time.
        """
        ...

    def interrupt(self) -> None:
        """Sends SIGUSR1 to the first process."""
        ...

    def started_at(self) -> float:
        """Returns seconds since 1970, by the clock of the container's files.

        Files that the container had from the start changed before, those of commands later.
        """
        ...

    def clean_up(self, *, has_ended: bool) -> None:
        """Frees all that the container holds, after killing it unless it has ended."""
        ...


def request(
    nonce: bytes, command: bytes, folder: str, variables: Mapping[str, str], stdin: bytes
) -> bytes:
    """Returns the bytes that ask `loop.sh` to run a command."""
    chunks = [
        _escaped(stdin[start : start + _CHUNK_BYTES])
        for start in range(0, len(stdin), _CHUNK_BYTES)
    ]
    texts = [_escaped(os.fsencode(folder)), _escaped(command)]
    texts += [_escaped(os.fsencode(f"{name}={value}")) for name, value in variables.items()]
    sizes = b" ".join(b"%d" % len(part) for part in (*chunks, *texts))
    # The first line feed ends what `loop.sh` may still hold of a poke.
    return b"".join((b"\nrun %b %d %b\n" % (nonce, len(chunks), sizes), *chunks, *texts))


def _escaped(data: bytes) -> bytes:
    for byte, escape in _ESCAPES.items():
        data = data.replace(byte, escape)
    return data


@dataclass(slots=True)
class Answer:
    """An answer of `loop.sh` that is still coming in.

    Attributes:
        nonce: Of the request. Nothing before the line that it begins is taken for output, so what
            an earlier command may have forged is dropped.
        output: Takes what the command prints.
        numbers: Exit code, processes left running, and processes that the kernel killed in this
            container, so far, for want of memory; empty until the answer is complete.
    """

    nonce: bytes
    output: BoundedOutput
    numbers: tuple[int, ...] = ()
    _pending: bytes = b""
    _has_begun: bool = False

    def add(self, data: bytes) -> None:
        """Takes the next bytes.

        Raises:
            ValueError: The last line is malformed.
        """
        text = self._pending + data
        if not self._has_begun:
            before, mark, rest = text.partition(b"%b begin\n" % self.nonce)
            self._has_begun = bool(mark)
            self._pending = text = rest if mark else before[-_MAX_LINE_BYTES:]
        if self._has_begun:
            before, _, rest = text.partition(b"%b end " % self.nonce)
            line, is_whole, _ = rest.partition(b"\n")
            if is_whole:
                self.numbers = tuple(map(int, line.split()))
            else:
                before = text[:-_MAX_LINE_BYTES]
            self.output.add(before)
            self._pending = text[len(before) :]
