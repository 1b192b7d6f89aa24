"""Numbers of system calls, functions for calls that Python lacks, named steps of a set-up.

All calls use ``ctypes.PyDLL``, which keeps the interpreter's lock: a raw ``clone`` is then as safe
as ``os.fork`` in a process with one thread. The constants are from linux/mount.h,
linux/sched.h, linux/prctl.h and linux/capability.h.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, get_args

# Name, number on x86_64, number on aarch64; "-" if the architecture lacks the call.
_TABLE = """
    _sysctl 156 -, acct 163 89, add_key 248 217, adjtimex 159 171, bpf 321 280, cachestat 451 451,
    capset 126 91, chroot 161 51, clock_adjtime 305 266, clock_settime 227 112, clone 56 220,
    clone3 435 435, close_range 436 436, connect 42 203, delete_module 176 106, fadvise64 221 223,
    fanotify_init 300 262, fcntl 72 25, file_setattr 469 469, finit_module 313 273,
    fremovexattr 199 16, fsconfig 431 431, fsetxattr 190 7, fsmount 432 432, fsopen 430 430,
    fspick 433 433, init_module 175 105, io_setup 206 0, io_uring_enter 426 426,
    io_uring_register 427 427, io_uring_setup 425 425, ioctl 16 29, ioperm 173 -, iopl 172 -,
    kcmp 312 272, kexec_file_load 320 294, kexec_load 246 104, keyctl 250 219,
    landlock_add_rule 445 445, landlock_create_ruleset 444 444, landlock_restrict_self 446 446,
    listmount 458 458, lookup_dcookie 212 18, lremovexattr 198 15, lsetxattr 189 6,
    lsm_set_self_attr 460 460, madvise 28 233, mbind 237 235, memfd_create 319 279,
    memfd_secret 447 447, migrate_pages 256 238, mincore 27 232, modify_ldt 154 -, mount 165 40,
    mount_setattr 442 442, move_mount 429 429, move_pages 279 239, msgget 68 186,
    name_to_handle_at 303 264, nfsservctl 180 42, open 2 -, open_by_handle_at 304 265,
    open_tree 428 428, open_tree_attr 467 467, openat 257 56, openat2 437 437,
    perf_event_open 298 241, personality 135 92, pidfd_getfd 438 438, pivot_root 155 41,
    prctl 157 167, preadv2 327 286, prlimit64 302 261, process_madvise 440 440,
    process_vm_readv 310 270, process_vm_writev 311 271, ptrace 101 117, quotactl 179 60,
    quotactl_fd 443 443, readahead 187 213, reboot 169 142, removexattr 197 14,
    removexattrat 466 466, request_key 249 218, seccomp 317 277, semget 64 190,
    set_mempolicy 238 237, setdomainname 171 162, sethostname 170 161, setns 308 268,
    setrlimit 160 164, setsockopt 54 208, settimeofday 164 170, setxattr 188 5, setxattrat 463 463,
    shmget 29 194, signalfd4 289 74, socket 41 198, socketpair 53 199, statmount 457 457,
    swapoff 168 225, swapon 167 224, sync 162 81, syncfs 306 267, sysfs 139 -, syslog 103 116,
    truncate 76 45, umount2 166 39, unshare 272 97, uselib 134 -, userfaultfd 323 282, ustat 136 -,
    vhangup 153 58, vmsplice 278 75
