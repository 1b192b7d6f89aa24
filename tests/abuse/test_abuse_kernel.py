"""The filter refuses system calls from inside, and the 32-bit entry is closed."""

import platform

import pytest
from arena import Arena
from attack import Attack
from attacks_kernel import ALL_AT_ONCE

# A machine-code function: int 0x80, the entry for 32-bit programs, with getpid's number there.
_INT_80 = "b814000000cd80c3"
_RUN_CODE = f"""
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex('{_INT_80}'))
function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
attempt('entry', lambda: child(function) not in (-signal.SIGSYS, -signal.SIGSEGV))
"""


def test_kernel_answers_the_same_calls_without_the_filter(arena: Arena) -> None:
    with arena.without("system-call filter") as attacker:
        report = arena.run(ALL_AT_ONCE, attacker).output
    answers = dict(line.split()[:2] for line in report.splitlines())
    assert answers.keys() == {attempt.split()[0] for attempt in ALL_AT_ONCE.report.split(",")}
    # The others are those that only a privileged process may make anyway.
    assert sum(answer != "EPERM" for answer in answers.values()) > len(answers) // 3


@pytest.mark.skipif(
    platform.machine() != "x86_64", reason="only x86_64 has an entry for 32-bit programs"
)
def test_entry_for_32_bit_programs_kills(arena: Arena) -> None:
    arena.assert_blocked(Attack(name="int 0x80", script=_RUN_CODE, report="entry nothing"))
