"""A persistent shell: a command's bash saves its state at exit, and the next one sources it.

The state is the folder, the file mode mask, variables, functions, aliases, options and the last
exit code; limits, traps and processes are not part of it. It is a file in the sandbox's home, so
snapshots hold it. A command that is killed leaves the state of the command before it.
"""

from coding_gym.sandbox.spec import HOME

STATE = f"{HOME}/.bash_state"

# One line up to the command, which keeps line numbers in its errors. Functions come last: they
# could replace what runs after them. PWD is set by `cd`; the text of the command is too large to
# save. Restoring a non-zero exit status under errexit would exit the next bash before its command.
_SAVE = b"; ".join(
    (
        b"{ { builtin printf 'cd -- %%q\\n' \"${PWD-}\"",
        b"builtin umask -p",
        b"builtin unset -v BASH_EXECUTION_STRING PWD",
        b"builtin declare -p",
        b"builtin alias -p",
        b"builtin shopt -p",
        b"builtin set +o",
        b"builtin declare -f",
        b"builtin printf '[[ $- == *e* ]] || builtin return %%d\\n' \"$1\"",
        b"} >| %(state)b",
        b"} 2>/dev/null || :",
    )
)
_SCRIPT = b"; ".join(
    (
        b"builtin trap -- 'builtin set -- \"$?\"; %(trap)b' EXIT",
        b"test ! -e %(state)b || . %(state)b 2>/dev/null",
        b"eval -- %(command)b",
        b'{ builtin set -- "$?"; builtin trap - EXIT; %(save)b',
        b'builtin exit "$1"; } 2>/dev/null',
    )
)


def keeping_state(command: bytes, state: str = STATE) -> bytes:
    """Returns the command that runs ``command`` in the saved state, and saves its own.

    Args:
        command: Shell text.
        state: The path of the file with the state, as commands see it.
    """
    save = _SAVE % {b"state": _quoted(state.encode())}
    return _SCRIPT % {
        b"trap": save.replace(b"'", b"'\\''"),
        b"state": _quoted(state.encode()),
        b"command": _quoted(command),
        b"save": save,
    }


def _quoted(text: bytes) -> bytes:
    """Returns text as one word of a shell."""
    return b"'" + text.replace(b"'", b"'\\''") + b"'"
