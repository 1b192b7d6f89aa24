"""The programs of the filter on system calls, byte by byte, for machines that we may not be on."""

import re
import struct
from functools import cache
from pathlib import Path

import pytest
from bpf import answer
from system_calls import (
    AUDIT_ARCH,
    FILTERED,
    FIRST_UNKNOWN,
    IGNORED,
    INSPECTED,
    MACHINES,
    MEMORY_FILES,
    REFUSED,
    numbers,
)

from coding_gym.sandbox.inside import seccomp

ALLOW, KILL = 0x7FFF0000, 0x80000000
DONE, EPERM, ENOSYS = (0x00050000 | number for number in (0, 1, 38))
EPROTONOSUPPORT, ESOCKTNOSUPPORT, EAFNOSUPPORT = (0x00050000 | number for number in (93, 94, 97))
HIGH = 0xFFFFFFFF_00000000  # the half of an argument that the kernel does not look at
HEADERS = {
    "x86_64": ("x86_64-linux-gnu/asm/unistd_64.h", "asm/unistd_64.h"),
    "aarch64": ("asm-generic/unistd.h",),
}


program = cache(seccomp.program)


def verdict(machine: str, name: str, *arguments: int) -> int:
    return call(machine, numbers(FILTERED, machine)[name], *arguments)


def call(machine: str, number: int, *arguments: int) -> int:
    return answer(program(machine), AUDIT_ARCH[machine], number, arguments)


@pytest.mark.parametrize("machine", MACHINES)
def test_program_passes_the_kernels_checks(machine: str) -> None:
    code = list(struct.iter_unpack("<HBBI", seccomp.program(machine)))
    assert len(code) <= 4096
    assert code[-1][0] == 0x06
    for place, (operation, if_true, if_false, constant) in enumerate(code):
        assert operation in {0x20, 0x54, 0x06, 0x15, 0x35, 0x45}
        if operation == 0x20:
            assert constant % 4 == 0
            assert constant <= 60
        if operation in {0x15, 0x35, 0x45}:
            assert place + 1 + max(if_true, if_false) < len(code)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_number_gets_the_answer_of_the_table(machine: str) -> None:
    expected = dict.fromkeys(range(FIRST_UNKNOWN), ALLOW)
    for rows, verdict in ((REFUSED, EPERM), (IGNORED, DONE), (MEMORY_FILES, ENOSYS)):
        expected |= dict.fromkeys(numbers(rows, machine).values(), verdict)
    inspected = numbers(INSPECTED, machine).values()
    for number in set(range(600)) - set(inspected):
        for arguments in ((), (2**64 - 1,) * 6):
            assert call(machine, number, *arguments) == expected.get(number, ENOSYS), number


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_of_another_kind_of_machine_kill(machine: str) -> None:
    # i386, ARM, both of ours, a big-endian one, none.
    others = {0x40000003, 0x40000028, 0xC000003E, 0xC00000B7, 0x15, 0} - {AUDIT_ARCH[machine]}
    for architecture in others:
        for number in (0, 39, 165, 0x40000000):
            assert answer(program(machine), architecture, number) == KILL


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_beyond_the_tables_do_not_exist(machine: str) -> None:
    for number in (0x40000000, 0x40000000 + 165, 0x40000000 + 520, 470, 512, 2**31, 2**32 - 1):
        assert call(machine, number) == ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_clone_makes_processes_but_no_namespaces(machine: str) -> None:
    for flags in (17, 0x3D0F00, 0x8000 | 17, 0x4000 | 0x100 | 17):  # fork, thread, parent, vfork
        assert verdict(machine, "clone", flags) == ALLOW
        assert verdict(machine, "clone", flags | HIGH) == ALLOW
    assert verdict(machine, "clone", 0x4000 | 17) == EPERM  # waits for a copy, not as vfork does
    for bit in (17, 25, 26, 27, 28, 29, 30):
        assert verdict(machine, "clone", 1 << bit | 17) == EPERM
        assert verdict(machine, "clone", 1 << bit | 17 | HIGH) == EPERM
    assert verdict(machine, "clone3", 0) == ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_sockets_are_local_or_tcp_or_udp(machine: str) -> None:
    flags = 0o2000000 | 0o4000  # SOCK_CLOEXEC, SOCK_NONBLOCK
    for high in (0, HIGH):
        for family in range(64):
            for kind in range(1, 16):
                for protocol in (0, 1, 6, 17, 33, 115, 132, 136, 255, 262):
                    arguments = (family | high, kind | flags | high, protocol | high)
                    got = verdict(machine, "socket", *arguments)
                    assert got == socket_verdict(family, kind, protocol), arguments
            wanted = ALLOW if family == 1 else EAFNOSUPPORT
            assert verdict(machine, "socketpair", family | high, 1, 0) == wanted


