"""Inputs that stand for many files."""

from __future__ import annotations

import re
from collections.abc import Container
from pathlib import Path

_SIGNS = {"*": "[^/]*", "?": "[^/]"}


def is_pattern(path: str) -> bool:
    """Whether ``path`` stands for all files that match it."""
    return any(sign in path for sign in _SIGNS)


def matches(pattern: str, file: str) -> bool:
    """Whether ``pattern`` stands for ``file``."""
    return not _is_hidden(file) and _expression(pattern).fullmatch(file) is not None


def matching_files(pattern: str, folder: Path, but: Container[str] = ()) -> list[str]:
    """The files below ``folder`` that match now, by name, without those in ``but``."""
    top = pattern[: min(pattern.index(sign) for sign in _SIGNS if sign in pattern)]
    start = folder / top.rpartition("/")[0]
    files = (path.relative_to(folder).as_posix() for path in start.rglob("*") if path.is_file())
    return sorted(file for file in files if file not in but and matches(pattern, file))


def _is_hidden(file: str) -> bool:
    return any(part.startswith(".") for part in file.split("/"))


def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile("".join(_SIGNS.get(sign) or re.escape(sign) for sign in pattern))
