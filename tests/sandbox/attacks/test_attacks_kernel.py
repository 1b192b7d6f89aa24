"""Attacks on the filter of system calls, and scripts that succeed without a sandbox."""

import platform
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from arena import IMPORTS, Arena, Host, assert_report, source
from sandbox_fixtures import BACKEND
from system_calls import FIRST_UNKNOWN, MACHINES, refused

from coding_gym.sandbox.inside import syscalls

pytestmark = pytest.mark.slow

_REFUSED = sorted(refused(platform.machine()).values())
_HEADERS = {
    "x86_64": ("x86_64-linux-gnu/asm/unistd_64.h", "asm/unistd_64.h"),
    "aarch64": ("asm-generic/unistd.h",),
}
# A machine-code function: int 0x80, the entry for 32-bit programs, with getpid's number there.
_INT_80 = "b814000000cd80c3"
# Drops the rights of root, which no sandbox has.
_STEP_DOWN = """
if os.geteuid() != {0}:
    os.setgroups([]); os.setresgid({1}, {1}, {1}); os.setresuid({0}, {0}, {0})
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
"""
ATTACKS = {
    "dangerous system calls are refused": f"""
    for number in {_REFUSED}:
        attempt(f'{{number}} EPERM', lambda: call(number, 0, 0, 0, 0, 0, 0))
    """,
    "newer system calls fail with ENOSYS": f"""
    for number in {[*range(FIRST_UNKNOWN, FIRST_UNKNOWN + 60), 2**31 - 1]}:
        attempt(f'{{number}} ENOSYS', lambda: call(number, 0, 0, 0, 0, 0, 0))
    rulesets = 'landlock_create_ruleset', 'landlock_add_rule'
    for name in ('memfd_create', 'memfd_secret', 'clone3', *rulesets):
        attempt(f'{{name}} ENOSYS', lambda: call(name, 0, 0, 0, 0, 0, 0))
    """,
    "terminals leases and syncs change nothing": """
    leader, follower = pty.openpty()
    number = struct.pack('i', 13)
    for name, request in (('input', 0x5412), ('linux', 0x541C), ('discipline', 0x5423)):
        attempt(f'{name} EPERM', lambda: fcntl.ioctl(follower, request, number))
        attempt(f'{name} EPERM', lambda: call('ioctl', follower, request | 1 << 32, number))
    os.setsid() if os.getpid() != os.getsid(0) else None
    attempt('own DONE', lambda: fcntl.ioctl(follower, termios.TIOCSWINSZ, bytes(8)))
    file = open('/opt/shown/file')
    for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK):
        attempt('lease EPERM', lambda: fcntl.fcntl(file, fcntl.F_SETLEASE, kind))
    attempt('flags DONE', lambda: fcntl.fcntl(file, fcntl.F_GETFD))
    attempt('sync DONE', lambda: call('sync') == 0)
    # Answered before the kernel sees that -1 is no descriptor.
    attempt('syncfs DONE', lambda: call('syncfs', -1) == 0)
    """,
    "socket buffers keep their size": """
    end = socket.socket()
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        before = end.getsockopt(socket.SOL_SOCKET, option)
        for level in (socket.SOL_SOCKET, socket.SOL_SOCKET | 1 << 32):
            call('setsockopt', end.fileno(), level, option, struct.pack('i', 1 << 16), 4)
        attempt('grown nothing', lambda: end.getsockopt(socket.SOL_SOCKET, option) != before)
    """,
    "flags above 32 bits make no namespaces": """
    for bit in (17, 25, 26, 27, 28, 29, 30):
        for high in (0, 1 << 40):
            flags = high | 1 << bit | 17
            attempt(f'{bit} EPERM', lambda: call('clone', flags, 0, 0, 0, 0) or os._exit(0))
    attempt('socket EAFNOSUPPORT', lambda: call('socket', 1 << 32 | 17, 3, 0))
    attempt('vfork EPERM', lambda: call('clone', 0x4000 | 17, 0, 0, 0, 0) or os._exit(0))
    """,
}
if platform.machine() == "x86_64":
    ATTACKS |= {
        "the x32 interface does not exist": f"""
        for number in {[*_REFUSED, 39]}:
            attempt(f'{{number}} ENOSYS', lambda: call(1 << 30 | number, 0, 0, 0, 0, 0, 0))
        """,
        "the entry for 32 bit programs kills": f"""
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(bytes.fromhex('{_INT_80}'))
        place = ctypes.addressof(ctypes.c_char.from_buffer(page))
        function = ctypes.CFUNCTYPE(ctypes.c_int)(place)
        attempt('entry nothing', lambda: child(function) not in (-signal.SIGSYS, -signal.SIGSEGV))
        """,
    }


@pytest.mark.parametrize("script", ATTACKS.values(), ids=ATTACKS)
def test_system_calls_are_filtered(arena: Arena, script: str) -> None:
    arena.assert_refused(script)


@pytest.mark.parametrize("machine", MACHINES)
def test_system_call_numbers_are_those_of_the_kernel(machine: str) -> None:
    table = syscalls.numbers(machine)
    assert table.keys() >= refused(machine).keys()
    headers = [path for name in _HEADERS[machine] if (path := Path("/usr/include", name)).exists()]
    if not headers:
        pytest.skip("the kernel's headers are not installed (linux-libc-dev)")
    lines = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", headers[0].read_text("ascii"))
    kernel = {name: int(number) for name, number in lines}
    named = {name: number for name, number in table.items() if name in kernel}
    assert named == {name: kernel[name] for name in named}
    assert len(named) > 90


def test_attacks_succeed_without_a_sandbox() -> None:
    script = """
    attempt('key DONE', lambda: needle() in read(FACTS['folder'] + '/secrets/key'))
    attempt('environ DONE', lambda: any(needle() in t for t in texts('/proc/[0-9]*/environ')))
    attempt('unix DONE', lambda: FACTS['abstract'].encode() in read('/proc/net/unix'))
    attempt('tcp DONE', lambda: socket.socket().connect(('127.0.0.1', FACTS['port'])) or 1)
    attempt('write DONE', lambda: write(FACTS['folder'] + '/layer/shared.txt') or 1)
    attempt('signal DONE', lambda: os.kill(FACTS['pid'], 0) or 1)
    attempt('aio DONE', lambda: call('io_setup', 1, ctypes.byref(ctypes.c_ulong())) == 0)
    """
    with ExitStack() as closing:
        program = IMPORTS + _STEP_DOWN.format(*BACKEND.owner()) + source(Host(closing), script)
        command = [sys.executable, "-I", "-c", program]
        ended = subprocess.run(command, capture_output=True, text=True, cwd="/")
    assert_report(ended.stdout)
