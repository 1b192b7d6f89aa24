"""The Linux system calls that Python's standard library lacks, each raising ``OSError``.

Everything goes through ``ctypes.PyDLL``, which keeps the interpreter's lock: a raw ``clone`` is
then as safe as ``os.fork`` in a process with one thread. Constants are those of linux/mount.h,
linux/sched.h, linux/prctl.h and linux/capability.h.
"""

import ctypes
import os

from coding_gym.sandbox.zygote.numbers import number

NEW_MOUNT = 0x00020000
NEW_CGROUP = 0x02000000
NEW_UTS = 0x04000000
NEW_IPC = 0x08000000
NEW_USER = 0x10000000
NEW_PID = 0x20000000
NEW_NET = 0x40000000

NOSUID = 2
NODEV = 4
NOEXEC = 8
REMOUNT = 32
READ_ONLY = 1
BIND = 1 << 12
RECURSIVE = 1 << 14
_SLAVE = 1 << 19
DETACH = 2
AT_RECURSIVE = 0x8000

_SIGCHLD = 17
_AT_FDCWD = -100
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_FROM_FD = 0x4
_RESOLVE_NO_MAGIC_LINKS = 0x02

_AF_UNIX = 1
_STREAM_CLOEXEC = 0o2000001
_PAIR = (ctypes.c_int * 2)()
_PAIR_AT = ctypes.addressof(_PAIR)

_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
# Seven numbers, that of the call first; gives -1 where it fails.
call = _libc["syscall"]
call.argtypes = [ctypes.c_long] * 7
call.restype = ctypes.c_long


class _MountAttributes(ctypes.Structure):
    _fields_ = [
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user_namespace", ctypes.c_uint64),
    ]


