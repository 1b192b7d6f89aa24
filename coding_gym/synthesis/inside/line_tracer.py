"""Notes which lines run."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType


class LineTracer:
    """Notes executed lines as keys ``(file name, line)`` of a dict, in order of their first run.

    Uses ``sys.monitoring`` where it exists (3.12), where each line reports once per dict, and
    ``sys.settrace`` before.

    Args:
        wants: Tells by file name whether a file's lines are noted.
    """

    def __init__(self, wants: Callable[[str], bool]) -> None:
        self._wants = wants
        self._known: dict[str, bool] = {}
        self._lines: dict[tuple[str, int], None] = {}
        self._tool = -1

    def collect_into(self, lines: dict[tuple[str, int], None]) -> None:
        """Adds every line that runs from now on to ``lines``; begins to trace where needed."""
        self._lines = lines
        if sys.version_info >= (3, 12):
            self._monitor()
        elif sys.gettrace() != self._on_call:  # a test may have put its own in place
            threading.settrace(self._on_call)
            sys.settrace(self._on_call)

    def stop(self) -> None:
        """Ends tracing."""
        self._lines = {}
        if sys.version_info < (3, 12):
            sys.settrace(None)
            threading.settrace(None)
        elif self._tool >= 0:
            sys.monitoring.set_events(self._tool, 0)
            sys.monitoring.free_tool_id(self._tool)
            self._tool = -1

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
        if event == "line":
            self._lines.setdefault((frame.f_code.co_filename, frame.f_lineno))
        return self._on_line

    if sys.version_info >= (3, 12):

        def _monitor(self) -> None:
            monitoring = sys.monitoring
            if self._tool < 0:
                self._tool = next(i for i in (3, 4, 1, 5, 0, 2) if monitoring.get_tool(i) is None)
                monitoring.use_tool_id(self._tool, "line-tracer")
                monitoring.register_callback(self._tool, monitoring.events.LINE, self._on_event)
                monitoring.set_events(self._tool, monitoring.events.LINE)
            monitoring.restart_events()

        def _on_event(self, code: CodeType, line: int) -> Any:
            if self._is_wanted(code.co_filename):
                self._lines.setdefault((code.co_filename, line))
            return sys.monitoring.DISABLE
