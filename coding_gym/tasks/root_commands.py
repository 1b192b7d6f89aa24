"""Replaces install commands that no sandbox can run, because they need root or conda."""

import re
import shlex
from collections.abc import Iterable, Sequence

# The last pattern is an assignment: it has no effect, as each command runs in its own shell.
_NEEDS_ROOT = re.compile(
    r"(^|[;&|]\s*)(\w+=\S*\s+)*(sudo|apt|apt-get|dpkg|yum|apk|conda|locale-gen)\s"
    r"|locale-gen$|>\s*/(etc|usr)/|^\w+=\S*$"
)
# Commands with brackets, several lines, comments, `||` or variables stay whole.
_NOT_SPLIT = re.compile(r"[(){}`\n;#]|\|\||(^|&& )\w+=\S*(?= &&)")


def without_root(commands: Iterable[str]) -> tuple[str, ...]:
    """Returns the commands; a command that needs root or conda becomes a line in the build log.

    If ``&&`` joins simple commands, only the parts that need root or conda are replaced.
    """
    return tuple(" && ".join(map(_replaced, _parts(command))) for command in commands)


def _parts(command: str) -> Sequence[str]:
    parts = command.split(" && ")
    try:
        for part in parts:
            shlex.split(part)
    except ValueError:  # a quotation contains the separator
        return (command,)
    return (command,) if _NOT_SPLIT.search(command) else parts


def _replaced(command: str) -> str:
    if not _NEEDS_ROOT.search(command):
        return command
    return f"echo {shlex.quote(f'excluded, needs root or conda or has no effect: {command}')}"
