"""A reader of classic BPF programs, as seccomp runs them (kernel/seccomp.c, bpf(4))."""

import struct

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_JUMPS = {
    0x05: lambda _a, _k: True,
    0x15: lambda a, k: a == k,
    0x25: lambda a, k: a > k,
    0x35: lambda a, k: a >= k,
    0x45: lambda a, k: bool(a & k),
}


def answer(program: bytes, architecture: int, number: int, arguments: tuple[int, ...] = ()) -> int:
    """Returns the 32-bit verdict on one system call of a little-endian machine.

    Args:
        program: 8 bytes per instruction.
        architecture: The ``AUDIT_ARCH_`` value.
        number: Of the call, as unsigned 32 bits.
        arguments: Up to six, unsigned 64 bits; the others are 0.
    """
    full = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("<IIQ6Q", number, architecture, 0, *full)
    code = list(struct.iter_unpack("<HBBI", program))
    place, word = 0, 0
    while True:
        operation, if_true, if_false, constant = code[place]
        place += 1
        if operation == _RETURN:
            return constant
        if operation == _LOAD:
            (word,) = struct.unpack_from("<I", data, constant)
        elif operation == _AND:
            word &= constant
        elif operation in _JUMPS:
            place += if_true if _JUMPS[operation](word, constant) else if_false
        else:
            raise AssertionError(f"no such instruction in a filter of ours: {operation:#x}")
