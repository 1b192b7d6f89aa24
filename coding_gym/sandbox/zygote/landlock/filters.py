"""Filters on system calls besides that of the ``namespace`` sandbox: sockets, and metadata.

Classic BPF, as in `coding_gym.sandbox.zygote.seccomp`, which also kills foreign architectures.
"""

import struct

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# name: (x86_64, aarch64); None where the architecture lacks the call.
_SOCKETS = {"socket": (41, 198), "connect": (42, 203)}
_SOCKET_PAIR = {"x86_64": 53, "aarch64": 199}
_ATTRIBUTES: dict[str, tuple[int, int]] = {
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
_METADATA: dict[str, tuple[int, int | None]] = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "lchown": (94, None),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
}
_FORKS: dict[str, tuple[int, int | None]] = {  # clone3 does not exist inside
    "clone": (56, 220),
    "fork": (57, None),
    "vfork": (58, None),
}
# Calls with paths that cut a file down, or could: the flags of openat2 are out of sight.
_CUTTING = {"truncate": (76, 45)}
_HIDING = {"openat2": (437, 437)}
# open and openat, and which argument their flags are.
_OPENING = ((2, None, 1), (257, 56, 2))
_KIND_MASK, _DATAGRAM = 0xF, 2
_ACCESS_MASK, _TRUNCATE = 0x3, 0x200
_LOAD, _IF_EQUAL, _AND, _RETURN = 0x20, 0x15, 0x54, 0x06
_ALLOW, _ASK = 0x7FFF0000, 0x7FC00000
_EACCES, _ENOSYS, _EOPNOTSUPP = 0x0005000D, 0x00050026, 0x0005005F

_Instruction = tuple[int, int, int, int]


def no_sockets(machine: str) -> bytes:
    """Returns a filter that leaves nothing but pairs of connected UNIX sockets.

    There is no network namespace to be alone in, and Landlock up to its seventh version knows no
    datagrams and no UNIX sockets with paths, such as those of a container engine. A pair of
    datagram sockets is refused too: each end could still be sent from to any path.
    """
    column = list(_ARCHITECTURES).index(machine)
    code = [
        *_for_each([numbers[column] for numbers in _SOCKETS.values()], _EACCES),
        (_IF_EQUAL, 0, 4, _SOCKET_PAIR[machine]),
        (_LOAD, 0, 0, 24),
        (_AND, 0, 0, _KIND_MASK),
        (_IF_EQUAL, 0, 1, _DATAGRAM),
        (_RETURN, 0, 0, _EACCES),
    ]
    return _packed(machine, code)


def no_attributes(machine: str) -> bytes:
    """Returns a filter that refuses to change extended attributes, as some file systems do."""
    column = list(_ARCHITECTURES).index(machine)
    return _packed(machine, _for_each([n[column] for n in _ATTRIBUTES.values()], _EOPNOTSUPP))


def no_cutting(machine: str) -> bytes:
    """Returns a filter that lets nobody cut down a file that may not be written.

    Landlock before its third version does not know that reading a file can empty it.
    """
    column = list(_ARCHITECTURES).index(machine)
    code = [
        *_for_each([numbers[column] for numbers in _CUTTING.values()], _EACCES),
        *_for_each([numbers[column] for numbers in _HIDING.values()], _ENOSYS),
    ]
    for x86_64, aarch64, index in _OPENING:
        number = (x86_64, aarch64)[column]
        if number is not None:
            code += [
                (_IF_EQUAL, 0, 5, number),
                (_LOAD, 0, 0, 16 + 8 * index),
                (_AND, 0, 0, _ACCESS_MASK | _TRUNCATE),
                (_IF_EQUAL, 0, 1, _TRUNCATE),
                (_RETURN, 0, 0, _EACCES),
                (_RETURN, 0, 0, _ALLOW),
            ]
    return _packed(machine, code)


def ask_init(machine: str) -> bytes:
    """Returns a filter that asks the listener about metadata of files and about new processes."""
    calls = [*metadata_calls(machine), *fork_calls(machine)]
    return _packed(machine, _for_each(calls, _ASK))


def metadata_calls(machine: str) -> dict[int, str]:
    """Returns the calls that change permissions, owners and dates: their names, by number."""
    return _by_number(machine, _METADATA)


def fork_calls(machine: str) -> dict[int, str]:
    """Returns the calls that make a process or a thread: their names, by number."""
    return _by_number(machine, _FORKS)


def _by_number(machine: str, calls: dict[str, tuple[int, int | None]]) -> dict[int, str]:
    column = list(_ARCHITECTURES).index(machine)
    pairs = ((numbers[column], name) for name, numbers in calls.items())
    return {number: name for number, name in pairs if number is not None}


def _for_each(numbers: list[int], answer: int) -> list[_Instruction]:
    code: list[_Instruction] = []
    for number in numbers:
        code += [(_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, answer)]
    return code


def _packed(machine: str, code: list[_Instruction]) -> bytes:
    code = [
        (_LOAD, 0, 0, 4),
        (_IF_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _ALLOW),  # another filter kills it
        (_LOAD, 0, 0, 0),
        *code,
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)
