"""Pdb as a session uses it: breakpoints carried over, stacks that begin in the workspace."""

# ruff: noqa: PTH118 - the program under test sees what is imported

from __future__ import annotations

import bdb
import linecache
import os
import pdb
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

_MAX_BREAKPOINTS = 50
_MACHINERY = ["importlib._bootstrap", "importlib._bootstrap_external"]  # stepped over


class Debugger(pdb.Pdb):
    """Pdb on a session's terminal.

    Args:
        session: The terminal: ``readline``, ``write``, ``flush`` and ``end``.
        root: The workspace.

    Attributes:
        goes_on: Whether the first stop, before anything has run, is passed over.
        refused: Breakpoints of the start that could not be set, and why.
    """

    def __init__(self, session: Any, root: str) -> None:
        super().__init__(
            stdin=session, stdout=session, nosigint=True, readrc=False, skip=_MACHINERY
        )
        self.prompt = ""
        self.goes_on = False
        self.refused: list[str] = []
        self._session = session
        self._root = root

    def set_first(self, breakpoints: list[dict[str, Any]]) -> None:
        """Sets the breakpoints that there are before the program starts."""
        for wanted in breakpoints:
            file = os.path.join(self._root, wanted["file"])
            problem = self.set_break(
                file, wanted["line"], wanted["temporary"], wanted["condition"] or None
            )
            if problem:
                self.refused.append(f"{wanted['file']}:{wanted['line']}: {problem}")
            elif not wanted["enabled"]:
                self.get_breaks(file, wanted["line"])[-1].disable()

    def listed(self) -> list[dict[str, Any]]:
        """Returns the breakpoints as `set_first` takes them, with the code of their lines."""
        found = [point for point in bdb.Breakpoint.bpbynumber if point is not None]
        return [
            {
                "file": os.path.relpath(p.file, self._root) if self._is_own(p.file) else p.file,
                "line": p.line,
                "condition": str(p.cond or ""),
                "enabled": bool(p.enabled),
                "temporary": bool(p.temporary),
                "text": linecache.getline(p.file, p.line).strip()[:160],
            }
            for p in found[:_MAX_BREAKPOINTS]
        ]

    def user_line(self, frame: FrameType) -> None:
        """Stops at a line, save at the one before all others where that is to be passed over."""
        if self.goes_on:
            self.goes_on = False
            self.set_continue()
        else:
            super().user_line(frame)

    def print_stack_entry(self, *arguments: Any, **named: Any) -> None:
        """Prints where the program stands, on a line of its own."""
        self._session.begin_line()
        super().print_stack_entry(*arguments, **named)

    def get_stack(self, f: Any, t: Any) -> Any:
        """Returns the stack from its first frame in the workspace, after a failure at the last."""
        stack, index = super().get_stack(f, t)
        own = [i for i, (frame, _) in enumerate(stack) if self._is_own(frame.f_code.co_filename)]
        if not own:
            return stack, index
        if t is not None:
            index = own[-1]
        return stack[own[0] :], index - own[0]

    def do_quit(self, arg: str) -> Any:
        """Ends the program."""
        del arg
        self.message("The program was ended.")
        self._session.end("ended")

    do_q = do_exit = do_EOF = do_quit  # noqa: N815 - pdb's names

    def do_run(self, arg: str) -> Any:
        """Says how the program is started anew."""
        del arg
        self.error("`restart` must be the first word of a call")

    do_restart = do_run

    def post_mortem(self, traceback: Any) -> None:
        """Stops where an exception was raised."""
        self.reset()
        self.interaction(None, traceback)

    def _is_own(self, name: str) -> bool:
        return name.startswith(self._root + os.sep) and "site-packages" not in name
