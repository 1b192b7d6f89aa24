"""Plays a debugger session again from its start, and says what the last commands gave.

No process outlives a call, so a session is the list of its commands: the program is run again under
pdb, every command but the last ones is played as before, and only what is new is told.
"""

# ruff: noqa: TID252, PTH109, SIM115, B905 - in the sandbox this package has another name

from __future__ import annotations

import hashlib
import os
import re
import signal
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from .debugged import run_program
from .debugger import Debugger
from .tree import Tree

if TYPE_CHECKING:
    from collections.abc import Callable

_HEAD, _TAIL = 6000, 3000  # bytes of one command's output
_VOLATILE = re.compile(rb"0x[0-9a-fA-F]+| in \d+\.\d+s")


def answer(request: dict[str, Any], reply: Callable[[Any], None]) -> None:
    """Plays a session and replies with what the new commands gave.

    Args:
        request: ``entry``, the program: ``kind`` and ``arguments``; ``old`` and ``new`` commands;
            ``digests`` of what the start and the old commands gave, "" for one that is known to
            vary; ``first``, the breakpoints set before the start, and ``current``, those there were
            at the end; ``fingerprint`` of the code then, "" for a new session; ``seconds`` that the
            program may take.
        reply: Takes ``how`` the session stands; ``outputs`` of the start, where it is new, and of
            the new commands; ``digests``; ``changed``, the numbers of commands that gave something
            else than before; ``consumed``, how many commands were read; ``breakpoints`` and those
            ``refused``; ``fingerprint``; ``restarted``, whether the code changed, so that the new
            commands were played alone.
    """
    fingerprint = _fingerprint()
    restarted = bool(request["fingerprint"]) and request["fingerprint"] != fingerprint
    if restarted:
        request.update(old=[], digests=[], first=request["current"])
    extra = {"fingerprint": fingerprint, "restarted": restarted}
    session = Session(request, lambda value: reply({**value, **extra}))
    signal.signal(signal.SIGALRM, lambda *_: session.end("late"))
    signal.setitimer(signal.ITIMER_REAL, request["seconds"])
    session.debugger.set_first(request["first"])
    run_program(request["entry"], session, session.debugger)
    session.end("ended")


def _fingerprint() -> str:
    """Returns what tells one state of the tree's Python from another."""
    digest = hashlib.sha256()
    for file in Tree(os.getcwd()).files():
        if file.language == "python":
            name = os.fsencode(file.path)
            digest.update(b"%d %s %d %s" % (len(name), name, len(file.data), file.data))
    return digest.hexdigest()[:16]


class Session:
    """The terminal of a debugger: commands come out of a list, and what is printed is kept.

    Args:
        request: What `answer` was asked.
        reply: Takes what is said at the end.
    """

    def __init__(self, request: dict[str, Any], reply: Callable[[Any], None]) -> None:
        self._commands: list[str] = [*request["old"], *request["new"]]
        self._num_old = len(request["old"])
        self._digests: list[str] = request["digests"]
        self._reply = reply
        self._log = tempfile.TemporaryFile()
        self._ends: list[int] = []  # of what the start and each command printed
        self._pid = os.getpid()
        self.debugger = Debugger(self, os.getcwd())
        for number in (1, 2):
            os.dup2(self._log.fileno(), number)
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]

    def readline(self) -> str:
        """Returns the next command; where there is none left, the session is told of and ends."""
        if os.getpid() != self._pid:  # a child of the program has nobody to talk to
            return "continue\n"
        if len(self._ends) == len(self._commands):
            self.end("stopped")
        self._mark()
        return self._commands[len(self._ends) - 1] + "\n"

    def write(self, text: str) -> int:
        """Prints what the debugger says among what the program prints."""
        _flush()
        os.write(self._log.fileno(), text.encode("utf-8", "backslashreplace"))
        return len(text)

    def begin_line(self) -> None:
        """Ends the line that the program has begun, if any."""
        _flush()
        size = os.fstat(self._log.fileno()).st_size
        if size and os.pread(self._log.fileno(), 1, size - 1) != b"\n":
            self.write("\n")

    def flush(self) -> None:
        """Does nothing: nothing is kept back."""

    def end(self, how: str) -> None:
        """Tells of the session and ends this process.

        Args:
            how: ``stopped`` where the program waits for a command, ``ended`` where it did, ``late``
                where it did not come back.
        """
        if os.getpid() != self._pid:
            os._exit(0)
        consumed = len(self._ends)
        self._mark()
        outputs = [self._output(number) for number in range(len(self._ends))]
        digests = [hashlib.sha256(_VOLATILE.sub(b"", o)).hexdigest()[:16] for o in outputs]
        pairs = zip(digests, self._digests)
        first_new = min(self._num_old + 1 if self._digests else 0, len(outputs) - 1)
        self._reply(
            {
                "how": how,
                "outputs": [o.decode("utf-8", "replace") for o in outputs[first_new:]],
                "digests": digests,
                "changed": [n for n, (now, then) in enumerate(pairs) if then and now != then],
                "consumed": consumed,
                "breakpoints": self.debugger.listed(),
                "refused": self.debugger.refused,
            }
        )

    def _mark(self) -> None:
        _flush()
        self._ends.append(os.fstat(self._log.fileno()).st_size)

    def _output(self, number: int) -> bytes:
        start, end = self._ends[number - 1] if number else 0, self._ends[number]
        size = end - start
        if size <= _HEAD + _TAIL:
            return os.pread(self._log.fileno(), size, start)
        head = os.pread(self._log.fileno(), _HEAD, start)
        tail = os.pread(self._log.fileno(), _TAIL, end - _TAIL)
        return b"%s\n[... %d bytes left out ...]\n%s" % (head, size - _HEAD - _TAIL, tail)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # noqa: BLE001, S112 - the program may have put anything there
            continue
