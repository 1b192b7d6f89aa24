"""The Landlock system calls, and what each version of the kernel's interface (ABI) knows.

Landlock is an allow-list: what no rule of a ruleset names is refused, to the process that enforces
it and to all that it starts, for ever. Rulesets nest; each can only take away. Constants are those
of linux/landlock.h.
"""

import os
import struct
from collections.abc import Iterable, Mapping

from coding_gym.sandbox.zygote import syscalls as sc

_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = (1 << bit for bit in range(4))
_REMOVE_DIR, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_SYM = (1 << bit for bit in (7, 8, 9, 10, 12))
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_FIRST_RIGHTS = (1 << 13) - 1
_TRUNCATION_SINCE = 3
_RIGHTS_SINCE = {2: _REFER, _TRUNCATION_SINCE: _TRUNCATE, 5: _IOCTL_DEV}
_TCP_SINCE, _TCP = 4, 3
_SCOPES_SINCE, _SCOPES = 6, 3  # abstract UNIX sockets and signals

_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_MAKING = _MAKE_DIR | _MAKE_REG | _MAKE_SOCK | _MAKE_FIFO | _MAKE_SYM
_READING = _EXECUTE | _READ_FILE | _READ_DIR
GRANTS: Mapping[str, int] = {
    "read": _READING,
    "write": _READING | _WRITE_FILE | _TRUNCATE | _MAKING | _REMOVE_DIR | _REMOVE_FILE | _REFER,
    "device": _READ_FILE | _WRITE_FILE,
}


def abi() -> int:
    """Returns the version of Landlock that this kernel enforces; 0 where it does not."""
    try:
        return sc.NOW.call("landlock_create_ruleset", 0, 0, _CREATE_RULESET_VERSION)
    except OSError:
        return 0


def scopes_signals(version: int) -> bool:
    """Whether processes of a domain can be kept from signalling those outside."""
    return version >= _SCOPES_SINCE


def knows_truncation(version: int) -> bool:
    """Whether cutting a file down is a right of its own."""
    return version >= _TRUNCATION_SINCE


def make_ruleset(version: int, grants: Iterable[tuple[str, str]], *, network: bool) -> int:
    """Returns the descriptor of a ruleset.

    Args:
        version: The version of Landlock to use, at most `abi`.
        grants: Keys of `GRANTS` and paths; a path that does not exist is passed over.
        network: Whether TCP stays as it is.

    Raises:
        OSError: The kernel refuses.
    """
    files = _FIRST_RIGHTS
    for since, right in _RIGHTS_SINCE.items():
        files |= right if version >= since else 0
    tcp = _TCP if version >= _TCP_SINCE and not network else 0
    # An older kernel refuses a larger structure than it knows unless the rest is zero.
    handled = struct.pack("3Q", files, tcp, _SCOPES if scopes_signals(version) else 0)
    ruleset = sc.NOW.call("landlock_create_ruleset", handled, len(handled), 0)
    for kind, path in grants:
        _allow(ruleset, path, GRANTS[kind] & files)
    return ruleset


def enforce(ruleset: int) -> None:
    """Puts this process, which must have ``no_new_privs``, under a ruleset."""
    sc.NOW.call("landlock_restrict_self", ruleset, 0)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    try:
        if not os.path.isdir(path):
            rights &= _OF_FILES
        rule = struct.pack("=Qi", rights, place)
        sc.NOW.call("landlock_add_rule", ruleset, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(place)
