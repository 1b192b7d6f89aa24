"""The set-up of a sandbox as a list of system calls, worked out before it has a process.

What a first process so much as looks at costs it memory of its own for as long as the sandbox
lives: a page for every object of Python, for there is a count of its users in it. So the server
works the list out, writes it down as plain numbers, and keeps it for the next sandbox of its kind;
the first process does nothing but go through it (`program`).
"""

import errno
import os
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath

from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.numbers import number
from coding_gym.sandbox.zygote.program import FUNCTION, Call, Program
from coding_gym.sandbox.zygote.steps import step

# The first process's only descriptor at its start: the channel to the owner. The server has its own
# channel there, so that the object for that one serves both.
CHANNEL = 3
_HERE = -100  # AT_FDCWD
_AS_LINK = 0x100  # AT_SYMLINK_NOFOLLOW
_FOLDER = 0x200  # AT_REMOVEDIR
_NO_SYMLINKS = 0x04  # RESOLVE_NO_SYMLINKS
_SECOND_NS = 10**9


class Plan:
    """A list of system calls that grows; its methods are named as the calls are.

    Descriptors are known beforehand: the kernel gives the lowest that is free.

    Args:
        first_free: The lowest descriptor that will be free at its start.
    """

    def __init__(self, first_free: int = CHANNEL + 1) -> None:
        self._calls: list[Call] = []
        self._step = ""
        self._next = first_free

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Names what the calls of the block are part of, for the error if one fails."""
        self._step = name
        with step(name):
            yield
        self._step = ""

    def call(
        self, name: str, *arguments: int | bytes, gives: int = 0, tolerates: int = 0, at: str = ""
    ) -> None:
        """Adds a system call.

        Args:
            name: Of the call.
            arguments: Numbers, and bytes where it wants the address of such.
            gives: What it returns when all is well.
            tolerates: An error number that is well too, or `program.ANY_ERROR`.
            at: The path or the like that the message of an error names.
        """
        text = f"{name} {at}".rstrip()
        self._calls.append(Call(self._step, text, number(name), gives, tolerates, arguments))

    def do(self, function: Callable[[], object]) -> None:
        """Adds a function, for what cannot be known before; it leaves no descriptor open."""
        self._calls.append(Call(self._step, "", FUNCTION, 0, 0, (), function))

    def compile(self) -> Program:
        """Returns all calls so far as the kernel wants them."""
        return Program(self._calls)

    def follow_up(self) -> "Plan":
        """Returns an empty plan for a function of this one."""
        return Plan(self._next)

    def mkdir(self, path: str, mode: int = 0o755, *, exist_ok: bool = False) -> None:
        """Makes a folder; with ``exist_ok`` where there is nothing."""
        tolerates = errno.EEXIST if exist_ok else 0
        self.call("mkdirat", _HERE, _text(path), mode, tolerates=tolerates, at=path)

    def makedirs(self, path: str) -> None:
        """Makes a folder, and those above it, where there are none."""
        for part in _ways(path):
            self.mkdir(part, exist_ok=True)

    def make_file(self, path: str) -> None:
        """Makes an empty file where there is nothing."""
        arguments = (_HERE, _text(path), stat.S_IFREG | 0o644, 0)
        self.call("mknodat", *arguments, tolerates=errno.EEXIST, at=path)

    def write_text(self, path: str, text: str, *, tolerates: int = 0) -> None:
        """Writes a small file in one system call, as the kernel's own files need."""
        flags, data = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, text.encode()
        arguments = (_HERE, _text(path), flags, 0o644)
        file = self.opened("openat", *arguments, tolerates=tolerates, at=path)
        size = len(data)
        self.call("write", file, data, size, gives=size, tolerates=tolerates, at=path)
        self.close(file, tolerates=tolerates)

    def rmdir(self, path: str) -> None:
        """Removes an empty folder."""
        self.call("unlinkat", _HERE, _text(path), _FOLDER, at=path)

    def symlink(self, target: str, path: str) -> None:
        """Makes a symbolic link at a path."""
        self.call("symlinkat", _text(target), _HERE, _text(path), at=path)

    def chdir(self, path: str) -> None:
        """Changes the working folder."""
        self.call("chdir", _text(path), at=path)

    def chmod(self, path: str, mode: int) -> None:
        """Sets the permissions of what is at a path."""
        self.call("fchmodat", _HERE, _text(path), mode, at=path)

    def utime(self, path: str, time_ns: int) -> None:
        """Dates what is at a path, be it a link."""
        times = struct.pack("4q", *divmod(time_ns, _SECOND_NS), *divmod(time_ns, _SECOND_NS))
        self.call("utimensat", _HERE, _text(path), times, _AS_LINK, at=path)

    def opened(self, name: str, *arguments: int | bytes, tolerates: int = 0, at: str = "") -> int:
        """Adds a call that gives a descriptor, which `close` must follow, and returns that."""
        self.call(name, *arguments, gives=self._next, tolerates=tolerates, at=at)
        return self._next

    def close(self, descriptor: int, *, tolerates: int = 0) -> None:
        """Closes a descriptor."""
        self.call("close", descriptor, tolerates=tolerates)

    def keep_folder(self, path: str) -> int:
        """Opens a folder for good, and returns its descriptor."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        folder = self.opened("openat", _HERE, _text(path), flags, 0, at=path)
        self._next += 1
        return folder

    def refuse_symlinks(self, path: str) -> None:
        """Fails at the first one in a path, of which the last parts need not exist."""
        how = struct.pack("3Q", os.O_PATH | os.O_CLOEXEC, 0, _NO_SYMLINKS)
        for part in _ways(path):
            arguments = (_HERE, _text(part), how, len(how))
            found = self.opened("openat2", *arguments, tolerates=errno.ENOENT, at=part)
            self.close(found, tolerates=errno.EBADF)

    def mount(self, kind: str, target: str, flags: int, options: str = "") -> None:
        """Mounts a new file system of a kind."""
        arguments = (_text(kind), _text(target), _text(kind), flags, _text(options))
        self.call("mount", *arguments, at=f"{kind} {target}")

    def bind(self, source: str, target: str, *, recursive: bool = True) -> None:
        """Shows a folder or a file at a second place."""
        flags = sc.BIND | (sc.RECURSIVE if recursive else 0)
        arguments = (_text(source), _text(target), 0, flags, 0)
        self.call("mount", *arguments, at=f"{source} {target}")

    def unmount(self, target: str) -> None:
        """Takes a mount and all below it out of sight; it ends with its last user."""
        self.call("umount2", _text(target), sc.DETACH, at=target)

    def restrict(self, path: str, flags: int, *, recursive: bool = True) -> None:
        """Adds flags to a mount, and to all mounts below it."""
        attributes = struct.pack("4Q", flags, 0, 0, 0)
        depth = sc.AT_RECURSIVE if recursive else 0
        arguments = (_HERE, _text(path), depth, attributes, len(attributes))
        self.call("mount_setattr", *arguments, at=path)

    def pivot(self, new_root: str, old_root: str) -> None:
        """Makes ``new_root`` the root; the old one is then at ``old_root``, a path below it."""
        self.chdir(new_root)
        self.call("pivot_root", _text("."), _text(old_root), at=new_root)
        self.chdir("/")

    def prctl(self, option: int, *arguments: int) -> None:
        """Sets an attribute of the process; see the manual page of that name."""
        self.call("prctl", option, *arguments, at=str(option))


def _ways(path: str) -> list[str]:
    """Returns an absolute path and those above it but the root, the highest first."""
    return [str(part) for part in (*reversed(PurePosixPath(path).parents), path)][1:]


def _text(text: str) -> bytes:
    return os.fsencode(text) + b"\0"
