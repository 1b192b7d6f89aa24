"""The numbers of the system calls that a set-up consists of, for each architecture."""

import platform

_MACHINES = ("x86_64", "aarch64")
# Those that work on a folder's descriptor, where there are two: aarch64 has no others.
_NUMBERS = {
    "capset": (126, 91),
    "chdir": (80, 49),
    "clone": (56, 220),
    "close": (3, 57),
    "close_range": (436, 436),
    "dup3": (292, 24),
    "fchmodat": (268, 53),
    "ioctl": (16, 29),
    "landlock_create_ruleset": (444, 444),
    "landlock_restrict_self": (446, 446),
    "mkdirat": (258, 34),
    "mknodat": (259, 33),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "openat": (257, 56),
    "openat2": (437, 437),
    "personality": (135, 92),
    "pivot_root": (155, 41),
    "prctl": (157, 167),
    "prlimit64": (302, 261),
    "rt_sigaction": (13, 134),
    "seccomp": (317, 277),
    "sethostname": (170, 161),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "symlinkat": (266, 36),
    "umount2": (166, 39),
    "unlinkat": (263, 35),
    "utimensat": (280, 88),
    "write": (1, 64),
}


def machine() -> str:
    """Returns the architecture; raises OSError (ENOSYS) where the numbers are not known."""
    name = platform.machine()
    if name not in _MACHINES:
        raise OSError(38, f"no system call table for {name}")
    return name


def number(name: str) -> int:
    """Returns the number of a system call; raises OSError as `machine`."""
    return _NUMBERS[name][_MACHINES.index(machine())]
