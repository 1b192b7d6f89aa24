"""Replaces install commands that no sandbox can run, because they need root or conda."""

import re
import shlex
from collections.abc import Iterable, Sequence

_NEEDS_ROOT = re.compile(
    r"""(^|[;&|(]|\b(then|do|else)\b|sh -\w*c\s+["'])\s*(\w+=\S*\s+)*"""
    r"(sudo|apt|apt-get|dpkg|yum|apk|conda|locale-gen)\s|locale-gen$|>\s*/(etc|usr)/",
    re.MULTILINE,
)
_SEPARATOR = re.compile(r"( && |\n)")
# Commands with brackets, comments, `;`, `||` or here documents stay whole.
_NOT_SPLIT = re.compile(r"[(){}`;#]|\|\||<<")


def without_root(commands: Iterable[str]) -> tuple[str, ...]:
    """Returns the commands; a command that needs root or conda becomes a line in the build log.

    If ``&&`` or line breaks join simple commands, only parts that need root or conda are replaced.
    """
    return tuple("".join(map(_replaced, _parts(command))) for command in commands)


def _parts(command: str) -> Sequence[str]:
    """Returns the simple commands and the separators between them."""
    parts = _SEPARATOR.split(command)
    try:
        for part in parts:
            shlex.split(part)
    except ValueError:  # a quotation contains the separator
        return (command,)
    return (command,) if _NOT_SPLIT.search(command) else parts


def _replaced(command: str) -> str:
    if not _NEEDS_ROOT.search(command):
        return command
    return f"echo {shlex.quote(f'excluded, needs root or conda: {command}')}"
