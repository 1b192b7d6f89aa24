"""Install commands that no sandbox can run, as they need root or conda."""

import re
import shlex
from collections.abc import Iterable

# They include assignments of variables, as each install command runs in its own shell.
_NEEDS_ROOT = re.compile(
    r"(^|[;&|]\s*)(\w+=\S*\s+)*(sudo|apt|apt-get|dpkg|yum|apk|conda|locale-gen)\s"
    r"|locale-gen$|>\s*/(etc|usr)/|^\w+=\S*$"
)


def without_root(commands: Iterable[str]) -> tuple[str, ...]:
    """Returns commands; those that need root or conda are replaced by a line in the build log."""
    return tuple(
        f"echo {shlex.quote(f'excluded, needs root or conda: {command}')}"
        if _NEEDS_ROOT.search(command)
        else command
        for command in commands
    )
