"""Candidates' edits in the files of the private copy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType


def write_edits(edits: list[Any]) -> None:
    """Makes edits: each a file name, start, end and new text, by offsets in the file as it is."""
    for name, start, end, new in sorted(edits, key=lambda edit: -edit[1]):
        path = Path(name)
        text = path.read_bytes().decode("utf-8")
        path.write_bytes((text[:start] + new + text[end:]).encode("utf-8"))


class Written:
    """Files with edits in them for as long as the context lasts.

    Each candidate's files get a time of their own, so that no stale bytecode is taken for them.
    """

    def __init__(self, edits: list[Any], index: int) -> None:
        self._edits = edits
        self._index = index
        self._before: dict[Path, tuple[bytes, int]] = {}

    def __enter__(self) -> None:
        for path in {Path(edit[0]) for edit in self._edits}:
            self._before[path] = (path.read_bytes(), path.stat().st_mtime_ns)
        write_edits(self._edits)
        for path, (_, time_ns) in self._before.items():
            changed = time_ns + (self._index + 1) * 1_000_000_000
            os.utime(path, ns=(changed, changed))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for path, (data, time_ns) in self._before.items():
            path.write_bytes(data)
            os.utime(path, ns=(time_ns, time_ns))
