"""System calls that the filter refuses, each by its number, from inside."""

import pytest
from arena import Arena
from attack import _COLUMN, Attack

from coding_gym.sandbox.zygote import seccomp

_NUMBERS = {n: row[_COLUMN] for n, row in seccomp._REFUSED.items() if row[_COLUMN] is not None}
# A machine-code function: int 0x80, the entry for 32-bit programs, with getpid's number there.
_INT_80 = "b814000000cd80c3"
_RUN_CODE = f"""
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex('{_INT_80}'))
function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
attempt('entry', lambda: child(function) not in (-signal.SIGSYS, -signal.SIGSEGV))
"""

REFUSED = tuple(
    Attack(
        name=name,
        script=f"attempt('zeroes', lambda: call({number}, 0, 0, 0, 0, 0, 0))\n"
        f"attempt('ones', lambda: call({number}, -1, -1, -1, -1, -1, -1))",
        held="zeroes EPERM, ones EPERM",
    )
    for name, number in _NUMBERS.items()
)
ALL_AT_ONCE = Attack(
    name="all at once",
    script=f"""
    for number in {sorted(_NUMBERS.values())}:
        attempt(number, lambda: call(number, 0, 0, 0, 0, 0, 0))
    """,
    held=", ".join(f"{number} EPERM" for number in sorted(_NUMBERS.values())),
)
OTHERS = (
    Attack(
        name="the x32 interface",
        script=f"""
        for number in {sorted(_NUMBERS.values())}:
            attempt(number, lambda: call(0x40000000 | number, 0, 0, 0, 0, 0, 0))
        attempt('getpid', lambda: call(0x40000000 | 39))
        """,
        held=", ".join([f"{n} ENOSYS" for n in sorted(_NUMBERS.values())] + ["getpid ENOSYS"]),
    ),
    Attack(
        name="numbers that no kernel has yet",
        script="""
        for number in (470, 480, 511, 512, 547, 600, 1023, 0x7FFFFFFF, -1):
            attempt(number, lambda: call(number, 0, 0, 0, 0, 0, 0))
        """,
        held=", ".join(f"{n} ENOSYS" for n in (470, 480, 511, 512, 547, 600, 1023, 0x7FFFFFFF, -1)),
    ),
    Attack(
        name="input for a terminal",
        script="""
        leader, follower = pty.openpty()
        number = struct.pack('i', 13)
        for name, request in (('input', 0x5412), ('linux', 0x541C), ('discipline', 0x5423)):
            attempt(name, lambda: fcntl.ioctl(follower, request, number))
        os.setsid() if os.getpid() != os.getsid(0) else None
        attempt('own', lambda: fcntl.ioctl(follower, termios.TIOCSWINSZ, bytes(8)))
        """,
        held="input EPERM, linux EPERM, discipline EPERM, own DONE",
    ),
    Attack(
        name="leases on files that others share",
        script="""
        file = open('/opt/shown/file')
        for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK):
            attempt('lease', lambda: fcntl.fcntl(file, fcntl.F_SETLEASE, kind))
        attempt('flags', lambda: fcntl.fcntl(file, fcntl.F_GETFD))
        """,
        held="lease EPERM, lease EPERM, flags DONE",
    ),
    Attack(
        name="a second filter that lies",
        script="""
        # Calls are answered with success by its own filter; ours is asked too, and is stricter.
        code = struct.pack('HBBI', 6, 0, 0, 0x7FFF0000)
        room = ctypes.create_string_buffer(code, 8)
        class Program(ctypes.Structure):
            _fields_ = [('length', ctypes.c_ushort), ('code', ctypes.c_void_p)]
        program = Program(1, ctypes.addressof(room))
        attempt('install', lambda: libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0)
        attempt('mount', lambda: call('mount', 0, 0, 0, 0, 0))
        attempt('trace', lambda: call('ptrace', 0, 0, 0, 0))
        """,
        held="install DONE, mount EPERM, trace EPERM",
    ),
    Attack(
        name="writing out the whole machine's files",
        script="""
        attempt('sync', lambda: call('sync') == 0)
        attempt('syncfs', lambda: call('syncfs', -1) == 0)
        """,
        held="sync DONE, syncfs DONE",  # answered before the kernel sees that -1 is no descriptor
    ),
)


@pytest.mark.parametrize("attack", REFUSED, ids=str)
def test_a_refused_call_does_nothing(attack: Attack, arena: Arena) -> None:
    arena.hold_off(attack)


def test_it_is_the_filter_that_refuses(arena: Arena) -> None:
    arena.hold_off(ALL_AT_ONCE)
    report = arena.report_without("no filter", ALL_AT_ONCE)
    answers = dict(line.split()[:2] for line in report.splitlines())
    assert answers.keys() == {str(number) for number in _NUMBERS.values()}
    # The others are those that only a privileged process may make anyway.
    assert sum(answer != "EPERM" for answer in answers.values()) > len(answers) // 3


@pytest.mark.parametrize("attack", OTHERS, ids=str)
def test_no_way_leads_around_the_filter(attack: Attack, arena: Arena) -> None:
    arena.hold_off(attack)


@pytest.mark.skipif(_COLUMN != 0, reason="only x86_64 has an entry for 32-bit programs")
def test_the_entry_for_32_bit_programs_kills(arena: Arena) -> None:
    arena.hold_off(Attack(name="int 0x80", script=_RUN_CODE, held="entry nothing"))
