"""Which lines of the program run, test by test."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType


class Tracer:
    """Collects executed lines into whatever set is current.

    Uses ``sys.monitoring`` where it exists (3.12), where each line reports once per set, and
    ``sys.settrace`` before.

    Args:
        wants: Tells by file name whether a file's lines are collected.
    """

    def __init__(self, wants: Callable[[str], bool]) -> None:
        self._wants = wants
        self._known: dict[str, bool] = {}
        self._lines: set[tuple[str, int]] | None = None
        self._tool = -1

    def start(self) -> None:
        """Begins to trace; nothing is collected before `collect_into`."""
        if sys.version_info >= (3, 12):
            self._start_monitoring()
        else:
            threading.settrace(self._on_call)
            sys.settrace(self._on_call)

    def stop(self) -> None:
        """Ends tracing."""
        self._lines = None
        if sys.version_info >= (3, 12):
            if self._tool >= 0:
                sys.monitoring.set_events(self._tool, 0)
                sys.monitoring.free_tool_id(self._tool)
                self._tool = -1
        else:
            sys.settrace(None)
            threading.settrace(None)

    def collect_into(self, lines: set[tuple[str, int]]) -> None:
        """Adds every line that runs from now on to ``lines``."""
        self._lines = lines
        if sys.version_info >= (3, 12):
            if self._tool >= 0:
                sys.monitoring.restart_events()
        elif sys.gettrace() is not self._on_call:  # a test may have put its own in place
            sys.settrace(self._on_call)

    def _is_wanted(self, name: str) -> bool:
        wanted = self._known.get(name)
        if wanted is None:
            wanted = self._known[name] = self._wants(name)
        return wanted

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        del event, argument
        return self._on_line if self._is_wanted(frame.f_code.co_filename) else None

    def _on_line(self, frame: FrameType, event: str, argument: Any) -> Any:
        del argument
        if event == "line" and self._lines is not None:
            self._lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._on_line

    if sys.version_info >= (3, 12):

        def _start_monitoring(self) -> None:
            monitoring = sys.monitoring
            free = [i for i in (3, 4, 1, 5, 0, 2) if monitoring.get_tool(i) is None]
            self._tool = free[0]
            monitoring.use_tool_id(self._tool, "template-repair")
            monitoring.register_callback(self._tool, monitoring.events.LINE, self._on_event)
            monitoring.set_events(self._tool, monitoring.events.LINE)

        def _on_event(self, code: CodeType, line: int) -> Any:
            if self._lines is not None and self._is_wanted(code.co_filename):
                self._lines.add((code.co_filename, line))
            return sys.monitoring.DISABLE
