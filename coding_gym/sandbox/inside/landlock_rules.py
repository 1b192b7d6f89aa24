"""Confines a process and its descendants by Landlock; starts bash in a nested domain.

Domains nest; each can only remove rights. Newer versions of the interface (ABI) control more.
Constants are those of linux/landlock.h.
"""

import os
import signal
import struct
import subprocess
from collections.abc import Iterable, Mapping, Sequence

from coding_gym.sandbox.inside import syscalls as sc
from coding_gym.sandbox.inside.fixed import BASH

_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = (1 << bit for bit in range(4))
_REMOVE_DIR, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_SYM = (1 << bit for bit in (7, 8, 9, 10, 12))
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_FIRST_RIGHTS = (1 << 13) - 1
TRUNCATION_SINCE = 3
_RIGHTS_SINCE = {2: _REFER, TRUNCATION_SINCE: _TRUNCATE, 5: _IOCTL_DEV}
_TCP_SINCE, _TCP = 4, 3
_SCOPES_SINCE, _SCOPES = 6, 3  # abstract UNIX sockets and signals

_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_CREATING = _MAKE_DIR | _MAKE_REG | _MAKE_SOCK | _MAKE_FIFO | _MAKE_SYM
_READING = _EXECUTE | _READ_FILE | _READ_DIR
GRANTS: Mapping[str, int] = {
    "read": _READING,
    "write": _READING | _WRITE_FILE | _TRUNCATE | _CREATING | _REMOVE_DIR | _REMOVE_FILE | _REFER,
    "device": _READ_FILE | _WRITE_FILE,
}


def abi() -> int:
    """Returns the version of Landlock that this kernel enforces; 0 if it enforces none."""
    try:
        return sc.call("landlock_create_ruleset", 0, 0, _CREATE_RULESET_VERSION)
    except OSError:
        return 0


def make_ruleset(version: int, grants: Iterable[tuple[str, str]]) -> int:
    """Returns the descriptor of a ruleset.

    Args:
        version: The version of Landlock to use, at most `abi`.
        grants: Keys of `GRANTS` and paths; a path that does not exist is skipped.

    Raises:
        OSError: The kernel refuses the rules.
    """
    files = _FIRST_RIGHTS
    for since, right in _RIGHTS_SINCE.items():
        files |= right if version >= since else 0
    tcp = _TCP if version >= _TCP_SINCE else 0
    # An older kernel refuses a larger structure than it knows unless the rest is zero.
    handled = struct.pack("3Q", files, tcp, _SCOPES if version >= _SCOPES_SINCE else 0)
    ruleset = sc.call("landlock_create_ruleset", handled, len(handled), 0)
    for kind, path in grants:
        _allow(ruleset, path, GRANTS[kind] & files)
    return ruleset


def enforce(ruleset: int) -> None:
    """Enforces a ruleset on this process, which must have ``no_new_privs``."""
    sc.call("landlock_restrict_self", ruleset, 0)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        target = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    try:
        if not os.path.isdir(path):
            rights &= _OF_FILES
        rule = struct.pack("=Qi", rights, target)
        sc.call("landlock_add_rule", ruleset, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(target)


def start_bash(
    ruleset: int, arguments: list[bytes], env: Mapping[bytes, bytes], descriptors: Sequence[int]
) -> int:
    """Starts bash in a nested domain; see `commands.spawn_bash`.

    It uses a fork, because a process can enter a domain only by itself.
    """

    def enter() -> None:
        sc.prctl(sc.PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        enforce(ruleset)

    stdin, stdout, stderr = descriptors
    process = subprocess.Popen(
        arguments,
        executable=BASH,
        env=env,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        close_fds=False,  # all other descriptors are close-on-exec
        start_new_session=True,
        preexec_fn=enter,
    )
    process.returncode = 0  # `processes.reap` reaps it
    return process.pid
