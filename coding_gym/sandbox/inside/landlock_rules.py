"""Landlock: rulesets, and bash in a domain of its own, with what commands are granted only there.

Landlock is an allow-list: what no rule of a ruleset names is refused, to the process that enforces
it and to all that it starts, for ever. Rulesets nest; each can only take away. Each version of the
kernel's interface (ABI) knows more. Constants are those of linux/landlock.h.

Landlock does not know a file's metadata. A command runs as a user who may well own files of the
host, such as the trainer's whole home, and could lock them all. So the kernel stops a
process that wants to change a file's permissions, owner or dates, and asks this one (seccomp's user
notification): it finds the file, holds on to it by an ``O_PATH`` descriptor, so that no link can
lead it elsewhere, looks where it lies, and does what was asked or refuses.

The kernel's limit on processes counts all that the user runs, the trainer and other sandboxes
included. So this process counts those of the sandbox, and lets each new one be made or refuses it.
A count misses those that were just granted and do not exist yet, of which each process can have
one: a burst may bring up to twice as many as there may be, and then no more.
"""

import contextlib
import errno
import fcntl
import os
import resource
import select
import signal
import socket
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from coding_gym.sandbox.inside import seccomp, wire
from coding_gym.sandbox.inside import syscalls as sc
from coding_gym.sandbox.inside.process_table import Processes, num_threads
from coding_gym.sandbox.inside.spawn import BASH, Launcher
from coding_gym.sandbox.inside.syscalls import AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW

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
_CREATING = _MAKE_DIR | _MAKE_REG | _MAKE_SOCK | _MAKE_FIFO | _MAKE_SYM
_READING = _EXECUTE | _READ_FILE | _READ_DIR
GRANTS: Mapping[str, int] = {
    "read": _READING,
    "write": _READING | _WRITE_FILE | _TRUNCATE | _CREATING | _REMOVE_DIR | _REMOVE_FILE | _REFER,
    "device": _READ_FILE | _WRITE_FILE,
}
_PR_SET_PDEATHSIG = 1
_FIRST_OWN = 64
_PATH_BYTES, _PAGE_BYTES = 4096, 4096

_FORKS = ("clone", "fork", "vfork")  # clone3 does not exist inside
_NEW_LISTENER = 8
_CONTINUE = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE: the kernel does what was asked
_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
# id, pid, flags; number, architecture, instruction pointer, six arguments.
_QUESTION = struct.Struct("<QIIiIQ6Q")
_ANSWER = struct.Struct("<QqiI")

# Changes the file behind a descriptor; gets the arguments that say so, and the caller.
_Change = Callable[[int, Sequence[int], int], None]


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


def _chmod(target: int, arguments: Sequence[int], _: int) -> None:
    os.chmod(f"/proc/self/fd/{target}", arguments[0] & 0o7777)


def _chown(target: int, arguments: Sequence[int], _: int) -> None:
    uid, gid = map(_signed, arguments[:2])
    sc.NOW.call("fchownat", target, b"", uid, gid, AT_EMPTY_PATH)


def _dating(form: str, unit_ns: int) -> _Change:
    """Returns a change of dates to times of a form, whose parts below a second have a unit."""

    def change(target: int, arguments: Sequence[int], pid: int) -> None:
        times: bytes | int = 0  # now
        if arguments[0]:
            found = struct.unpack(form, _memory(pid, arguments[0], struct.calcsize(form)))
            seconds, parts = (found, (0, 0)) if len(found) == 2 else (found[::2], found[1::2])
            times = struct.pack(
                "<4q", seconds[0], parts[0] * unit_ns, seconds[1], parts[1] * unit_ns
            )
        sc.NOW.call("utimensat", target, b"", times, AT_EMPTY_PATH)

    return change


class _Call(NamedTuple):
    """A system call that changes metadata: the places of its arguments, and the change."""

    change: _Change
    values: int
    folder: int | None = None
    path: int | None = None
    flags: int | None = None
    follows: bool = True


