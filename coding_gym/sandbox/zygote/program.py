"""A list of system calls as plain numbers, and the loop that makes them."""

import ctypes
import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.steps import SetupError, step

FUNCTION = -1
ANY_ERROR = -1
# Its number, what it must give, its place in the list, six arguments.
_CALL = struct.Struct("9q")
_NUM_ARGUMENTS = 6
_WORD_BYTES = 8


@dataclass(frozen=True, slots=True)
class Call:
    """One system call.

    Attributes:
        step: What it is part of.
        text: The call in words.
        number: That of the call; `FUNCTION` where a function is called instead.
        gives: What it returns when all is well.
        tolerates: An error number that is well too, or `ANY_ERROR`; 0 for none.
        arguments: Numbers, and bytes where the call wants the address of such.
        function: What is called instead.
    """

    step: str
    text: str
    number: int
    gives: int
    tolerates: int
    arguments: tuple[int | bytes, ...]
    function: Callable[[], object] | None = None

    def do(self) -> None:
        """Calls the function."""
        if self.function is not None:
            with step(self.step):
                self.function()

    def settle(self, result: int) -> None:
        """Sees to a result that is not what the call gives when all is well.

        Raises:
            SetupError: It is not an error that is well too.
        """
        if result >= 0:
            raise SetupError(self.step, 0, f"{self.text} gave {result}, not {self.gives}")
        code = ctypes.get_errno()
        if self.tolerates not in (code, ANY_ERROR):
            raise SetupError(self.step, code, f"[Errno {code}] {os.strerror(code)} ({self.text})")


class Program:
    """System calls, to be made in the process that made this object or in clones of it."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = tuple(calls)
        data, places = _joined(calls)
        self._data = ctypes.create_string_buffer(data, len(data) + 1)
        start = ctypes.addressof(self._data)
        records = []
        for index, call in enumerate(calls):
            values = [start + places[a] if isinstance(a, bytes) else a for a in call.arguments]
            values += [0] * (_NUM_ARGUMENTS - len(values))
            records.append(_CALL.pack(call.number, call.gives, index, *values))
        self._records = b"".join(records)

    def run(self) -> None:
        """Makes the calls, one after the other.

        Raises:
            SetupError: One failed.
        """
        call = sc.call
        for number, gives, index, a, b, c, d, e, f in _CALL.iter_unpack(self._records):
            if number == FUNCTION:
                self._calls[index].do()
                continue
            result = call(number, a, b, c, d, e, f)
            if result != gives:
                self._calls[index].settle(result)


def _joined(calls: Sequence[Call]) -> tuple[bytes, dict[bytes, int]]:
    """Returns all bytes that are arguments as one, and where in it each of them begins."""
    data = bytearray()
    places: dict[bytes, int] = {}
    for call in calls:
        for argument in call.arguments:
            if isinstance(argument, bytes) and argument not in places:
                places[argument] = len(data)
                data += argument
                data += bytes(-len(data) % _WORD_BYTES)  # structures begin at words
    return bytes(data), places
