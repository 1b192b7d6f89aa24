"""Install commands that no sandbox can run, as they need root or conda."""

import re
import shlex
from collections.abc import Iterable, Sequence

# An assignment has no effect, as each install command runs in its own shell.
_NEEDS_ROOT = re.compile(
    r"(^|[;&|]\s*)(\w+=\S*\s+)*(sudo|apt|apt-get|dpkg|yum|apk|conda|locale-gen)\s"
    r"|locale-gen$|>\s*/(etc|usr)/|^\w+=\S*$"
)
_BRACKET = re.compile(r"[(){}`\n]")


def without_root(commands: Iterable[str]) -> tuple[str, ...]:
    """Returns commands; those that need root or conda are replaced by a line in the build log.

    Of commands that ``&&`` joins, only those that need it are replaced, if none is in brackets.
    """
    return tuple(" && ".join(map(_replaced, _parts(command))) for command in commands)


def _parts(command: str) -> Sequence[str]:
    parts = command.split(" && ")
    try:
        for part in parts:
            shlex.split(part)
    except ValueError:  # a quotation contains the separator
        return (command,)
    return (command,) if _BRACKET.search(command) else parts


def _replaced(command: str) -> str:
    if not _NEEDS_ROOT.search(command):
        return command
    return f"echo {shlex.quote(f'excluded, needs root or conda or has no effect: {command}')}"
