"""What somebody who hits a failure sees: the exception, the calls that led to it, the arguments."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

_TEMPORARY = re.compile(r"/tmp/pytest-of-[^/]+/pytest-\d+")  # noqa: S108 - a text, no file
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
_MAX_MESSAGE = 1500
_MAX_REPR = 300
_MAX_FRAMES = 60
_PLAIN = (str, bytes, int, float, bool, type(None))


def describe(item: Any, excinfo: Any, when: str, root: str) -> dict[str, Any]:
    """Returns what one failure looks like, as JSON.

    Args:
        item: The test.
        excinfo: Pytest's description of the exception.
        when: The phase: ``setup``, ``call`` or ``teardown``.
        root: The project's folder, with a slash at its end.

    Returns:
        ``kind``: the exception's name; ``message``; ``frames``: of the project and its tests, the
        outermost first, each a path, line and function; ``when``; ``values``: arguments of the
        test that are plain, as Python text; ``owner``: by attribute of the test's object, the
        module and name of the class that it is, with a dot between.
    """
    frames = []
    entry = excinfo.tb
    while entry is not None:
        code = entry.tb_frame.f_code
        name = os.path.realpath(code.co_filename)
        if name.startswith(root) and not code.co_filename.startswith("<"):
            function = getattr(code, "co_qualname", code.co_name)
            frames.append([name[len(root) :], entry.tb_lineno, function])
        entry = entry.tb_next
    return {
        "kind": excinfo.typename,
        "message": _scrubbed(excinfo.value, root),
        "frames": frames[:_MAX_FRAMES],
        "when": when,
        "values": _values(item),
        "owner": _owner(item),
    }


def _scrubbed(value: BaseException, root: str) -> str:
    try:
        text = str(value)
    except Exception as problem:  # noqa: BLE001 - a broken program's own __str__ may raise anything
        text = f"({type(problem).__name__} while it was printed)"
    text = _ADDRESS.sub("0x…", text.replace(root, ""))
    text = _TEMPORARY.sub("/tmp", text)  # noqa: S108
    return text.encode("utf-8", "replace").decode()[:_MAX_MESSAGE]


def _values(item: Any) -> dict[str, str]:
    found = {}
    for name, value in sorted(dict(getattr(item, "funcargs", None) or {}).items()):
        is_own = name.startswith("_")  # pytest's, for `unittest`
        if not is_own and _is_plain(value) and len(text := repr(value)) <= _MAX_REPR:
            found[name] = text
    return found


def _is_plain(value: Any, depth: int = 0) -> bool:
    if isinstance(value, (list, tuple)) and depth < 3:
        return all(_is_plain(one, depth + 1) for one in value)
    if type(value) is dict and depth < 3:
        return all(_is_plain(one, depth + 1) for pair in value.items() for one in pair)
    return type(value) in _PLAIN


def _owner(item: Any) -> dict[str, str]:
    owner = getattr(item, "cls", None)
    found = {}
    for base in reversed(getattr(owner, "__mro__", ())):
        for name, value in vars(base).items():
            if isinstance(value, type) and not name.startswith("__"):
                found[name] = _path(value)
    return found


def _path(owned: type) -> str:
    """Where a class can be imported from; its name alone where it cannot."""
    name = owned.__name__
    module = sys.modules.get(str(owned.__module__))
    return f"{owned.__module__}.{name}" if getattr(module, name, None) is owned else name
