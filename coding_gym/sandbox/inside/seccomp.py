"""Seccomp filters on the system calls of init and of every command.

Classic BPF over ``struct seccomp_data`` (nr, arch, instruction pointer, six 64-bit arguments).
`program` is for all sandboxes. It is based on Docker's default profile and also refuses or ignores:

- new namespaces;
- socket families other than UNIX, INET, INET6, and NETLINK's first protocol, which lists network
  devices (a network namespace does not confine AF_VSOCK);
- changes of another process's limits (prlimit checks only the uid, which init shares);
- leases (a lease on a file of a shared layer would block every other sandbox that opens it);
- System V objects (they outlive their command, and no limit counts their memory);
- contexts of Linux AIO (`io_setup`; the machine has a fixed number of them);
- calls that load a kernel module (protocols, line disciplines);
- changes of the limit on core dumps (see `lockdown`);
- new Landlock rules (no limit counts their memory);
- calls that inspect or evict pages of the page cache (they could send bytes to later sandboxes).

Newer system calls, with numbers from `_FIRST_UNKNOWN` on, fail with ENOSYS.

`landlock_program` is a second filter, only for ``landlock`` sandboxes.
"""

import errno
import fcntl
import os
import resource
import socket
import struct
import termios
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from coding_gym.sandbox.inside.syscalls import NAMESPACES, numbers

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# The first number without a rule; numbers of the x32 interface, with bit 30 set, are higher.
_FIRST_UNKNOWN = 470

