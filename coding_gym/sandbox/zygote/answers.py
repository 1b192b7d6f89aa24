"""What a shell that lives on says at the end of a command."""

import os

_READ_BYTES = 1 << 16


class Answer:
    """The end of one command, as a shell that lives on says it.

    Args:
        descriptor: Where the shell says it, not blocking.
        label: What it begins with. Everything else on the descriptor is that of another command,
            or forged.

    Attributes:
        exit_code: What it said; None before that.
        is_possible: False when nobody can say anything any more.
    """

    def __init__(self, descriptor: int, label: bytes) -> None:
        self.descriptor = descriptor
        self.exit_code: int | None = None
        self.is_possible = True
        self._start = label + b"x"
        self._seen = b""

    def read(self) -> bool:
        """Takes one chunk; True when the answer is there."""
        try:
            chunk = os.read(self.descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        self.is_possible = bool(chunk)
        self._seen += chunk
        code, ending, _ = self._seen.partition(self._start)[2].partition(b"\n")
        if ending and code.isdigit():
            self.exit_code = int(code[:4]) & 0xFF
        self._seen = self._seen[-(len(self._start) + 8) :]
        return self.exit_code is not None
