"""Describes a failure for an issue: the exception, its frames, and the names that they use."""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
import types
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TEMPORARY = re.compile(r"/tmp/pytest-of-[^/]+/pytest-\d+")  # noqa: S108 - a pattern, not a file
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
_MAX_MESSAGE = 1500
_MAX_FRAMES = 60
_MAX_USES = 20
_MAX_ATTRIBUTES = 100

_real_path = functools.lru_cache(None)(os.path.realpath)  # Python 3.8 has no `cache`


def describe(error: BaseException, root: str) -> dict[str, Any]:
    """Returns one failure as JSON.

    Args:
        error: The exception.
        root: The project's folder, with a slash at its end.

    Returns:
        ``kind``: the exception's name; ``message``; ``frames``: path, line and function of the
        frames in the project and its tests, the outermost first; ``uses``: path and name of
        methods, classes and functions of the project that these frames use.
    """
    frames: list[tuple[str, int, str]] = []
    uses: dict[tuple[str, str], None] = {}
    seen: set[int] = set()  # ids of code objects; a recursion has many frames of the same code
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        name = _real_path(code.co_filename)
        if name.startswith(root) and not code.co_filename.startswith("<"):
            if id(code) not in seen and len(uses) < _MAX_USES:
                seen.add(id(code))
                uses.update(dict.fromkeys(islice(_uses(traceback.tb_frame, root), _MAX_USES)))
            if len(frames) < _MAX_FRAMES:
                function = getattr(code, "co_qualname", code.co_name)  # qualified since Python 3.11
                frames.append((name[len(root) :], traceback.tb_lineno, function))
        traceback = traceback.tb_next
    return {
        "kind": type(error).__name__,
        "message": _scrubbed(error, root),
        "frames": frames,
        "uses": list(uses)[:_MAX_USES],
    }


def _scrubbed(value: BaseException, root: str) -> str:
    try:
        text = str(value)
    except Exception as problem:  # noqa: BLE001 - the program's `__str__` can raise anything
        text = f"({type(problem).__name__} while it was printed)"
    text = _ADDRESS.sub("0x…", text.replace(root, ""))
    text = _TEMPORARY.sub("/tmp", text)  # noqa: S108
    return text.encode("utf-8", "replace").decode()[:_MAX_MESSAGE]


def _attributes(value: object) -> Iterable[object]:
    """Returns the values of an object's attributes; () if the program's ``__dict__`` raises."""
    try:
        return islice(dict.values(vars(value)), _MAX_ATTRIBUTES)
    except Exception:  # noqa: BLE001 - the program's `__dict__` can raise anything
        return ()


def _uses(frame: types.FrameType, root: str) -> Iterator[tuple[str, str]]:
    names = frame.f_code.co_names
    values = [frame.f_globals.get(name) for name in names]
    values += [*frame.f_locals.values(), *_attributes(frame.f_locals.get("self"))]
    modules = [value for value in values if isinstance(value, types.ModuleType)]
    values += [inspect.getattr_static(module, name, None) for module in modules for name in names]
    for value in values:
        is_named = isinstance(value, (type, types.FunctionType))
        owner: Any = value if is_named else type(value)
        module = sys.modules.get(str(owner.__module__))
        file = _real_path(str(getattr(module, "__file__", "")))
        if file.startswith(root):
            members = [f"{owner.__name__}.{name}" for name in names if _is_method(owner, name)]
            yield from ((file[len(root) :], name) for name in members or [owner.__name__])


def _is_method(owner: Any, name: str) -> bool:
    return isinstance(owner, type) and isinstance(
        inspect.getattr_static(owner, name, None),
        (types.FunctionType, classmethod, staticmethod, property),
    )
