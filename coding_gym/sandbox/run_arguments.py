"""Checks the arguments of a command, and keeps the state of a persistent shell.

In a persistent shell, the bash of a command saves its state at exit, and the bash of the next
command sources it. The state is the folder, the file mode mask, variables, functions, aliases,
options other than xtrace and verbose, and the last exit code; limits, traps and processes are not
part of it. The state is a file in home, so snapshots include it. A command does not change
the state if it is killed, if it replaces bash by ``exec``, or if it sets a trap on EXIT and calls
``exit``. If a command redefines or disables ``builtin``, its state and exit code are discarded.
"""

import errno
import os
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from coding_gym.arguments import at_least_one, positive_seconds
from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.inside.fixed import HOME, MAX_DATA_BYTES

_MAX_COMMAND_BYTES = 1 << 20
# The longest argument of exec (MAX_ARG_STRLEN) without its NUL.
MAX_ARGUMENT_BYTES = (128 << 10) - 1
_MAX_PATH_BYTES = 4095  # of a system call (PATH_MAX), without its NUL
# The usual limit of exec. In JSON a byte takes at most six bytes, so the maximum fits a message.
_MAX_ENV_BYTES = 2 << 20
# Reads a command from standard input, and runs it with empty standard input.
_FROM_STDIN = (
    b"IFS= read -r -d '' BASH_EXECUTION_STRING; exec < /dev/null; "
    b'eval -- "$BASH_EXECUTION_STRING"'
)

STATE = f"{HOME}/.bash_state"

# One line up to the command, so that its errors have the right line numbers. Only regular files
# are opened: a FIFO would block. Functions come last: they could replace later commands.
# Aliases in functions are already expanded. `cd` sets PWD; the command's text is too large to save.
# The trap saves the state if a command calls `exit`, and does nothing after the save at the end
# of the command, which unsets BASH_EXECUTION_STRING; a trap of the command runs then.
# Restoring a non-zero exit status under errexit would exit the next bash before its command.
_SAVE = b"; ".join(
    (
        b'{ builtin set -- "$?"',
        b"builtin set +xv",
        b"[[ ! -v BASH_EXECUTION_STRING || -e %(state)b && ! -f %(state)b ]] || "
        b"{ builtin printf 'cd -- %%q\\n' \"${PWD-}\"",
        b"builtin umask -p",
        b"builtin unset -v BASH_EXECUTION_STRING PWD",
        b"builtin declare -p",
        b"builtin alias -p",
        b"builtin shopt -p",
        b"builtin set +o",
        b"builtin echo shopt -u expand_aliases",
        b"builtin declare -f",
        b"! builtin shopt -q expand_aliases || builtin echo builtin shopt -s expand_aliases",
        b"builtin printf '[[ $- == *e* ]] || builtin return %%d\\n' \"$1\"",
        b"} >| %(state)b",
        b"} 2>/dev/null || :",
    )
)
_SCRIPT = b"; ".join(
    (
        b"builtin trap -- '%(trap)b' EXIT",
        b"[[ ! -f %(state)b ]] || builtin . %(state)b 2>/dev/null",
        b"builtin eval -- %(command)b",
        b"%(save)b",
        b'builtin exit "$1"',
    )
)


class Run(NamedTuple):
    """The arguments of `Sandbox.run` after their check.

    Attributes:
        command: The shell text.
        cwd: The working folder, relative to the workspace or absolute; None for the workspace.
        env: Additional environment variables.
        stdin: The standard input.
        timeout_s: The time limit.
        max_output_bytes: Size limit of the output.
        source: The Python source that ``command`` runs; "" for other commands.
    """

    command: bytes
    cwd: str | None
    env: dict[str, str]
    stdin: bytes
    timeout_s: float
    max_output_bytes: int
    source: str = ""


