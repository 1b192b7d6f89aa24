"""Puts a changed function into modules that are already imported.

Importing a program and collecting its tests takes most of the time of a short test run. An edit
inside one function needs neither: the function is compiled alone and its code object replaced.
"""

from __future__ import annotations
import __future__

import gc
import sys
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any


class HotPatcher:
    """Replaces code of the functions of imported modules.

    Args:
        imported: The lines, by file name, that ran while modules were imported. A function that
            ran then may have left something behind, so it is not patched.
    """

    def __init__(self, imported: dict[str, set[int]]) -> None:
        self._imported = imported
        self._texts: dict[str, str] = {}
        self._files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        self._live: dict[tuple[str, str, int], list[FunctionType]] = {}
        for found in gc.get_objects():
            if type(found) is FunctionType:
                code = found.__code__
                key = (code.co_filename, code.co_name, code.co_firstlineno)
                self._live.setdefault(key, []).append(found)

    def changes(
        self, units: list[dict[str, Any]], edits: list[Any]
    ) -> list[tuple[FunctionType, CodeType]] | None:
        """Returns the live functions that edits change, each with its new code.

        Args:
            units: The functions that hold the edits, none where an edit lies elsewhere. Each has
                its file's ``name``, ``function`` and ``classes`` around it, offsets ``start`` and
                ``end`` of its lines, ``line`` (of the first decorator), ``body_line`` and
                ``last_line``.
            edits: Each a file name, start, end and new text.

        Returns:
            None where the change needs a fresh import; empty where the files were not imported yet.
        """
        if not self._files.intersection(edit[0] for edit in edits):
            return []
        found = []
        for unit in units:
            inside = [
                edit
                for edit in edits
                if edit[0] == unit["name"] and unit["start"] <= edit[1] < unit["end"]
            ]
            changes = self._changes_of_one(unit, inside)
            if not changes:
                return None
            found += changes
        return found or None

    def _changes_of_one(
        self, unit: dict[str, Any], edits: list[Any]
    ) -> list[tuple[FunctionType, CodeType]]:
        ran = self._imported.get(unit["name"], set())
        if any(line in ran for line in range(unit["body_line"], unit["last_line"] + 1)):
            return []
        try:
            code = self._compile(unit, edits)
        except (SyntaxError, ValueError):
            return []
        live = self._live.get((unit["name"], unit["function"], unit["line"]), [])
        if code is None or any(f.__code__.co_freevars != code.co_freevars for f in live):
            return []
        return [(found, code) for found in live]

    def _compile(self, unit: dict[str, Any], edits: list[Any]) -> CodeType | None:
        name, classes = unit["name"], unit["classes"]
        whole = self._text(name)
        text = whole[unit["start"] : unit["end"]]
        for _, start, end, new in sorted(edits, key=lambda edit: -edit[1]):
            text = text[: start - unit["start"]] + new + text[end - unit["start"] :]
        # Classes around the function keep `super()` and private names what they are.
        header = "".join(f"{' ' * depth}class {c}:\n" for depth, c in enumerate(classes))
        blank = "\n" * (unit["line"] - 1 - len(classes))
        flags = 0
        if "from __future__ import annotations" in whole:
            flags = __future__.annotations.compiler_flag
        code = compile(blank + header + text, name, "exec", flags=flags, dont_inherit=True)
        found: CodeType | None = code
        for wanted in [*classes, unit["function"]]:
            inner = found.co_consts if found is not None else ()
            found = next((c for c in inner if type(c) is CodeType and c.co_name == wanted), None)
        return found

    def _text(self, name: str) -> str:
        if name not in self._texts:
            self._texts[name] = Path(name).read_bytes().decode("utf-8")
        return self._texts[name]