"""
_MACHINES = ("x86_64", "aarch64")

NEW_MOUNT = 0x00020000
NEW_CGROUP = 0x02000000
NEW_UTS = 0x04000000
NEW_IPC = 0x08000000
NEW_USER = 0x10000000
NEW_PID = 0x20000000
NEW_NET = 0x40000000
NAMESPACES = NEW_MOUNT | NEW_CGROUP | NEW_UTS | NEW_IPC | NEW_USER | NEW_PID | NEW_NET

READ_ONLY = 1
NOSUID = 2
NODEV = 4
NOEXEC = 8
REMOUNT = 32
_BIND = 1 << 12
_RECURSIVE = 1 << 14
_SLAVE = 1 << 19
_DETACH = 2
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_FROM_FD = 0x4

PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4
PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4

_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_RESOLVE_NO_MAGIC_LINKS = 0x02

_SIGCHLD = 17
_CAPABILITY_VERSION = 0x20080522
_SET_FILTER = 1

_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
# One declaration for integers and addresses: ctypes converts declared arguments twice as fast.
_libc.syscall.argtypes = (ctypes.c_long, *[ctypes.c_void_p] * 6)
_ZEROS = (0,) * 6


@cache
def machine() -> str:
    """Returns the architecture; raises OSError (ENOSYS) if `_TABLE` lacks it."""
    name = os.uname().machine
    if name not in _MACHINES:
        raise OSError(errno.ENOSYS, f"the machine must be one of {_MACHINES}, got {name}")
    return name


@cache
def numbers(machine: str) -> Mapping[str, int]:
    """Returns the numbers of the system calls that an architecture has, by name."""
    rows = [row.split() for row in _TABLE.split(",")]
    column = 1 + _MACHINES.index(machine)
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


@cache
def number(name: str) -> int:
    """Returns the number of a system call on this machine; raises OSError as `machine`."""
    return numbers(machine())[name]


# The kinds of steps; a failed step's kind selects error and remedy in `setup_errors`.
StepKind = Literal[
    "", "request", "target", "namespaces", "users", "overlay", "landlock", "modules", "bash"
]


class SetupError(Exception):
    """A step of a set-up failed.

    Attributes:
        step: The attempted step, such as ``"mount the overlay"``.
        errno: The system's error number; 0 for other errors.
        reason: The message of the error, one line.
        kind: The kind of the step; selects the error and the remedy in `setup_errors`.
    """

    def __init__(self, step: str, errno: int, reason: str, kind: StepKind = "") -> None:
        super().__init__(f"could not {step}: {reason}")
        self.step = step
        self.errno = errno
        self.reason = reason
        self.kind = kind

    def to_json(self) -> dict[str, Any]:
        """Returns the error as the header of a reply."""
        return {"error": vars(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "SetupError":
        """Returns the error that the value of ``error`` in a reply's header describes.

        Raises:
            ValueError: ``data`` is malformed.
        """
        match data:
            case {"step": str(name), "errno": int(errno), "reason": str(reason), "kind": kind} if (
                kind in get_args(StepKind)
            ):
                return cls(name, errno, reason, kind)
        raise ValueError(f"malformed error {data!r:.99}")


class step:  # noqa: N801 - reads as a statement; a generator would touch more memory
    """A context that converts ``OSError`` to a `SetupError` with the name of the step."""

    __slots__ = ("_kind", "_name")

    def __init__(self, name: str, kind: StepKind = "") -> None:
        self._name = name
        self._kind = kind

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError):
            raise SetupError(self._name, error.errno or 0, str(error), self._kind) from error


def call(name: str, *arguments: object, tolerates: int = 0) -> int:
    """Makes a system call and returns its result.

    Args:
        name: The name of the call.
        arguments: Numbers, and strings and bytes, which are passed by address. The message of an
            error contains the strings.
        tolerates: The number of an error for which the result is -1.

    Raises:
        OSError: The call failed.
    """
    values = [a.encode("utf-8", "surrogateescape") if type(a) is str else a for a in arguments]
    result: int = _libc.syscall(number(name), *values, *_ZEROS[len(values) :])
    if result < 0 and (code := ctypes.get_errno()) != tolerates:
        strings = (a for a in arguments if isinstance(a, str))
        raise OSError(code, f"{os.strerror(code)} ({' '.join((name, *strings))})")
    return result


def write_text(path: str, text: str) -> None:
    """Writes a small file in one system call, as files of /proc require."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def mount(kind: str, target: str, flags: int, options: str = "", *, tolerates: int = 0) -> None:
    """Mounts a new file system; the ``tolerates`` of `call` applies."""
    arguments = (kind, target, kind.encode(), flags, options.encode())
    call("mount", *arguments, tolerates=tolerates)