def _check(result: int, name: str, *paths: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{os.strerror(code)} ({' '.join((name, *paths))})")
    return result


def _syscall(name: str, *arguments: object, path: str = "") -> int:
    values = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return _check(_libc.syscall(ctypes.c_long(number(name)), *values), f"{name} {path}".rstrip())


def clone(flags: int) -> int:
    """Forks into new namespaces; returns 0 in the child, the child's pid in the parent."""
    return _check(call(number("clone"), flags | _SIGCHLD, 0, 0, 0, 0, 0), "clone")


def socket_pair() -> tuple[int, int]:
    """Returns the descriptors of a connected pair of UNIX stream sockets, without objects."""
    _check(call(number("socketpair"), _AF_UNIX, _STREAM_CLOEXEC, 0, _PAIR_AT, 0, 0), "socketpair")
    return _PAIR[0], _PAIR[1]


def unshare(flags: int) -> None:
    """Moves this process into new namespaces."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def enter_mounts(descriptor: int) -> None:
    """Moves this process into another mount namespace; root and working folder become its root."""
    _check(_libc.setns(descriptor, NEW_MOUNT), "setns")


def mount(kind: str, target: str, flags: int, options: str = "") -> None:
    """Mounts a new file system of a kind."""
    result = _libc.mount(
        kind.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode()
    )
    _check(result, "mount", kind, target)


def bind(source: str, target: str, *, recursive: bool = True) -> None:
    """Shows a folder or a file at a second place."""
    flags = BIND | (RECURSIVE if recursive else 0)
    result = _libc.mount(
        os.fsencode(source), os.fsencode(target), None, ctypes.c_ulong(flags), None
    )
    _check(result, "bind", source, target)


def receive_host_mounts_only() -> None:
    """Makes every mount a slave: the host's unmounts arrive here, ours never reach the host."""
    result = _libc.mount(None, b"/", None, ctypes.c_ulong(_SLAVE | RECURSIVE), None)
    _check(result, "mount", "make-rslave", "/")


def unmount(target: str) -> None:
    """Takes a mount and all below it out of sight; it ends with its last user."""
    _check(_libc.umount2(os.fsencode(target), DETACH), "umount", target)


def restrict(path: str, flags: int, *, recursive: bool = True) -> None:
    """Adds flags to a mount, and to all mounts below it."""
    attributes = _MountAttributes(set=flags)
    _syscall(
        "mount_setattr",
        _AT_FDCWD,
        ctypes.c_char_p(os.fsencode(path)),
        AT_RECURSIVE if recursive else 0,
        ctypes.byref(attributes),
        ctypes.sizeof(attributes),
        path=path,
    )


def clone_tree(path: str) -> int:
    """Returns a descriptor of a detached copy of the mounts at and below ``path``."""
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | AT_RECURSIVE
    source = ctypes.c_char_p(os.fsencode(path))
    return _syscall("open_tree", _AT_FDCWD, source, flags, path=path)


def attach_tree(descriptor: int, target: str) -> None:
    """Mounts what `clone_tree` gave."""
    _syscall(
        "move_mount",
        descriptor,
        ctypes.c_char_p(b""),
        _AT_FDCWD,
        ctypes.c_char_p(os.fsencode(target)),
        _MOVE_MOUNT_FROM_FD,
        path=target,
    )


def pivot(new_root: str, old_root: str) -> None:
    """Makes ``new_root`` the root; the old one is then at ``old_root``, a path below the new."""
    os.chdir(new_root)
    _syscall("pivot_root", ctypes.c_char_p(b"."), ctypes.c_char_p(old_root.encode()))
    os.chdir("/")


def open_without_magic(path: str, flags: int, mode: int = 0) -> int:
    """Opens a file as ``os.open`` does, but follows none of the links of ``/proc`` to open files.

    They would lead the first process, at the wish of a policy, to what it holds and commands do
    not, such as folders below those that are mounted. Such a path is ELOOP.
    """
    how = (ctypes.c_uint64 * 3)(flags, mode, _RESOLVE_NO_MAGIC_LINKS)
    name = ctypes.c_char_p(os.fsencode(path))
    try:
        return _syscall("openat2", _AT_FDCWD, name, ctypes.byref(how), 24)
    except OSError as error:
        code = error.errno or 0
        raise OSError(code, os.strerror(code), path) from None


def change_folder(path: str) -> None:
    """Changes the working folder as ``os.chdir`` does, with the links of `open_without_magic`."""
    descriptor = open_without_magic(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fchdir(descriptor)
    finally:
        os.close(descriptor)


def close_from(first: int) -> None:
    """Closes every descriptor from ``first`` on."""
    _syscall("close_range", first, 0x7FFFFFFF, 0)


def prctl(option: int, *arguments: int) -> int:
    """Sets an attribute of this process; see the manual page of that name."""
    padded = [ctypes.c_ulong(a) for a in (*arguments, 0, 0, 0, 0)[:4]]
    return _check(_libc.prctl(ctypes.c_int(option), *padded), f"prctl {option}")


def personality(value: int) -> int:
    """Sets the execution domain, which commands inherit, and returns the one before."""
    return _check(_libc.personality(ctypes.c_ulong(value)), "personality")


def drop_effective_capabilities() -> None:
    """Empties the effective and inheritable sets; what is permitted stays permitted."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()
    _check(_libc.capget(header, sets), "capget")
    for half in (0, 3):
        sets[half] = sets[half + 2] = 0
    _check(_libc.capset(header, sets), "capset")


class FilterProgram:
    """A seccomp program, 8 bytes per instruction, as the kernel wants it.

    Attributes:
        address: Of the record that describes it; good for as long as this object lives.
    """

    def __init__(self, program: bytes) -> None:
        self._instructions = ctypes.create_string_buffer(program, len(program))
        self._record = _Program(len(program) // 8, ctypes.addressof(self._instructions))
        self.address = ctypes.addressof(self._record)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def install_filter(program: bytes, flags: int = 0) -> int:
    """Puts a seccomp program (8 bytes per instruction) on this process and all it starts.

    Returns what the flags ask for, such as the descriptor of a listener.
    """
    record = FilterProgram(program)
    return _syscall("seccomp", 1, flags, ctypes.c_void_p(record.address))


def oom_score() -> int:
    """Returns how likely this process is to be killed when memory runs out."""
    # As bytes: a codec may have to be imported, and here is nothing to import from.
    with open("/proc/self/oom_score_adj", "rb") as file:
        return int(file.read())


def raise_oom_score(value: int) -> None:
    """Makes this process likelier to be killed when memory runs out; never less likely than it is.

    Some containers start with the highest score and may not lower it.
    """
    if value > oom_score():
        write_text("/proc/self/oom_score_adj", str(value))


def write_text(path: str, text: str) -> None:
    """Writes a small file in one system call, as the kernel's own files need."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
