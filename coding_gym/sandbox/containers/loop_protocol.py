"""The bytes that pass between a handle and `loop.sh`, and the transport that carries them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from coding_gym.sandbox.zygote.output import BoundedOutput

# For `printf %b`. bash holds no NUL, and marks its own quoting with 1 and 127.
_ESCAPES = {b"\\": b"\\\\", b"\0": b"\\0000", b"\1": b"\\0001", b"\x7f": b"\\0177"}
_CHUNK_BYTES = 1 << 18
# " end EXIT_CODE NUM_LEFTOVERS NUM_OUT_OF_MEMORY"
_NUM_FIELDS = 4
_MAX_LINE_BYTES = 200


class Transport(Protocol):
    """A running container: the standard input and output of its first process, and its end."""

    def send(self, data: bytes, timeout_s: float) -> None:
        """Writes to standard input; raises OSError, after that time a TimeoutError."""
        ...

    def receive(self, timeout_s: float) -> bytes:
        """Returns what came from standard output, at the end ``b""``; raises as `send` does."""
        ...

    def interrupt(self) -> None:
        """Sends SIGUSR1 to the first process."""
        ...

    def started_at(self) -> float:
        """Returns seconds since 1970, by the clock of the container's files.

        Files that the container had from the start changed before, those of commands later.
        """
        ...

    def end_input(self) -> None:
        """Ends standard input, whereupon `loop.sh` ends the container."""
        ...

    def forget(self) -> None:
        """Closes this process's ends, and nothing that another process has."""
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
            ValueError: They are nonsense.
        """
        self._pending += data
        if not self._has_begun:
            before, mark, rest = self._pending.partition(b"%b begin\n" % self.nonce)
            self._has_begun = bool(mark)
            self._pending = rest if mark else before[-_MAX_LINE_BYTES:]
        if self._has_begun:
            self._add_output()

    def _add_output(self) -> None:
        before, mark, rest = self._pending.partition(self.nonce)
        if not mark:
            keep = len(self.nonce) - 1
            self.output.add(before[:-keep])
            self._pending = before[-keep:]
            return
        self.output.add(before)
        self._pending = mark + rest
        line, is_whole, _ = rest.partition(b"\n")
        if is_whole:
            word, *numbers = line.split()
            if word != b"end" or len(numbers) != _NUM_FIELDS - 1:
                raise ValueError(f"the container answered {line!r}")
            self.numbers = tuple(int(number) for number in numbers)
        elif len(line) > _MAX_LINE_BYTES:
            raise ValueError(f"the container answered {line[:_MAX_LINE_BYTES]!r}")
