"""Records executed lines."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


class LineTracer:
    """Records executed lines as keys ``(file name, line)`` of a dict, in order of their first run.

    Args:
        wants: Takes the name of a file, and returns whether its lines are recorded.
    """

    def __init__(self, wants: Callable[[str], bool]) -> None:
        self._wants = wants
        self._known: dict[str, bool] = {}
        self._lines: dict[tuple[str, int], None] = {}

    def collect_into(self, lines: dict[tuple[str, int], None]) -> None:
        """Adds every line that runs from now on to ``lines``; starts tracing if necessary."""
        self._lines = lines
        if sys.gettrace() != self._on_call:  # a test has set another trace function
            threading.settrace(self._on_call)
            sys.settrace(self._on_call)

    def _is_wanted(self, name: str) -> bool:
        is_traced = self._known.get(name)
        if is_traced is None:
            is_traced = self._known[name] = self._wants(name)
        return is_traced

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        del event, argument
        return self._on_line if self._is_wanted(frame.f_code.co_filename) else None

    def _on_line(self, frame: FrameType, event: str, argument: Any) -> Any:
        del argument
        if event == "line":
            self._lines.setdefault((frame.f_code.co_filename, frame.f_lineno))
        return self._on_line
