"""The bytes on a container's channel; `loop.sh` holds the other end."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from coding_gym.sandbox.zygote.output import BoundedOutput

# For `printf %b`. bash holds no NUL, and marks its own quoting with 1 and 127.
_ESCAPES = {b"\\": b"\\\\", b"\0": b"\\0000", b"\1": b"\\0001", b"\x7f": b"\\0177"}
_CHUNK_BYTES = 1 << 18
# Type, three zeros, size: https://docs.docker.com/reference/api/engine/, "Stream format".
_HEADER_BYTES = 8
# " end EXIT_CODE NUM_LEFTOVERS NUM_OUT_OF_MEMORY"
_NUM_FIELDS = 4
_MAX_LINE_BYTES = 200


def request_frame(
    nonce: bytes, command: bytes, folder: str, variables: Mapping[str, str], stdin: bytes
) -> bytes:
    """Returns the bytes that ask for a command to be run."""
    chunks = [
        _escaped(stdin[start : start + _CHUNK_BYTES])
        for start in range(0, len(stdin), _CHUNK_BYTES)
    ]
    texts = [_escaped(os.fsencode(folder)), _escaped(command)]
    texts += [_escaped(os.fsencode(f"{name}={value}")) for name, value in variables.items()]
    sizes = b" ".join(b"%d" % len(part) for part in (*chunks, *texts))
    # The first line end completes what is left of an earlier word to the container.
    return b"".join((b"\nrun %b %d %b\n" % (nonce, len(chunks), sizes), *chunks, *texts))


def kill_frame(nonce: bytes) -> bytes:
    """Returns the bytes that have the running command of this nonce killed."""
    return b"\n%b\n" % nonce


def _escaped(data: bytes) -> bytes:
    for byte, escape in _ESCAPES.items():
        data = data.replace(byte, escape)
    return data


class Demultiplexer:
    """Takes the daemon's framing off an attached stream."""

    def __init__(self) -> None:
        self._header = b""
        self._left = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yields the payloads in what came next, whole or in parts."""
        while data:
            if self._left:
                part, data = data[: self._left], data[self._left :]
                self._left -= len(part)
                yield part
                continue
            missing = _HEADER_BYTES - len(self._header)
            self._header, data = self._header + data[:missing], data[missing:]
            if len(self._header) == _HEADER_BYTES:
                self._left = int.from_bytes(self._header[4:], "big")
                self._header = b""


@dataclass(slots=True)
class Answer:
    """An answer that is still coming in.

    Attributes:
        nonce: Of the request. Nothing before the line that it begins is taken for output, so that
            what an earlier command may have forged is lost and confuses nobody.
        output: Takes what the command prints.
        numbers: Exit code, leftovers and processes out of memory; empty until all has come.
    """

    nonce: bytes
    output: BoundedOutput
    numbers: tuple[int, ...] = ()
    _pending: bytes = b""
    _has_begun: bool = field(default=False)

    def add(self, data: bytes) -> None:
        """Takes the next bytes of the stream.

        Raises:
            ValueError: They are nonsense.
        """
        if self.numbers:
            return
        self._pending += data
        if not self._has_begun:
            self._begin()
        if self._has_begun:
            self._go_on()

    def _begin(self) -> None:
        before, mark, rest = self._pending.partition(b"%b begin\n" % self.nonce)
        self._has_begun = bool(mark)
        self._pending = rest if mark else before[-_MAX_LINE_BYTES:]

    def _go_on(self) -> None:
        before, mark, line = self._pending.partition(self.nonce)
        if not mark:
            keep = len(self.nonce) - 1
            self.output.add(before[:-keep])
            self._pending = before[-keep:]
            return
        self.output.add(before)
        self._pending = mark + line
        line, is_whole, _ = line.partition(b"\n")
        if is_whole:
            word, *numbers = line.split()
            if word != b"end" or len(numbers) != _NUM_FIELDS - 1:
                raise ValueError(f"the container answered {line!r}")
            self.numbers = tuple(int(number) for number in numbers)
        elif len(line) > _MAX_LINE_BYTES:
            raise ValueError(f"the container answered {line[:_MAX_LINE_BYTES]!r}")
