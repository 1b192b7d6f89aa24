"""The filter on system calls that init and every command live under.

Classic BPF over ``struct seccomp_data`` (nr, arch, instruction pointer, six 64-bit arguments).
What is refused follows the reasoning of Docker's default profile, made stricter where the
sandbox's own design needs it: no new namespaces, no other socket families than UNIX, INET and
INET6 (AF_VSOCK is not confined by a network namespace), no change of another process's limits
(prlimit checks only the uid, and init has the commands' uid), no leases (one on a file of a shared
layer would keep every other sandbox waiting to open it), no System V objects (they outlive their
command, and no limit counts their memory).
"""

import struct
import sys

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000

# name: (x86_64, aarch64); None where the architecture lacks the call.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setns": (308, 268),
    "unshare": (272, 97),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "open_tree_attr": (467, 467),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "fanotify_init": (300, 262),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "lookup_dcookie": (212, 18),
    "nfsservctl": (180, 42),
    "settimeofday": (164, 170),
    "adjtimex": (159, 171),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "vmsplice": (278, 75),
    "lsm_set_self_attr": (460, 460),
    "ioperm": (173, None),
    "iopl": (172, None),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "ustat": (136, None),
    "sysfs": (139, None),
    "_sysctl": (156, None),
}
_INSPECTED = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "socket": (41, 198),
    "prlimit64": (302, 261),
    "ioctl": (16, 29),
    "fcntl": (72, 25),
}

_NAMESPACE_FLAGS = 0x7E020000
_FAMILIES = (1, 2, 10)  # AF_UNIX, AF_INET, AF_INET6
_TERMINAL_INJECTIONS = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX

_SET_LEASE = 1024

_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_EPERM, _ENOSYS, _EAFNOSUPPORT = (0x00050000 | number for number in (1, 38, 97))

_Instruction = tuple[int, int, int, int]


def _argument(index: int) -> _Instruction:
    """Loads the low 32 bits of an argument; the kernel itself looks no further for these calls."""
    return (_LOAD, 0, 0, 16 + 8 * index + (4 if sys.byteorder == "big" else 0))


def _only_for(number: int, block: list[_Instruction]) -> list[_Instruction]:
    """Runs a block, which must return, for one system call."""
    return [(_IF_EQUAL, 0, len(block), number), *block]


def _one_of(values: tuple[int, ...], *, matched: int, otherwise: int) -> list[_Instruction]:
    """Returns one answer where the loaded word is among the values, another where it is not."""
    tests = [(_IF_EQUAL, len(values) - i, 0, value) for i, value in enumerate(values)]
    return [*tests, (_RETURN, 0, 0, otherwise), (_RETURN, 0, 0, matched)]


def program(machine: str) -> bytes:
    """Returns the filter for ``"x86_64"`` or ``"aarch64"``, 8 bytes per instruction."""
    column = list(_ARCHITECTURES).index(machine)
    number = {name: numbers[column] for name, numbers in _INSPECTED.items()}
    code: list[_Instruction] = [
        (_LOAD, 0, 0, 4),
        (_IF_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_IF_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _ENOSYS),
        # glibc falls back to clone, whose flags can be read here; those of clone3 cannot.
        *_only_for(number["clone3"], [(_RETURN, 0, 0, _ENOSYS)]),
        *_only_for(
            number["clone"],
            [
                _argument(0),
                (_IF_BITS, 0, 1, _NAMESPACE_FLAGS),
                (_RETURN, 0, 0, _EPERM),
                (_RETURN, 0, 0, _ALLOW),
            ],
        ),
        *_only_for(
            number["socket"],
            [_argument(0), *_one_of(_FAMILIES, matched=_ALLOW, otherwise=_EAFNOSUPPORT)],
        ),
        *_only_for(
            number["prlimit64"],
            [_argument(0), *_one_of((0,), matched=_ALLOW, otherwise=_EPERM)],
        ),
        *_only_for(
            number["ioctl"],
            [_argument(1), *_one_of(_TERMINAL_INJECTIONS, matched=_EPERM, otherwise=_ALLOW)],
        ),
        *_only_for(
            number["fcntl"],
            [_argument(1), *_one_of((_SET_LEASE,), matched=_EPERM, otherwise=_ALLOW)],
        ),
    ]
    for numbers in _REFUSED.values():
        refused = numbers[column]
        if refused is not None:
            code += _only_for(refused, [(_RETURN, 0, 0, _EPERM)])
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)
