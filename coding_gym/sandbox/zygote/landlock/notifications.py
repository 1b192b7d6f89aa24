"""What commands of a Landlock sandbox may do only where this process grants it.

Landlock does not know a file's metadata. A command runs as a user who may well own files of the
host, such as the whole home of whoever trains, and could lock them all. So the kernel is told to
stop a process that asks, and to ask this one (seccomp's user notification): it finds the file,
holds on to it, looks where it lies, and does what was asked or refuses.

The kernel's limit on processes counts all that the user runs, the trainer and other sandboxes
included. So this process counts those of the sandbox, and lets each new one be made or refuses it.
A count misses those that were just granted and do not exist yet, of which each process can have
one: a burst may bring up to twice as many as there may be, and then no more.
"""

import contextlib
import errno
import fcntl
import os
import struct
from collections.abc import Sequence

from coding_gym.sandbox.zygote import seccomp
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.landlock.metadata import CALLS, Arguments, text_of
from coding_gym.sandbox.zygote.process_table import Processes, num_threads
from coding_gym.sandbox.zygote.syscalls import AT_FDCWD, AT_SYMLINK_NOFOLLOW, machine, numbers

_FORKS = ("clone", "fork", "vfork")  # clone3 does not exist inside
_NEW_LISTENER = 8
_CONTINUE = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE: the kernel does what was asked
_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
# id, pid, flags; number, architecture, instruction pointer, six arguments.
_QUESTION = struct.Struct("<QIIiIQ6Q")
_ANSWER = struct.Struct("<QqiI")


def listen() -> int:
    """Has this process ask from now on, and all that it starts; returns where questions arrive."""
    sc.install_filter(seccomp.no_attributes(machine()))
    return sc.install_filter(seccomp.ask_init(machine(), (*CALLS, *_FORKS)), _NEW_LISTENER)


class Notifications:
    """Answers what the processes of a sandbox ask.

    Args:
        roots: Folders in which everything is granted that their owner may do.
        processes: Those of the sandbox.
        num_processes: How many processes and threads there may be at a time.
    """

    def __init__(self, roots: Sequence[str], processes: Processes, num_processes: int) -> None:
        self._roots = tuple(f"{root}/" for root in roots)
        known = numbers(machine())
        self._calls = {known[name]: call for name, call in CALLS.items() if name in known}
        self._forks = {known[name] for name in _FORKS if name in known}
        self._processes = processes
        self._num_processes = num_processes
        # No fewer than there are: those of the last count, and all that were granted since.
        self._num_tasks = 0

    def count_shell(self) -> None:
        """Counts a process that this one starts."""
        self._num_tasks += 1

    def answer(self, listener: int) -> None:
        """Answers one question, if there still is one."""
        buffer = bytearray(_QUESTION.size)
        try:
            fcntl.ioctl(listener, _RECEIVE, buffer)
        except OSError:  # who asked was killed
            return
        number, pid, _, call, _, _, *arguments = _QUESTION.unpack(buffer)
        code = flags = 0
        try:
            if call in self._forks:
                self._count_fork()
                flags = _CONTINUE
            else:
                self._do(listener, number, pid, call, arguments)
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

    def _do(self, listener: int, number: int, pid: int, call: int, arguments: Arguments) -> None:
        find, change = self._calls[call]
        folder, path, flags = find(arguments)
        target = _open(pid, folder, path, follow=not flags & AT_SYMLINK_NOFOLLOW)
        try:
            fcntl.ioctl(listener, _IS_VALID, struct.pack("<Q", number))
            place = f"/proc/self/fd/{target}"
            if not f"{os.readlink(place)}/".startswith(self._roots):
                raise OSError(errno.EPERM, "not in the sandbox")
            change(place, target, arguments, pid)
        finally:
            os.close(target)


def _open(pid: int, folder: int, path: int, *, follow: bool) -> int:
    """Returns a descriptor that holds on to a file, and gives no access to it."""
    flags = os.O_PATH | os.O_CLOEXEC
    name = text_of(pid, path) if path else b""
    base = os.open("/", flags) if name.startswith(b"/") else _folder(pid, folder)
    if not name:
        return base
    try:
        return os.open(name, flags | (0 if follow else os.O_NOFOLLOW), dir_fd=base)
    finally:
        os.close(base)


def _folder(pid: int, descriptor: int) -> int:
    """Returns a descriptor of what another process has open, or of the folder where it works."""
    place = f"/proc/{pid}/cwd" if descriptor == AT_FDCWD else f"/proc/{pid}/fd/{descriptor}"
    try:
        return os.open(place, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF)) from error
