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
from typing import Any, NamedTuple


class Change(NamedTuple):
    """A live function and what it becomes.

    Attributes:
        function: The function.
        code: Its new code.
        definition: The code of its ``def`` statement where the signature changes, else None.
        names: How to get from the definition's names to the function: classes, then its own.
    """

    function: Any
    code: CodeType
    definition: CodeType | None
    names: list[str]

    def make(self) -> None:
        """Changes the function; the statement's defaults are evaluated in its own module.

        Raises:
            NameError: A default needs a name of the class around the function.
        """
        if self.definition is not None:
            namespace = dict(self.function.__globals__)
            exec(self.definition, namespace)  # noqa: S102 - a candidate, in a child of its own
            new = namespace[self.names[0]]
            for name in self.names[1:]:
                new = vars(new)[name]
            self.function.__defaults__ = new.__defaults__
            self.function.__kwdefaults__ = new.__kwdefaults__
        self.function.__code__ = self.code


class HotPatcher:
    """Finds what edits change in the functions of imported modules.

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

    def changes(self, units: list[dict[str, Any]], edits: list[Any]) -> list[Change] | None:
        """Returns what edits change.

        Args:
            units: The functions that hold the edits, none where an edit lies elsewhere; as
                `coding_gym.repair.units` describes them, with their file's ``name``.
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

    def _changes_of_one(self, unit: dict[str, Any], edits: list[Any]) -> list[Change]:
        ran = self._imported.get(unit["name"], set())
        if any(line in ran for line in range(unit["body_line"], unit["last_line"] + 1)):
            return []
        try:
            definition = self._compile(unit, edits)
        except (SyntaxError, ValueError):
            return []
        names = [*unit["classes"], unit["function"]]
        code = _inner_code(definition, names)
        live = self._live.get((unit["name"], unit["function"], unit["line"]), [])
        if code is None or any(f.__code__.co_freevars != code.co_freevars for f in live):
            return []
        is_signature = any(edit[1] < unit["body_start"] for edit in edits)
        return [Change(f, code, definition if is_signature else None, names) for f in live]

    def _compile(self, unit: dict[str, Any], edits: list[Any]) -> CodeType:
        name, classes = unit["name"], unit["classes"]
        if name not in self._texts:
            self._texts[name] = Path(name).read_bytes().decode("utf-8")
        whole = self._texts[name]
        text = whole[unit["start"] : unit["end"]]
        for _, start, end, new in sorted(edits, key=lambda edit: -edit[1]):
            text = text[: start - unit["start"]] + new + text[end - unit["start"] :]
        # Classes around the function keep `super()` and private names what they are.
        header = "".join(f"{' ' * depth}class {c}:\n" for depth, c in enumerate(classes))
        blank = "\n" * (unit["def_line"] - 1 - len(classes))
        flags = 0
        if "from __future__ import annotations" in whole:
            flags = __future__.annotations.compiler_flag
        code: CodeType = compile(blank + header + text, name, "exec", flags, dont_inherit=True)
        return code


def _inner_code(code: CodeType | None, names: list[str]) -> CodeType | None:
    for name in names:
        inner = code.co_consts if code is not None else ()
        code = next((c for c in inner if type(c) is CodeType and c.co_name == name), None)
    return code
