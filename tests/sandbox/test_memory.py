"""The memory watch kills programs above the limit, and no others."""

from collections.abc import Iterator

import pytest
from sandbox_fixtures import make_sandbox

from coding_gym.calls import ExecResult
from coding_gym.sandbox import Sandbox, SandboxLimits, default_interpreter

pytestmark = pytest.mark.slow

_CALLS = (
    "import ctypes, mmap, os, resource, signal, socket, subprocess, sys, time\n"
    "from contextlib import suppress\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "MIB = 1 << 20\n"
)


@pytest.fixture
def small() -> Iterator[Sandbox]:
    limits = SandboxLimits(memory_bytes=128 << 20)
    with make_sandbox(python=default_interpreter(), limits=limits) as opened:
        yield opened


def _python(sandbox: Sandbox, script: str) -> ExecResult:
    sandbox.write_file("/tmp/script.py", (_CALLS + script).encode())
    return sandbox.run("python /tmp/script.py", timeout_s=60)


# Programs that hold more than the limit, for longer than the time limit.
_HOGS = {
    "shared": "x = mmap.mmap(-1, 300 * MIB)\nx.write(b'x' * (100 * MIB) * 3)",
    "of a process whose first thread has ended": (
        "import threading\n"
        "def take(): time.sleep(0.3); x = b'x' * (300 * MIB); time.sleep(9)\n"
        "threading.Thread(target=take).start()\n"
        "libc.pthread_exit(None)"
    ),
    "of a program that cannot be read": (
        "import shutil\n"
        "shutil.copy(os.path.realpath('/proc/self/exe'), '/tmp/program')\n"
        "os.chmod('/tmp/program', 0o111)\n"
        "take = 'import time; x = b\"x\" * (300 << 20); time.sleep(60)'\n"
        "subprocess.run(['/tmp/program', '-c', take])"
    ),
    "of page tables": (
        "x = mmap.mmap(-1, 1 << 38, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)\n"
        "for at in range(0, 1 << 38, 2 * MIB): x[at]"
    ),
    "of copies on write": (
        "x = bytearray(24 * MIB)\n"
        "for _ in range(20):\n"
        "    if os.fork() == 0:\n"
        "        for at in range(0, len(x), 4096): x[at] = 1\n"
        "        signal.pause()"
    ),
}  # fmt: skip


@pytest.mark.parametrize("hog", _HOGS.values(), ids=_HOGS)
def test_exceeded_memory_ends_only_the_command(small: Sandbox, hog: str) -> None:
    result = _python(small, f"print('begun', flush=True)\n{hog}\ntime.sleep(60)")
    assert (result.exit_code, result.out_of_memory, result.timed_out) == (137, True, False)
    assert (result.output, result.num_leftovers) == ("begun\n", 0)
    after = small.run("cat /proc/[0-9]*/comm")
    assert (after.output, after.out_of_memory) == ("cat\n", False)


# Programs below the limit, which a naive sum of sizes or address space would exceed.
_MODEST = {
    "a copy that forked processes share": (
        "x = b'x' * (60 * MIB)\n"
        "children = [os.fork() for _ in range(1)]\n"
        "for _ in range(6):\n"
        "    if os.fork() == 0: time.sleep(0.7); os._exit(0)"
    ),
    "a large process that waits until its child runs a program": (
        "x = b'x' * (80 * MIB)\n"
        "os.mkfifo('/tmp/fifo')\n"
        "subprocess.Popen(['/bin/sh', '-c', 'sleep 0.7; : > /tmp/fifo'])\n"
        "opened = [(os.POSIX_SPAWN_OPEN, 0, '/tmp/fifo', os.O_RDONLY, 0)]\n"
        "os.posix_spawn('/bin/true', ['true'], {}, file_actions=opened)"
    ),
    "reserved address space": (
        "x = mmap.mmap(-1, 1 << 44, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)\n"
        "x[5] = 1"
    ),
    "a mapped file": (
        "with open('/tmp/file', 'wb') as file: file.write(bytes(40 * MIB))\n"
        "with open('/tmp/file', 'rb') as file:\n"
        "    x = [mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) for _ in range(10)]\n"
        "    for one in x: sum(one[::4096])"
    ),
}  # fmt: skip


@pytest.mark.parametrize("program", _MODEST.values(), ids=_MODEST)
def test_commands_below_the_memory_limit_are_not_killed(small: Sandbox, program: str) -> None:
    result = _python(small, f"{program}\ntime.sleep(0.7)\nprint('kept', flush=True)\n")
    assert "kept\n" in result.output
    assert (result.exit_code, result.out_of_memory) == (0, False)
