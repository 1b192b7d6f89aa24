"""Describes the visible part of a failure: the exception, its frames, and the used names."""

from __future__ import annotations

import inspect
import os
import re
import sys
import types
from typing import Any

_TEMPORARY = re.compile(r"/tmp/pytest-of-[^/]+/pytest-\d+")  # noqa: S108 - a pattern, not a file
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
_MAX_MESSAGE = 1500
_MAX_FRAMES = 60
_MAX_USES = 20


def describe(excinfo: Any, root: str) -> dict[str, Any]:
    """Returns one failure as JSON.

    Args:
        excinfo: Pytest's description of the exception.
        root: The project's folder, with a slash at its end.

    Returns:
        ``kind``: the exception's name; ``message``; ``frames``: of the project and its tests, the
        outermost first, each a path, line and function; ``uses``: path and name of classes and
        functions of the project that the outermost of these frames uses.
    """
    frames: list[tuple[str, int, str]] = []
    uses: list[tuple[str, str]] = []
    entry = excinfo.tb
    while entry is not None:
        code = entry.tb_frame.f_code
        name = os.path.realpath(code.co_filename)
        if name.startswith(root) and not code.co_filename.startswith("<"):
            uses = uses if frames else _uses(entry.tb_frame, root)
            function = getattr(code, "co_qualname", code.co_name)
            frames.append((name[len(root) :], entry.tb_lineno, function))
        entry = entry.tb_next
    return {
        "kind": excinfo.typename,
        "message": _scrubbed(excinfo.value, root),
        "frames": frames[:_MAX_FRAMES],
        "uses": uses[:_MAX_USES],
    }


def _scrubbed(value: BaseException, root: str) -> str:
    try:
        text = str(value)
    except Exception as problem:  # noqa: BLE001 - a broken program's own __str__ may raise anything
        text = f"({type(problem).__name__} while it was printed)"
    text = _ADDRESS.sub("0x…", text.replace(root, ""))
    text = _TEMPORARY.sub("/tmp", text)  # noqa: S108
    return text.encode("utf-8", "replace").decode()[:_MAX_MESSAGE]


def _uses(frame: types.FrameType, root: str) -> list[tuple[str, str]]:
    names = frame.f_code.co_names
    values = [frame.f_globals.get(name) for name in names]
    owners: list[Any] = [value for value in values if isinstance(value, types.ModuleType)]
    owners.append(type(frame.f_locals.get("self")))
    values += [inspect.getattr_static(owner, name, None) for owner in owners for name in names]
    values += [type(value) for value in frame.f_locals.values()]
    uses: dict[tuple[str, str], None] = {}
    for value in values:
        if isinstance(value, (type, types.FunctionType)):
            module = sys.modules.get(str(value.__module__))
            file = os.path.realpath(str(getattr(module, "__file__", "")))
            if file.startswith(root):
                uses[file[len(root) :], value.__name__] = None
    return list(uses)
