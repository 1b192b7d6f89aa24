"""The filter on system calls that init and every command live under.

Classic BPF over ``struct seccomp_data`` (nr, arch, instruction pointer, six 64-bit arguments).
What is refused follows the reasoning of Docker's default profile, made stricter where the
sandbox's own design needs it: no new namespaces, no other socket families than UNIX, INET and
INET6 (AF_VSOCK is not confined by a network namespace), no change of another process's limits
(prlimit checks only the uid, and init has the commands' uid), no leases (one on a file of a shared
layer would keep every other sandbox waiting to open it), no System V objects (they outlive their
command, and no limit counts their memory), no contexts of the old asynchronous I/O (the machine has
one store of them), nothing that loads a module into the kernel (protocols, line disciplines), no
other limit on core dumps (see `lockdown`). Calls that are younger than this list do not exist.
"""

import struct
import sys

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# Also those of the x32 interface, which have bit 30 set.
_FIRST_UNKNOWN = 470

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
    "io_setup": (206, 0),
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
# They would write out what all of the machine has not yet written; nothing of a sandbox's lasts.
_IGNORED = {"sync": (162, 81), "syncfs": (306, 267)}
# Memory behind a descriptor is in no process's sum unless mapped: none could be held to a limit.
_MEMORY_FILES = {"memfd_create": (319, 279), "memfd_secret": (447, 447)}
_INSPECTED = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "setrlimit": (160, 164),
    "prlimit64": (302, 261),
    "ioctl": (16, 29),
    "fcntl": (72, 25),
    "setsockopt": (54, 208),
}

_NAMESPACE_FLAGS = 0x7E020000
_AF_UNIX = 1
_INTERNET = (2, 10)  # AF_INET, AF_INET6
_SOCKET_TYPES, _TYPE_BITS = (1, 2), 0xF  # SOCK_STREAM, SOCK_DGRAM, below flags
_PROTOCOLS = (0, 6, 17)  # the type's own, TCP, UDP
_TERMINAL_CHANGES = (0x5412, 0x541C, 0x5423)  # TIOCSTI, TIOCLINUX, TIOCSETD
_CORE_LIMIT = 4  # RLIMIT_CORE

_SET_LEASE = 1024
_SOL_SOCKET, _BUFFER_SIZES = 1, (7, 8)  # SO_SNDBUF, SO_RCVBUF

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_IF_EQUAL, _IF_AT_LEAST, _IF_BITS = 0x15, 0x35, 0x45
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_DONE, _EPERM, _ENOSYS = (0x00050000 | number for number in (0, 1, 38))
_EPROTONOSUPPORT, _ESOCKTNOSUPPORT, _EAFNOSUPPORT = (0x00050000 | n for n in (93, 94, 97))

_Instruction = tuple[int, int, int, int]


def _argument(index: int, *, high: bool = False) -> _Instruction:
    """Loads half of an argument; the kernel looks at the low half alone, but for pointers."""
    return (_LOAD, 0, 0, 16 + 8 * index + (4 if high != (sys.byteorder == "big") else 0))


def _only_for(number: int, block: list[_Instruction]) -> list[_Instruction]:
    """Runs a block, which must return, for one system call."""
    return [(_IF_EQUAL, 0, len(block), number), *block]


def _require(values: tuple[int, ...], otherwise: int) -> list[_Instruction]:
    """Goes on where the loaded word is among the values, and returns an answer where it is not."""
    tests = [(_IF_EQUAL, len(values) - i, 0, value) for i, value in enumerate(values)]
    return [*tests, (_RETURN, 0, 0, otherwise)]


def _refuse(values: tuple[int, ...], answer: int) -> list[_Instruction]:
    """Returns an answer where the loaded word is among the values, and goes on where it is not."""
    tests = [(_IF_EQUAL, len(values) - 1 - i, 0, value) for i, value in enumerate(values[:-1])]
    return [*tests, (_IF_EQUAL, 0, 1, values[-1]), (_RETURN, 0, 0, answer)]


def _inspections() -> dict[str, list[_Instruction]]:
    """Returns, for each call whose arguments matter, what is done before it is allowed."""
    return {
        # glibc falls back to clone, whose flags can be read here; those of clone3 cannot.
        "clone3": [(_RETURN, 0, 0, _ENOSYS)],
        "clone": [_argument(0), (_IF_BITS, 0, 1, _NAMESPACE_FLAGS), (_RETURN, 0, 0, _EPERM)],
        "socket": [
            _argument(0),
            (_IF_EQUAL, 0, 1, _AF_UNIX),
            (_RETURN, 0, 0, _ALLOW),
            *_require(_INTERNET, _EAFNOSUPPORT),
            _argument(1),
            (_AND, 0, 0, _TYPE_BITS),
            *_require(_SOCKET_TYPES, _ESOCKTNOSUPPORT),
            _argument(2),
            *_require(_PROTOCOLS, _EPROTONOSUPPORT),
        ],
        "socketpair": [_argument(0), *_require((_AF_UNIX,), _EAFNOSUPPORT)],
        "setrlimit": [_argument(0), *_refuse((_CORE_LIMIT,), _DONE)],
        "prlimit64": [
            _argument(0),
            *_require((0,), _EPERM),
            _argument(1),
            (_IF_EQUAL, 1, 0, _CORE_LIMIT),
            (_RETURN, 0, 0, _ALLOW),
            # A null pointer only asks for the limit.
            _argument(2),
            *_require((0,), _DONE),
            _argument(2, high=True),
            *_require((0,), _DONE),
        ],
        "ioctl": [_argument(1), *_refuse(_TERMINAL_CHANGES, _EPERM)],
        "fcntl": [_argument(1), *_refuse((_SET_LEASE,), _EPERM)],
        # A wish that the kernel may grant or not; here each socket keeps the size it has.
        "setsockopt": [
            _argument(1),
            *_require((_SOL_SOCKET,), _ALLOW),
            _argument(2),
            *_refuse(_BUFFER_SIZES, _DONE),
        ],
    }


def program(machine: str, *, has_memory_files: bool = False) -> bytes:
    """Returns the filter, 8 bytes per instruction.

    Args:
        machine: ``"x86_64"`` or ``"aarch64"``.
        has_memory_files: Whether ``memfd_create`` exists.
    """
    column = list(_ARCHITECTURES).index(machine)
    code: list[_Instruction] = [
        (_LOAD, 0, 0, 4),
        (_IF_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_IF_AT_LEAST, 0, 1, _FIRST_UNKNOWN),
        (_RETURN, 0, 0, _ENOSYS),
    ]
    for name, block in _inspections().items():
        code += _only_for(_INSPECTED[name][column], [*block, (_RETURN, 0, 0, _ALLOW)])
    for ignored in _IGNORED.values():
        code += _only_for(ignored[column], [(_RETURN, 0, 0, _DONE)])
    for absent in () if has_memory_files else _MEMORY_FILES.values():
        code += _only_for(absent[column], [(_RETURN, 0, 0, _ENOSYS)])
    for numbers in _REFUSED.values():
        refused = numbers[column]
        if refused is not None:
            code += _only_for(refused, [(_RETURN, 0, 0, _EPERM)])
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)
