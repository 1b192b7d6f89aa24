"""Confines a process and its descendants by Landlock rules.

Domains (enforced rules) can be nested; a nested domain can only remove rights. Newer versions of
the interface (ABI) control more accesses. The constants are from linux/landlock.h.
"""

import os
import struct
from collections.abc import Iterable, Mapping

from coding_gym.sandbox.inside import syscalls as sc

_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = (1 << bit for bit in range(4))
_REMOVE_RIGHTS = 1 << 4 | 1 << 5  # of folders and of files
_MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_SYM = (1 << bit for bit in (7, 8, 9, 10, 12))
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_ABI_1_RIGHTS = (1 << 13) - 1
TRUNCATION_SINCE = 3
_RIGHTS_SINCE = {2: _REFER, TRUNCATION_SINCE: _TRUNCATE, 5: _IOCTL_DEV}
_TCP_SINCE, _TCP = 4, 3
_SCOPES_SINCE, _ABSTRACT_SOCKETS, _SIGNALS = 6, 1, 2

_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_CREATE_RIGHTS = _MAKE_DIR | _MAKE_REG | _MAKE_SOCK | _MAKE_FIFO | _MAKE_SYM
_READ_RIGHTS = _EXECUTE | _READ_FILE | _READ_DIR
GRANTS: Mapping[str, int] = {
    "read": _READ_RIGHTS,
    "write": _READ_RIGHTS | _CREATE_RIGHTS | _REMOVE_RIGHTS | _WRITE_FILE | _TRUNCATE | _REFER,
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
        grants: Pairs of a key of `GRANTS` and a path; a path that cannot be opened is skipped.

    Raises:
        OSError: The kernel refuses the rules.
    """
    file_rights = _ABI_1_RIGHTS
    for since, right in _RIGHTS_SINCE.items():
        file_rights |= right if version >= since else 0
    tcp = _TCP if version >= _TCP_SINCE else 0
    scopes = _ABSTRACT_SOCKETS | _SIGNALS if version >= _SCOPES_SINCE else 0
    ruleset = _create(file_rights, tcp, scopes)
    for kind, path in grants:
        _allow(ruleset, path, GRANTS[kind] & file_rights)
    return ruleset


def enforce(ruleset: int) -> None:
    """Enforces a ruleset on this process, which must have ``no_new_privs``."""
    sc.call("landlock_restrict_self", ruleset, 0)


def block_abstract_sockets() -> None:
    """Blocks abstract UNIX sockets of other processes, if the kernel can (Linux 6.12).

    Abstract sockets belong to the network namespace, and their servers may trust all processes of a
    uid.
    """
    if abi() >= _SCOPES_SINCE:
        ruleset = _create(0, 0, _ABSTRACT_SOCKETS)
        enforce(ruleset)
        os.close(ruleset)


def _create(file_rights: int, tcp_rights: int, scopes: int) -> int:
    # An older kernel refuses a larger structure than it knows unless the rest is zero.
    attributes = struct.pack("3Q", file_rights, tcp_rights, scopes)
    return sc.call("landlock_create_ruleset", attributes, len(attributes), 0)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        target = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    try:
        if not os.path.isdir(path):
            rights &= _FILE_RIGHTS
        rule = struct.pack("=Qi", rights, target)
        sc.call("landlock_add_rule", ruleset, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(target)