_REFUSED_CALLS = {
    "other processes": "ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp",
    "mounts and namespaces": """
        mount umount2 pivot_root chroot setns unshare open_tree open_tree_attr move_mount fsopen
        fsconfig fsmount fspick mount_setattr statmount listmount""",
    "files by handle": "name_to_handle_at open_by_handle_at lookup_dcookie nfsservctl",
    "keys": "add_key request_key keyctl",
    "programs in the kernel": "bpf perf_event_open userfaultfd fanotify_init lsm_set_self_attr",
    "I/O that bypasses the filter": "io_uring_setup io_uring_enter io_uring_register io_setup",
    "System V IPC": "shmget semget msgget",
    "the kernel itself": """
        init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff acct
        quotactl quotactl_fd syslog vhangup sethostname setdomainname""",
    "clocks": "settimeofday adjtimex clock_settime clock_adjtime",
    "NUMA placement, and pages in pipes": "mbind set_mempolicy migrate_pages move_pages vmsplice",
    "old interfaces": "ioperm iopl modify_ldt uselib ustat sysfs _sysctl",
}
# Calls that succeed without an effect. The first two would write out all unwritten data of the
# machine, and sandboxes need no durable files. The other two evict or load shared pages of files.
_IGNORED_CALLS = ("sync", "syncfs", "fadvise64", "readahead")
# Calls that fail as on a kernel without them, so that programs use alternatives. No limit bounds
# memory files that are not mapped, or the kernel's memory for Landlock rules. glibc calls clone in
# place of clone3: a filter can read the flags of clone, but not of clone3.
_MISSING_CALLS = (
    "clone3",
    *("memfd_create", "memfd_secret", "landlock_create_ruleset", "landlock_add_rule"),
    *("mincore", "cachestat"),
)
_SOCKET_CALLS = ("socket", "connect")
_ATTRIBUTE_CALLS = (
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat", "file_setattr"),
    *("removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
)

_SHARES_MEMORY, _VFORK = 0x100, 0x4000  # CLONE_VM, CLONE_VFORK
_TYPE_BITS = 0xF  # the type of a socket, without flags
_NETLINK_ROUTE = 0
_PROTOCOLS = (0, socket.IPPROTO_TCP, socket.IPPROTO_UDP)  # 0: the default of the socket's type
_SELF = 0  # as a process id: the caller
_TERMINAL_CHANGES = (termios.TIOCSTI, 0x541C, termios.TIOCSETD)  # 0x541C is TIOCLINUX
_EVICTIONS = (20, 21)  # MADV_COLD, MADV_PAGEOUT

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_IF_EQUAL, _IF_AT_LEAST = 0x15, 0x35
_ALL_BITS = 0xFFFFFFFF
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_DONE = _ERROR  # error 0: the call succeeds without an effect
_EPERM, _EACCES, _ENOSYS = _ERROR | errno.EPERM, _ERROR | errno.EACCES, _ERROR | errno.ENOSYS
_EOPNOTSUPP, _EPROTONOSUPPORT = _ERROR | errno.EOPNOTSUPP, _ERROR | errno.EPROTONOSUPPORT

_Instruction = tuple[int, int, int, int]
_Block = list[_Instruction]
_RETURN_ALLOW = (_RETURN, 0, 0, _ALLOW)


def _load(index: int, mask: int, *, high: bool = False) -> _Block:
    """Returns instructions that load the bits ``mask`` of the low or high half of an argument.

    The kernel reads only the low half of all checked arguments except pointers.
    """
    offset = 16 + 8 * index + (4 if high else 0)
    masking = [] if mask == _ALL_BITS else [(_AND, 0, 0, mask)]
    return [(_LOAD, 0, 0, offset), *masking]


def _require(
    index: int, values: Sequence[int], otherwise: int, *, mask: int = _ALL_BITS, high: bool = False
) -> _Block:
    """Returns instructions that return ``otherwise`` unless an argument is in ``values``."""
    tests = [(_IF_EQUAL, len(values) - i, 0, value) for i, value in enumerate(values)]
    return [*_load(index, mask, high=high), *tests, (_RETURN, 0, 0, otherwise)]


def _refuse(index: int, values: Sequence[int], action: int, *, mask: int = _ALL_BITS) -> _Block:
    """Returns instructions that return ``action`` if an argument is in ``values``."""
    tests = (_if_equal(value, [(_RETURN, 0, 0, action)]) for value in values)
    return [*_load(index, mask), *chain.from_iterable(tests)]


def _allow_if(index: int, value: int, block: _Block) -> _Block:
    """Returns instructions that allow a call after ``block`` if an argument equals ``value``."""
    return [*_load(index, _ALL_BITS), *_if_equal(value, [*block, _RETURN_ALLOW])]


def _if_equal(value: int, block: _Block) -> _Block:
    return [(_IF_EQUAL, 0, len(block), value), *block]


# The checks of calls that are allowed for some arguments only.
_CHECKS: Mapping[str, Sequence[_Block]] = {
    "clone": (
        _require(0, (0,), _EPERM, mask=NAMESPACES),
        # A parent that waits as in vfork must share its memory, as `MemoryWatch` assumes.
        _refuse(0, (_VFORK,), _EPERM, mask=_VFORK | _SHARES_MEMORY),
    ),
    "socket": (
        _allow_if(0, socket.AF_UNIX, []),
        _allow_if(0, socket.AF_NETLINK, _require(2, (_NETLINK_ROUTE,), _EPROTONOSUPPORT)),
        _require(0, (socket.AF_INET, socket.AF_INET6), _ERROR | errno.EAFNOSUPPORT),
        _require(
            1,
            (socket.SOCK_STREAM, socket.SOCK_DGRAM),
            _ERROR | errno.ESOCKTNOSUPPORT,
            mask=_TYPE_BITS,
        ),
        _require(2, _PROTOCOLS, _EPROTONOSUPPORT),
    ),
    "socketpair": (_require(0, (socket.AF_UNIX,), _ERROR | errno.EAFNOSUPPORT),),
    "setrlimit": (_refuse(0, (resource.RLIMIT_CORE,), _DONE),),
    "prlimit64": (
        _require(0, (_SELF,), _EPERM),
        _require(1, (resource.RLIMIT_CORE,), _ALLOW),
        # With a null pointer the call only reads the limit.
        _require(2, (0,), _DONE),
        _require(2, (0,), _DONE, high=True),
    ),
    "ioctl": (_refuse(1, _TERMINAL_CHANGES, _EPERM),),
    "fcntl": (_refuse(1, (fcntl.F_SETLEASE,), _EPERM),),
    # With RWF_NOWAIT the call fails if it would wait for the disk, which reveals cached pages.
    "preadv2": (_require(5, (0,), _EOPNOTSUPP),),
    "madvise": (_refuse(2, _EVICTIONS, _DONE),),
    # Requests to change a buffer size succeed and have no effect.
    "setsockopt": (
        _require(1, (socket.SOL_SOCKET,), _ALLOW),
        _refuse(2, (socket.SO_SNDBUF, socket.SO_RCVBUF), _DONE),
    ),
}


def program(machine: str) -> bytes:
    """Returns the filter of every sandbox on x86_64 or aarch64, 8 bytes per instruction."""
    refused_calls = (name for names in _REFUSED_CALLS.values() for name in names.split())
    rules = dict(_CHECKS) | _rules(_IGNORED_CALLS, _DONE)
    rules |= _rules(_MISSING_CALLS, _ENOSYS) | _rules(refused_calls, _EPERM)
    return _assemble(machine, rules, unknown=_ENOSYS)


def landlock_program(machine: str, *, has_truncation_right: bool) -> bytes:
    """Returns a filter that refuses calls that Landlock cannot control.

    The filter allows no sockets except pairs of connected UNIX sockets. There is no private network
    namespace, and Landlock up to ABI 7 controls neither datagrams nor UNIX sockets with paths, such
    as the socket of a container engine. A pair of datagram sockets, which SOCK_RAW makes too, is
    refused because each socket of it could still send to any path. Changes of extended attributes
    fail, as on file systems without them.

    Args:
        machine: The architecture.
        has_truncation_right: Whether Landlock controls truncation (from ABI 3 on). If not, O_TRUNC
            without a write mode would empty a file that may only be read; the filter refuses such
            calls. A filter cannot read the flags of openat2, so openat2 then fails with ENOSYS.
    """
    rules = _rules(_SOCKET_CALLS, _EACCES) | _rules(_ATTRIBUTE_CALLS, _EOPNOTSUPP)
    rules["socketpair"] = (
        _require(1, (socket.SOCK_STREAM, socket.SOCK_SEQPACKET), _EACCES, mask=_TYPE_BITS),
    )
    if not has_truncation_right:
        rules |= _rules(["truncate"], _EACCES) | _rules(["openat2"], _ENOSYS)
        for name, index in (("open", 1), ("openat", 2)):
            # Landlock checks neither reads nor writes for the fourth access mode, O_ACCMODE itself.
            flags = os.O_TRUNC, os.O_TRUNC | os.O_ACCMODE
            rules[name] = (_refuse(index, flags, _EACCES, mask=flags[1]),)
    return _assemble(machine, rules)


def _rules(names: Iterable[str], action: int) -> dict[str, Sequence[_Block]]:
    """Returns rules that return ``action`` for every call of these names."""
    return {name: ([(_RETURN, 0, 0, action)],) for name in names}


def _assemble(
    machine: str, rules: Mapping[str, Sequence[_Block]], *, unknown: int = _ALLOW
) -> bytes:
    """Returns a program that kills calls of another architecture and allows calls without a rule.

    Since Linux 5.11 the kernel does not run the program for calls that the program always allows,
    so a list of tests is fast enough.

    Args:
        machine: The architecture.
        rules: Checks by system call; a call that passes all of them is allowed.
        unknown: The action for calls from `_FIRST_UNKNOWN` on.
    """
    code: _Block = [
        (_LOAD, 0, 0, 4),
        (_IF_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_IF_AT_LEAST, 0, 1, _FIRST_UNKNOWN),
        (_RETURN, 0, 0, unknown),
    ]
    call_numbers = numbers(machine)
    for name, checks in rules.items():
        if name in call_numbers:
            code += _if_equal(call_numbers[name], [*chain.from_iterable(checks), _RETURN_ALLOW])
    return b"".join(struct.pack("HBBI", *instruction) for instruction in [*code, _RETURN_ALLOW])
