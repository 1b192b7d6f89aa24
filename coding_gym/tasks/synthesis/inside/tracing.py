"""Which lines of the project run, test by test."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import CodeType, FrameType

_TOOL = 3  # one of those that no tool of Python's own uses


class Tracer:
    """Collects executed lines of files below a folder into whatever set is current.

    Uses ``sys.monitoring`` where it exists (3.12), and ``sys.settrace`` before.

    Args:
        root: The folder, with a slash at its end.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._lines: set[tuple[str, int]] = set()

    def collect_into(self, lines: set[tuple[str, int]]) -> None:
        """Adds every line that runs from now on to ``lines``."""
        self._lines = lines
        if sys.version_info >= (3, 12):
            self._monitor()
        else:
            threading.settrace(self._on_call)
            sys.settrace(self._on_call)  # again each time: a test may have put its own in place

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        del event, argument
        return self._on_line if frame.f_code.co_filename.startswith(self._root) else None

    def _on_line(self, frame: FrameType, event: str, argument: Any) -> Any:
        del argument
        if event == "line":
            self._lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._on_line

    if sys.version_info >= (3, 12):

        def _monitor(self) -> None:
            monitoring = sys.monitoring
            if monitoring.get_tool(_TOOL) is None:
                monitoring.use_tool_id(_TOOL, "task-synthesis")
                monitoring.register_callback(_TOOL, monitoring.events.LINE, self._on_event)
                monitoring.set_events(_TOOL, monitoring.events.LINE)
            monitoring.restart_events()

        def _on_event(self, code: CodeType, line: int) -> Any:
            if code.co_filename.startswith(self._root):
                self._lines.add((code.co_filename, line))
            return sys.monitoring.DISABLE