def socket_verdict(family: int, kind: int, protocol: int) -> int:
    if family == 1:
        return ALLOW
    if family not in {2, 10}:
        return EAFNOSUPPORT
    if kind not in {1, 2}:
        return ESOCKTNOSUPPORT
    return ALLOW if protocol in {0, 6, 17} else EPROTONOSUPPORT


@pytest.mark.parametrize("machine", MACHINES)
def test_only_own_limits_change_and_never_that_on_core_dumps(machine: str) -> None:
    pointers = (0x7FFF_0000_1000, 0x1_0000_0000, 1)
    for kind in range(16):
        for pid in (1, 2, 2**32 - 1):
            assert verdict(machine, "prlimit64", pid, kind, 0) == EPERM
        assert verdict(machine, "prlimit64", 0, kind, 0, pointers[0]) == ALLOW
        for new in pointers:
            wanted = DONE if kind == 4 else ALLOW
            assert verdict(machine, "prlimit64", 0, kind, new) == wanted
            assert verdict(machine, "setrlimit", kind | HIGH, new) == wanted


@pytest.mark.parametrize("machine", MACHINES)
def test_terminals_cannot_be_typed_into_and_files_not_be_leased(machine: str) -> None:
    for request in (0x5412, 0x541C, 0x5423):
        assert verdict(machine, "ioctl", 0, request) == EPERM
        assert verdict(machine, "ioctl", 2**64 - 1, request | HIGH) == EPERM
    assert verdict(machine, "fcntl", 0, 1024) == EPERM
    assert verdict(machine, "fcntl", 0, 1024 | HIGH) == EPERM
    for request in (0x5401, 0x5413, 0x8914):
        assert verdict(machine, "ioctl", 0, request) == ALLOW
    for operation in (*range(17), 1025, 1026, 1030, 1031):
        assert verdict(machine, "fcntl", 0, operation) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_socket_buffers_keep_their_size(machine: str) -> None:
    for option in range(80):
        wanted = DONE if option in {7, 8} else ALLOW
        assert verdict(machine, "setsockopt", 3, 1, option) == wanted
        assert verdict(machine, "setsockopt", 3 | HIGH, 1 | HIGH, option | HIGH) == wanted
        assert verdict(machine, "setsockopt", 3, 6, option) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_memory_files_do_not_exist(machine: str) -> None:
    for name in numbers(MEMORY_FILES, machine):
        assert verdict(machine, name) == ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_are_those_of_the_kernels_own_headers(machine: str) -> None:
    paths = [Path("/usr/include", name) for name in HEADERS[machine]]
    found = [path for path in paths if path.exists()]
    if not found:
        pytest.skip("the kernel's headers are not installed (linux-libc-dev)")
    text = found[0].read_text(encoding="ascii")
    lines = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)
    kernel = {name: int(number) for name, number in lines}
    ours = {n: number for n, number in numbers(FILTERED, machine).items() if n in kernel}
    assert ours == {name: kernel[name] for name in ours}
    assert len(ours) > 60