_CALLS = {
    "chmod": _Call(_chmod, 1, path=0),
    "fchmod": _Call(_chmod, 1, folder=0),
    "fchmodat": _Call(_chmod, 2, folder=0, path=1),
    "fchmodat2": _Call(_chmod, 2, folder=0, path=1, flags=3),
    "chown": _Call(_chown, 1, path=0),
    "lchown": _Call(_chown, 1, path=0, follows=False),
    "fchown": _Call(_chown, 1, folder=0),
    "fchownat": _Call(_chown, 2, folder=0, path=1, flags=4),
    "utime": _Call(_dating("<2q", 0), 1, path=0),
    "utimes": _Call(_dating("<4q", 1000), 1, path=0),
    "futimesat": _Call(_dating("<4q", 1000), 2, folder=0, path=1),
    "utimensat": _Call(_dating("<4q", 1), 2, folder=0, path=1, flags=3),
}


class DomainLauncher(Launcher):
    """Starts bash by fork: only the new process itself can enter a domain and make a listener.

    There is a listener for each shell of which a process may still run.

    Args:
        ruleset: Descriptor of the rules that commands live under.
        roots: Folders in which everything is granted that their owner may do.
        processes: Those of the sandbox.
        num_processes: How many processes and threads there may be at a time.
        num_open_files: How many descriptors a process may have at a time.
    """

    def __init__(
        self,
        ruleset: int,
        roots: Sequence[str],
        processes: Processes,
        *,
        num_processes: int,
        num_open_files: int,
    ) -> None:
        self.listeners: dict[int, Callable[[int], bool]] = {}
        self._ruleset = ruleset
        self._roots = tuple(f"{root}/" for root in roots)
        self._processes = processes
        self._num_processes = num_processes
        self._num_open_files = num_open_files
        known = sc.numbers(sc.machine())
        self._calls = {known[name]: call for name, call in _CALLS.items() if name in known}
        self._forks = {known[name] for name in _FORKS if name in known}
        # No fewer than there are: those of the last count, and all that were granted since.
        self._num_tasks = 0

    def start(
        self, arguments: list[bytes], env: Mapping[bytes, bytes], descriptors: Mapping[int, int]
    ) -> int:
        """Starts bash; see `Launcher.start`."""
        receiver, sender = socket.socketpair()
        with receiver, sender:
            pid = os.fork()
            if pid == 0:
                self._exec_bash(arguments, env, descriptors, sender)
            sender.close()
            listener = _hear(receiver, pid)
            self.listeners[listener] = partial(self._attend, listener)
        self._num_tasks += 1
        return pid

    def _attend(self, listener: int, events: int) -> bool:
        """Answers a question; closes a listener of which no process is left that could ask."""
        if events & select.POLLIN:
            self._answer(listener)
        elif events:
            del self.listeners[listener]
            os.close(listener)
            return False
        return True

    def _exec_bash(
        self,
        arguments: list[bytes],
        env: Mapping[bytes, bytes],
        descriptors: Mapping[int, int],
        sender: socket.socket,
    ) -> None:
        """Replaces a forked process by bash; never returns."""
        try:
            os.setsid()
            sc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            # Python ignores the last two, and what is ignored stays ignored across exec.
            for number in (signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            enforce(self._ruleset)
            sc.install_filter(seccomp.no_attributes(sc.machine()))
            asks = seccomp.ask_init(sc.machine(), (*_CALLS, *_FORKS))
            socket.send_fds(sender, [b"+"], [sc.install_filter(asks, _NEW_LISTENER)])
            # Out of the way of the numbers that bash gets.
            sender = socket.socket(fileno=fcntl.fcntl(sender, fcntl.F_DUPFD_CLOEXEC, _FIRST_OWN))
            for there, here in descriptors.items():
                os.dup2(here, there)
                os.set_inheritable(there, True)  # where both are the same
            resource.setrlimit(resource.RLIMIT_NOFILE, (self._num_open_files,) * 2)
            os.execve(BASH, arguments, env)  # noqa: S606 - a shell is wanted
        except OSError as error:
            sender.sendall(b"-%d" % (error.errno or errno.EIO))
        finally:
            os._exit(126)

    def _answer(self, listener: int) -> None:
        """Answers one question, if there still is one."""
        buffer = bytearray(_QUESTION.size)
        try:
            fcntl.ioctl(listener, _RECEIVE, buffer)
        except OSError:  # the caller was killed
            return
        number, pid, _, call, _, _, *arguments = _QUESTION.unpack(buffer)
        code = flags = 0
        try:
            if call in self._forks:
                self._count_fork()
                flags = _CONTINUE
            else:
                self._change(listener, number, pid, self._calls[call], arguments)
        except OSError as error:
            code = error.errno or errno.EPERM
        with contextlib.suppress(OSError):  # as above
            fcntl.ioctl(listener, _SEND, bytearray(_ANSWER.pack(number, 0, -code, flags)))

    def _count_fork(self) -> None:
        """Counts one more process; raises OSError where there are as many as there may be."""
        if self._num_tasks >= self._num_processes:
            self._num_tasks = num_threads(self._processes.pids())
        if self._num_tasks >= self._num_processes:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        self._num_tasks += 1

    def _change(
        self, listener: int, number: int, pid: int, call: _Call, arguments: Sequence[int]
    ) -> None:
        target = _open(pid, call, arguments)
        try:
            fcntl.ioctl(listener, _IS_VALID, struct.pack("<Q", number))
            if not f"{os.readlink(f'/proc/self/fd/{target}')}/".startswith(self._roots):
                raise OSError(errno.EPERM, "not in the sandbox")
            call.change(target, arguments[call.values :], pid)
        finally:
            os.close(target)


def _hear(receiver: socket.socket, pid: int) -> int:
    """Returns the listener that a forked process sends before it becomes bash."""
    mark, listeners = wire.receive_descriptors(receiver, 1, 1)
    reason = receiver.recv(16).lstrip(b"-")
    if mark == b"+" and listeners and not reason:
        return listeners[0]
    os.waitpid(pid, 0)
    for listener in listeners:
        os.close(listener)
    code = int(reason or errno.EIO)
    raise OSError(code, os.strerror(code), BASH)


def _open(pid: int, call: _Call, arguments: Sequence[int]) -> int:
    """Returns a descriptor that holds on to the file of a call, and gives no access to it."""
    flags = os.O_PATH | os.O_CLOEXEC
    name = b"" if call.path is None else _path(pid, arguments[call.path])
    folder = AT_FDCWD if call.folder is None else _signed(arguments[call.folder])
    place = f"/proc/{pid}/cwd" if folder == AT_FDCWD else f"/proc/{pid}/fd/{folder}"
    try:
        base = os.open("/" if name.startswith(b"/") else place, flags)
    except FileNotFoundError as error:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF)) from error
    if not name:
        return base
    links = 0 if call.flags is None else arguments[call.flags] & AT_SYMLINK_NOFOLLOW
    follows = call.follows and not links
    try:
        return os.open(name, flags | (0 if follows else os.O_NOFOLLOW), dir_fd=base)
    finally:
        os.close(base)


def _path(pid: int, address: int) -> bytes:
    """Returns a path in another process's memory, up to its NUL; nothing for no address."""
    if not address:
        return b""
    size = _PAGE_BYTES - address % _PAGE_BYTES  # what follows may not be mapped
    data = _memory(pid, address, size)
    if b"\0" not in data:
        data += _memory(pid, address + size, _PATH_BYTES)
    text, end, _ = data.partition(b"\0")
    if not end:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    return text


def _memory(pid: int, address: int, size: int) -> bytes:
    descriptor = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(descriptor, size, address)
    except (OSError, OverflowError) as error:
        raise OSError(errno.EFAULT, os.strerror(errno.EFAULT)) from error
    finally:
        os.close(descriptor)


def _signed(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)
