"""Install commands that no sandbox can run, as they need root or conda."""

import re
import shlex
from collections.abc import Iterable, Sequence

# An assignment has no effect, as each install command runs in its own shell.
_NEEDS_ROOT = re.compile(
    r"(^|[;&|]\s*)(\w+=\S*\s+)*(sudo|apt|apt-get|dpkg|yum|apk|conda|locale-gen)\s"
    r"|locale-gen$|>\s*/(etc|usr)/|^\w+=\S*$"
)
# Brackets, compound commands, comments, and variables that later parts read.
_NOT_SPLIT = re.compile(r"[(){}`\n;#]|\|\||(^|&& )\w+=\S*(?= &&)")


def without_root(commands: Iterable[str]) -> tuple[str, ...]:
    """Returns commands; those that need root or conda are replaced by a line in the build log.

    If ``&&`` joins simple commands, only the commands that need root or conda are replaced.
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