def checked_run(
    command: str,
    timeout_s: float,
    max_output_bytes: int,
    cwd: str | None,
    env: Mapping[str, str] | None,
    stdin: bytes,
) -> Run:
    """Returns the arguments of `Sandbox.run`; encodes lone surrogates, which a policy may emit.

    Raises:
        InvalidArgumentError: An argument is out of range.
    """
    text = command.encode("utf-8", "surrogatepass")
    if b"\0" in text:
        raise InvalidArgumentError(f"command must have no NUL byte, got {command[:80]!r}")
    if len(text) > _MAX_COMMAND_BYTES:
        raise InvalidArgumentError(
            f"command must be at most {_MAX_COMMAND_BYTES} bytes, got {len(text)}; "
            "write a script with write_file and run the script"
        )
    seconds = positive_seconds("timeout_s", timeout_s)
    at_least_one("max_output_bytes", max_output_bytes)
    check_data(stdin)
    if cwd is not None and (not is_passable(cwd) or len(os.fsencode(cwd)) > MAX_ARGUMENT_BYTES):
        raise InvalidArgumentError(
            f"cwd must be a path of at most {MAX_ARGUMENT_BYTES} bytes, got {cwd[:80]!r}"
        )
    check_env(env or {})
    return Run(text, cwd, dict(env or {}), stdin, seconds, int(max_output_bytes))


def python_command(source: str) -> str:
    """Returns the command that runs Python source in an isolated interpreter.

    Raises:
        InvalidArgumentError: The command is too long, or ``source`` has a NUL byte.
    """
    if "\0" in source:
        raise InvalidArgumentError(f"source must have no NUL byte, got {source[:80]!r}")
    command = f"exec python -I -S -c {shlex.quote(source)}"
    size = len(command.encode("utf-8", "surrogatepass"))
    if size > MAX_ARGUMENT_BYTES:
        raise InvalidArgumentError(
            f"source must be at most {MAX_ARGUMENT_BYTES} bytes as a command, got {size}; "
            "write a module with write_file and run the module"
        )
    return command


def from_stdin(run: Run) -> Run:
    """Returns a run that reads its command, too long for an argument, from standard input."""
    return run._replace(command=_FROM_STDIN, stdin=run.command)


def check_path(path: str) -> None:
    """Raises InvalidArgumentError for an invalid path, OSError for a path that is too long."""
    if not is_passable(path):
        raise InvalidArgumentError(
            f"a path must be non-empty, Unicode and free of NUL bytes, got {path[:80]!r}"
        )
    if len(os.fsencode(path)) > _MAX_PATH_BYTES:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)


def check_data(data: bytes) -> None:
    """Raises InvalidArgumentError for data that are too long for one call."""
    if len(data) > MAX_DATA_BYTES:
        raise InvalidArgumentError(
            f"data of one call must be at most {MAX_DATA_BYTES} bytes, got {len(data)}"
        )


def check_env(env: Mapping[str, str]) -> None:
    """Raises InvalidArgumentError for an invalid variable, or variables of too many bytes."""
    for name, value in env.items():
        if not name or "=" in name or not is_passable(name + value):
            raise InvalidArgumentError(
                "an environment variable must have a non-empty name without '=', and neither NUL "
                f"bytes nor lone surrogates, got a variable with the name {name!r}"
            )
    size = sum(len(os.fsencode(f"{name}={value}")) + 1 for name, value in env.items())
    if size > _MAX_ENV_BYTES:
        raise InvalidArgumentError(f"env must be at most {_MAX_ENV_BYTES} bytes, got {size}")


def is_passable(text: str) -> bool:
    """Returns whether system calls accept a text: not empty, encodable, without NUL bytes."""
    try:
        return bool(text) and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def command_with_state(command: bytes, state: str) -> bytes:
    """Returns the command that runs ``command`` in the saved state, and saves the state after it.

    Args:
        command: Shell text.
        state: Path of the state file, as commands see it.
    """
    save = _SAVE % {b"state": _quote(state.encode())}
    return _SCRIPT % {
        b"trap": save.replace(b"'", b"'\\''"),
        b"state": _quote(state.encode()),
        b"command": _quote(command),
        b"save": save,
    }


def _quote(text: bytes) -> bytes:
    """Returns a text quoted as one word of a shell command."""
    return b"'" + text.replace(b"'", b"'\\''") + b"'"
