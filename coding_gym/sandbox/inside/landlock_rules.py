"""Landlock: rules that confine a process and its descendants; starts bash in a nested domain.

Rules nest; each can only remove rights. Newer versions of the interface (ABI) control more.
Constants are those of linux/landlock.h.
"""

import errno
import fcntl
import os
import signal
import struct
from collections.abc import Iterable, Mapping

from coding_gym.sandbox.inside import syscalls as sc
from coding_gym.sandbox.inside.commands import BASH, Launcher

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
        OSError: The kernel refuses.
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


class DomainLauncher(Launcher):
    """Starts bash by fork: only the new process itself can enter a domain.

    Args:
        ruleset: Descriptor of the rules that apply to commands.
    """

    def __init__(self, ruleset: int) -> None:
        self._ruleset = ruleset

    def start(
        self, arguments: list[bytes], env: Mapping[bytes, bytes], descriptors: Mapping[int, int]
    ) -> int:
        """Starts bash; see `Launcher.start`."""
        reader, writer = os.pipe2(os.O_CLOEXEC)
        with open(reader, "rb") as failure:
            try:
                pid = os.fork()
                if pid == 0:
                    self._exec_bash(arguments, env, descriptors, writer)
            finally:
                os.close(writer)
            if not (reason := failure.read()):
                return pid
        os.waitpid(pid, 0)
        raise OSError(int(reason), os.strerror(int(reason)), BASH)

    def _exec_bash(
        self,
        arguments: list[bytes],
        env: Mapping[bytes, bytes],
        descriptors: Mapping[int, int],
        writer: int,
    ) -> None:
        """Replaces a forked process by bash; never returns."""
        # Above the numbers of bash's descriptors; exec closes it.
        writer = fcntl.fcntl(writer, fcntl.F_DUPFD_CLOEXEC, 3)
        try:
            os.setsid()
            sc.prctl(sc.PR_SET_PDEATHSIG, signal.SIGKILL)
            # Python ignores the last two, and ignored signals stay ignored across exec.
            for kind in (signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(kind, signal.SIG_DFL)
            enforce(self._ruleset)
            for number, source in descriptors.items():
                os.dup2(source, number)
                os.set_inheritable(number, True)  # also if both numbers are equal
            os.execve(BASH, arguments, env)  # noqa: S606 - a shell is wanted
        except OSError as error:
            os.write(writer, b"%d" % (error.errno or errno.EIO))
        finally:
            os._exit(126)