def bind(source: str, target: str, *, recursive: bool = True) -> None:
    """Mounts a folder or a file at a second path."""
    call("mount", source, target, 0, _BIND | (_RECURSIVE if recursive else 0), 0)


def unmount(target: str) -> None:
    """Detaches a mount and all mounts below it; the kernel frees them after their last use."""
    call("umount2", target, _DETACH)


def restrict(path: str, flags: int, *, recursive: bool = True) -> None:
    """Adds flags to a mount and, if ``recursive``, to all mounts below it."""
    attributes = struct.pack("4Q", flags, 0, 0, 0)
    depth = _AT_RECURSIVE if recursive else 0
    call("mount_setattr", _AT_FDCWD, path, depth, attributes, len(attributes))


def pivot(new_root: str, old_root: str) -> None:
    """Makes ``new_root`` the root; the previous root is then at ``old_root``, a path below it."""
    os.chdir(new_root)
    call("pivot_root", ".", old_root)
    os.chdir("/")


def raise_oom_score(value: int) -> None:
    """Raises the out-of-memory score of this process; never lowers it.

    Some containers start with the highest score and may not lower it.
    """
    file = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
    try:
        if value > int(os.read(file, 16)):
            os.write(file, b"%d" % value)
    finally:
        os.close(file)


def prctl(option: int, *arguments: int) -> None:
    """Sets an attribute of this process by the system call of this name."""
    call("prctl", option, *(*arguments, 0, 0, 0, 0)[:4])


def set_user(uid: int, gid: int) -> None:
    """Switches to a user and one group; the user then owns this process's files in /proc."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    prctl(PR_SET_DUMPABLE, 1)  # cleared by the change


def set_capabilities(effective: int, permitted: int) -> None:
    """Sets this process's capabilities, as bit masks; the mask of inheritable capabilities is 0."""
    masks = effective, permitted, 0
    halves = (mask >> shift & 0xFFFFFFFF for shift in (0, 32) for mask in masks)
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    call("capset", header, struct.pack("6I", *halves))


def clone(flags: int) -> int:
    """Forks into new namespaces; returns 0 in the child, the child's pid in the parent."""
    return call("clone", flags | _SIGCHLD, 0, 0, 0, 0)


def unshare(flags: int) -> None:
    """Moves this process into new namespaces."""
    call("unshare", flags)


def enter_mounts(descriptor: int) -> None:
    """Enters a mount namespace; its root becomes this process's root and working folder."""
    call("setns", descriptor, NEW_MOUNT)


def make_slaves() -> None:
    """Makes every mount a slave: the host's unmounts propagate here, but not the reverse."""
    call("mount", 0, "/", 0, _SLAVE | _RECURSIVE, 0)


def clone_tree(path: str) -> int:
    """Returns a descriptor of a detached copy of the mounts at and below ``path``."""
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE
    return call("open_tree", _AT_FDCWD, path, flags)


def attach_tree(descriptor: int, target: str) -> None:
    """Mounts a copy from `clone_tree`."""
    call("move_mount", descriptor, b"", _AT_FDCWD, target, _MOVE_MOUNT_FROM_FD)


def open_without_magic(path: str, flags: int, mode: int = 0) -> int:
    """Opens a file as ``os.open`` does, but refuses magic links such as ``/proc/self/fd/3``.

    By such a link, init would open the file of one of its descriptors, for example a folder below
    a mount. Such a path raises OSError (ELOOP).
    """
    how = struct.pack("3Q", flags, mode, _RESOLVE_NO_MAGIC_LINKS)
    try:
        return call("openat2", _AT_FDCWD, path, how, len(how))
    except OSError as error:
        code = error.errno or 0
        raise OSError(code, os.strerror(code), path) from None


def personality(value: int) -> int:
    """Sets the execution domain, which commands inherit, and returns the previous domain."""
    return call("personality", value)


def install_filter(program: bytes) -> None:
    """Installs a seccomp filter (8 bytes per instruction) in this process and its descendants."""
    address = ctypes.cast(ctypes.c_char_p(program), ctypes.c_void_p).value or 0
    call("seccomp", _SET_FILTER, 0, struct.pack("H6xQ", len(program) // 8, address))
