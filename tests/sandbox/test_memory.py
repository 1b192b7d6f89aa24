"""The memory watch: what it sees, what it lets pass, what it costs."""

import itertools
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from sandbox_scene import make_sandbox

from coding_gym.calls import ExecResult
from coding_gym.sandbox import Sandbox, SandboxLimits, default_interpreter
from coding_gym.sandbox.inside import memory
from coding_gym.sandbox.inside.process_table import all_but_first

pytestmark = pytest.mark.slow

_CALLS = (
    "import ctypes, mmap, os, resource, signal, socket, subprocess, sys, time\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "MIB = 1 << 20\n"
)
_ALL_USERS = ["0", "0", "4294967295"]


@pytest.fixture
def narrow() -> Iterator[Sandbox]:
    limits = SandboxLimits(memory_bytes=128 << 20)
    with make_sandbox(python=default_interpreter(), limits=limits) as opened:
        yield opened


def _python(sandbox: Sandbox, script: str) -> ExecResult:
    sandbox.write_file("/tmp/script.py", (_CALLS + script).encode())
    return sandbox.run("python /tmp/script.py", timeout_s=60)


# Each holds more than the limit, and would hold it for longer than the time limit.
_HOGS = {
    "shared": "x = mmap.mmap(-1, 300 * MIB)\nx.write(b'x' * (100 * MIB) * 3)",
    "of many threads": (
        "import threading\n"
        "kept = []\n"
        "take = lambda: kept.append(b'x' * (30 * MIB))\n"
        "for _ in range(10): threading.Thread(target=take).start()"
    ),
    "of a process whose first thread has ended": (
        "import threading\n"
        "def take(): time.sleep(0.3); x = b'x' * (300 * MIB); time.sleep(9)\n"
        "threading.Thread(target=take).start()\n"
        "libc.pthread_exit(None)"
    ),
    "of a daemon": (
        "if os.fork(): time.sleep(60)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        "x = b'x' * (300 * MIB)"
    ),
    "of a program that cannot be read": (
        "import shutil\n"
        "shutil.copy(os.path.realpath('/proc/self/exe'), '/tmp/program')\n"
        "os.chmod('/tmp/program', 0o111)\n"
        "take = 'import time; x = b\"x\" * (300 << 20); time.sleep(60)'\n"
        "subprocess.run(['/tmp/program', '-c', take])"
    ),
    "cut off after a look": (
        "x = mmap.mmap(-1, 300 * MIB)\n"
        "x.write(b'x' * (100 * MIB))\n"
        "time.sleep(1)\n"
        "x.write(b'x' * (200 * MIB))"
    ),
    "page tables themselves": (
        "x = mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)\n"
        "for at in range(0, 1 << 40, 2 * MIB): x[at]"
    ),
    "taken in small steps": (
        "kept = []\n"
        "for _ in range(300): kept.append(b'x' * MIB); time.sleep(0.002)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("hog", _HOGS.values(), ids=_HOGS)
def test_too_much_memory_ends_the_command_and_not_the_sandbox(narrow: Sandbox, hog: str) -> None:
    result = _python(narrow, f"print('begun', flush=True)\n{hog}\ntime.sleep(60)")
    assert (result.exit_code, result.out_of_memory, result.timed_out) == (137, True, False)
    assert (result.output, result.num_leftovers) == ("begun\n", 0)
    after = narrow.run("cat /proc/[0-9]*/comm")
    assert (after.output, after.out_of_memory) == ("cat\n", False)


# Each looks like too much at first sight, or is nothing but address space.
_MODEST = {
    "a part of the limit": "x = b'x' * (60 * MIB)",
    "a copy that forked processes share": (
        "x = b'x' * (60 * MIB)\n"
        "children = [os.fork() for _ in range(1)]\n"
        "for _ in range(6):\n"
        "    if os.fork() == 0: time.sleep(0.7); os._exit(0)"
    ),
    "a large process that starts small ones": (
        "x = b'x' * (80 * MIB)\n"
        "for _ in range(100): subprocess.run(['/bin/true'])"
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
    "what was freed": "for _ in range(10): x = b'x' * (60 * MIB); del x",
    "a few sockets": "x = [socket.socketpair() for _ in range(50)]",
}  # fmt: skip


@pytest.mark.parametrize("program", _MODEST.values(), ids=_MODEST)
def test_what_fits_is_left_alone(narrow: Sandbox, program: str) -> None:
    result = _python(narrow, f"{program}\ntime.sleep(0.7)\nprint('kept', flush=True)\n")
    assert "kept\n" in result.output
    assert (result.exit_code, result.out_of_memory) == (0, False)


def test_connections_within_a_sandbox_hold_little(narrow: Sandbox) -> None:
    script = (
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "client = socket.create_connection(server.getsockname())\n"
        "kept = server.accept()\n"
        "client.setblocking(False)\n"
        "sent = 0\n"
        "try:\n"
        "    while True: sent += client.send(bytes(1 << 16))\n"
        "except BlockingIOError: print(100_000 < sent < 1_000_000)\n"
    )
    assert _python(narrow, script).output == "True\n"


def _may_make_marks_stick() -> bool:
    """Whether this process has CAP_SYS_RESOURCE on the machine itself, as its root does."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    found = re.search(r"CapEff:\s+(\w+)", status)
    is_first = Path("/proc/self/uid_map").read_text(encoding="ascii").split() == _ALL_USERS
    return is_first and found is not None and bool(int(found[1], 16) >> 24 & 1)


@pytest.mark.skipif(not _may_make_marks_stick(), reason="needs CAP_SYS_RESOURCE, as root has")
def test_no_command_can_take_its_mark_for_the_kernels_killer_off(narrow: Sandbox) -> None:
    script = (
        "mark = os.open('/proc/self/oom_score_adj', os.O_RDWR)\n"
        "print(os.pread(mark, 9, 0))\n"
        "for score in (b'0', b'-1000', b'799', b'800'):\n"
        "    try: os.pwrite(mark, score, 0); print('done')\n"
        "    except OSError as error: print(error.errno)\n"
        "subprocess.run(['cat', '/proc/self/oom_score_adj'])\n"
    )
    assert _python(narrow, script).output == "b'900\\n'\n13\n13\n13\ndone\n800\n"


_MARKED = """
from pathlib import Path
from coding_gym.sandbox import SandboxSpec
from coding_gym.sandbox.namespace import NamespaceBackend

mark = Path("/proc/self/oom_score_adj")
mark.write_text("1000")
with NamespaceBackend().open(SandboxSpec()) as sandbox:
    print(sandbox.run(f"cat {mark}").output)
"""


def test_a_sandbox_opens_where_everything_is_marked_already() -> None:
    ended = subprocess.run([sys.executable, "-c", _MARKED], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("1000\n\n", "")


def _write_processes(proc: Path, *pids: str, **files: str) -> None:
    """Writes what the kernel says of processes, for a watch that is told to look there."""
    for pid in pids:
        (proc / pid).mkdir(exist_ok=True)
        for name, text in files.items():
            (proc / pid / name).write_text(text, encoding="ascii")


def test_shared_memory_counts_once_by_its_largest_mapping(tmp_path: Path) -> None:
    mib = 1 << 20
    status = "VmSize:\t 900000 kB\nRssAnon:\t 2048 kB\nRssShmem:\t 1024 kB\nVmPTE:\t 8 kB\n"
    begin, line = 0x10000000, "%x-%x rw-s 00000000 00:01 77    /dev/zero (deleted)\n"
    whole, part = (line % (begin, begin + size) for size in (300 * mib, 1 << 12))
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "sockstat").write_text("sockets: used 3\n", encoding="ascii")
    for limit, is_exceeded in ((200 * mib, True), (320 * mib, False)):
        _write_processes(tmp_path, "1", "5", "6", "self", status=status, maps=whole)
        pids = partial(all_but_first, str(tmp_path))
        watch = memory.MemoryWatch(limit, pids, owns_network=True, proc=str(tmp_path))
        now = time.monotonic()
        assert watch.is_exceeded(now) is is_exceeded
        # It is remembered as long as a part of it is mapped.
        _write_processes(tmp_path, "5", "6", maps=part)
        assert watch.is_exceeded(now + 1000) is is_exceeded


def test_a_look_that_a_busy_machine_delays_counts_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = "VmSize:\t 70000 kB\nRssAnon:\t 60000 kB\nVmPTE:\t 8 kB\n"
    monkeypatch.setattr(time, "monotonic", itertools.count(0.0, 60.0).__next__)
    for share_kb, is_exceeded in ((30000, False), (60000, True)):
        rollup = f"Pss_Anon:\t {share_kb} kB\n"
        _write_processes(tmp_path, "5", "6", status=status, maps="", smaps_rollup=rollup)
        pids = partial(all_but_first, str(tmp_path))
        watch = memory.MemoryWatch(100 << 20, pids, owns_network=False, proc=str(tmp_path))
        assert watch.is_exceeded(0.0) is is_exceeded


def test_a_parent_that_waits_shares_its_memory_with_one_child(tmp_path: Path) -> None:
    status = (
        "State:\t%s\nTgid:\t%d\nPPid:\t%d\nVmPeak:\t 0 kB\nRssAnon:\t 80000 kB\nVmSwap:\t 0 kB\n"
    )
    for pid, state, parent in ((5, "D", 1), (6, "S", 5)):
        text = status % (state, pid, parent)
        _write_processes(tmp_path, str(pid), status=text, smaps_rollup="Pss_Anon:\t 80000 kB\n")
    pids = partial(all_but_first, str(tmp_path))
    watch = memory.MemoryWatch(100 << 20, pids, owns_network=False, proc=str(tmp_path))
    assert not watch.is_exceeded(0.0)
    text = status % ("S", 7, 5)
    _write_processes(tmp_path, "7", status=text, smaps_rollup="Pss_Anon:\t 80000 kB\n")
    assert watch.is_exceeded(0.0)
