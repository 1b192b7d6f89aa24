"""Ways out, and ways to break the sandbox's first process, that were once open."""

import contextlib
import platform
import resource
import struct
import threading
from typing import TYPE_CHECKING

import pytest

from coding_gym.errors import SandboxError
from coding_gym.sandbox import Mount, Sandbox, SandboxSpec, default_interpreter
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.zygote import seccomp

if TYPE_CHECKING:
    from tests.sandbox.conftest import Beacon, MakeLayer

_COLUMN = {"x86_64": 0, "aarch64": 1}[platform.machine()]
_CALLS = "import ctypes, os, socket\nlibc = ctypes.CDLL(None, use_errno=True)\n"


def _python(sandbox: Sandbox, script: str, timeout_s: float = 30) -> str:
    sandbox.write_file("/tmp/script.py", (_CALLS + script).encode())
    return sandbox.run("python /tmp/script.py", timeout_s=timeout_s).output


def test_every_refused_call_fails_with_eperm(sandbox: Sandbox) -> None:
    numbers = [row[_COLUMN] for row in seccomp._REFUSED.values() if row[_COLUMN] is not None]
    script = (
        f"for number in {numbers}:\n"
        "    result = libc.syscall(number, 0, 0, 0, 0, 0, 0)\n"
        "    print(number, result, ctypes.get_errno())\n"
    )
    answers = _python(sandbox, script).splitlines()
    assert answers == [f"{number} -1 1" for number in numbers]


def test_no_namespace_can_be_made(sandbox: Sandbox) -> None:
    clone, clone3 = (seccomp._INSPECTED[name][_COLUMN] for name in ("clone", "clone3"))
    script = (
        f"for number, flags in (({clone}, 0x10000011), ({clone}, 0x20000011), ({clone3}, 0)):\n"
        "    print(libc.syscall(number, flags, 0, 0, 0, 0), ctypes.get_errno())\n"
    )
    assert _python(sandbox, script) == "-1 1\n-1 1\n-1 38\n"


def test_only_local_and_internet_sockets_can_be_made(sandbox: Sandbox) -> None:
    script = (
        "for family in (1, 2, 10, 16, 17, 38, 40):\n"
        "    try: socket.socket(family, socket.SOCK_DGRAM).close(); print(family)\n"
        "    except OSError as error: print(error.errno)\n"
    )
    assert _python(sandbox, script).split() == ["1", "2", "10", "97", "97", "97", "97"]


def test_input_cannot_be_injected_into_a_terminal(sandbox: Sandbox) -> None:
    script = (
        "import fcntl, pty\n"
        "leader, follower = pty.openpty()\n"
        "for request in (0x5412, 0x541C):\n"
        "    try: fcntl.ioctl(follower, request, b'x')\n"
        "    except OSError as error: print(error.errno)\n"
    )
    assert _python(sandbox, script) == "1\n1\n"


def test_commands_inherit_no_descriptor(sandbox: Sandbox) -> None:
    assert sandbox.run("for d in /proc/self/fd/*; do echo ${d##*/}; done").output.split() == [
        *("0", "1", "2", "3")  # the last is the shell's own, for reading the folder
    ]


def test_limits_of_the_first_process_cannot_be_lowered(sandbox: Sandbox) -> None:
    script = (
        "import resource\n"
        "for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU, resource.RLIMIT_AS):\n"
        "    try: resource.prlimit(1, kind, (1, 1))\n"
        "    except OSError as error: print(error.errno)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)); print('own')\n"
    )
    assert _python(sandbox, script) == "1\n1\n1\nown\n"
    assert sandbox.run("echo alive").output == "alive\n"


def test_the_first_process_cannot_be_signalled_or_slowed_down(sandbox: Sandbox) -> None:
    script = (
        "import signal\n"
        "for number in range(1, 65):\n"
        "    if number not in (32, 33): os.kill(1, number)\n"
        "for action in (lambda: os.setpriority(os.PRIO_PROCESS, 1, 19),\n"
        "               lambda: os.sched_setaffinity(1, {0}),\n"
        "               lambda: open('/proc/1/mem')):\n"
        "    try: action(); print('done')\n"
        "    except OSError as error: print(type(error).__name__)\n"
    )
    wanted = "PermissionError\nPermissionError\nFileNotFoundError\n"
    assert _python(sandbox, script) == wanted
    assert sandbox.run("kill -9 -1; kill -STOP 1; echo alive").output.endswith("alive\n")
    assert sandbox.run("echo alive").output == "alive\n"


_PARK = """
import time
end, _ = socket.socketpair()
kept = []
while True:
    try:
        kept.append(socket.socketpair())
        kept[-1][0].setblocking(False)
        while True:
            socket.send_fds(kept[-1][0], [b"x"], [end.fileno()] * 200)
    except BlockingIOError:
        continue
    except OSError:
        break
os.system("echo > /opt/beacon/fifo")
time.sleep(60)
"""


def test_parked_descriptors_do_not_keep_others_from_opening(
    backend: NamespaceBackend, beacon: "Beacon"
) -> None:
    attacker = backend.open(SandboxSpec(mounts=(beacon.mount,), python=default_interpreter()))
    attacker.write_file("park.py", (_CALLS + _PARK).encode())
    thread = threading.Thread(target=_run_until_closed, args=(attacker, "python park.py"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))
    thread.start()
    try:
        beacon.wait()
        for _ in range(5):
            with backend.open(SandboxSpec()) as other:
                assert other.run("echo open").output == "open\n"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        attacker.close()
        thread.join()


def _run_until_closed(sandbox: Sandbox, command: str) -> None:
    with contextlib.suppress(SandboxError):
        sandbox.run(command)


def test_a_lease_cannot_keep_others_from_a_shared_file(
    backend: NamespaceBackend, make_layer: "MakeLayer"
) -> None:
    mount = Mount(source=make_layer({"file": "x"}), target="/opt/shared")
    script = (
        "import fcntl\n"
        "file = open('/opt/shared/file')\n"
        "for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK):\n"
        "    try: fcntl.fcntl(file, fcntl.F_SETLEASE, kind); print('leased')\n"
        "    except OSError as error: print(error.errno)\n"
        "print(fcntl.fcntl(file, fcntl.F_GETFD))\n"
    )
    with backend.open(SandboxSpec(mounts=(mount,), python=default_interpreter())) as sandbox:
        assert _python(sandbox, script) == "1\n1\n1\n"


def test_memory_that_no_process_owns_cannot_be_taken(sandbox: Sandbox) -> None:
    script = (
        "size = ctypes.c_size_t(1 << 20)\n"
        "for take in (lambda: libc.shmget(0, size, 0o1600), lambda: libc.msgget(0, 0o1600),\n"
        "             lambda: libc.semget(0, 32000, 0o1600)):\n"
        "    print(take(), ctypes.get_errno())\n"
    )
    assert _python(sandbox, script) == "-1 1\n-1 1\n-1 1\n"


def test_what_a_user_has_few_of_runs_out_in_one_sandbox_only(
    backend: NamespaceBackend, sandbox: Sandbox
) -> None:
    script = (
        "import signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [40])\n"
        "def count(take):\n"
        "    number = 0\n"
        "    while number < 5000 and take() >= 0: number += 1\n"
        "    return number\n"
        "def terminal():\n"
        "    try: return os.open('/dev/ptmx', os.O_RDWR)\n"
        "    except OSError: return -1\n"
        "print(count(libc.inotify_init), count(terminal),\n"
        "      count(lambda: libc.sigqueue(os.getpid(), 40, 0)))\n"
    )
    few = "16 64 1024\n"
    assert _python(sandbox, script) == few
    with backend.open(SandboxSpec(python=default_interpreter())) as other:
        assert _python(other, script) == few


def test_a_locked_workspace_is_an_error_and_not_the_end(sandbox: Sandbox) -> None:
    sandbox.run("chmod 000 .")
    with pytest.raises(PermissionError):
        sandbox.read_file("file")
    with pytest.raises(PermissionError):
        sandbox.write_file("file", b"x")
    assert sandbox.run("chmod 755 /workspace", cwd="/").ok
    sandbox.write_file("file", b"x")
    assert sandbox.read_file("file") == b"x"


@pytest.mark.parametrize("path", ["a/" * 1500 + "file", "a/" * 3000 + "file", "new/../../up/file"])
def test_no_path_ends_the_sandbox(sandbox: Sandbox, path: str) -> None:
    with contextlib.suppress(OSError):
        sandbox.write_file(path, b"x")
        assert sandbox.read_file(path) == b"x"
    assert sandbox.run("echo alive").output == "alive\n"


def test_a_fork_bomb_ends_with_its_command(sandbox: Sandbox) -> None:
    bomb = sandbox.run(":() { : | : & }; : 2>/dev/null; sleep 0.3", timeout_s=20)
    assert bomb.num_leftovers > 10 or bomb.timed_out
    assert sandbox.run("echo alive").output == "alive\n"


def test_a_setuid_program_gains_nothing(sandbox: Sandbox) -> None:
    result = sandbox.run("cp $(command -v id) ./id; chmod 4755 id; ./id -u; su -c id </dev/null")
    assert result.output.splitlines()[0] == "1000"
    assert "uid=0" not in result.output


def test_links_lead_nowhere_outside(sandbox: Sandbox) -> None:
    sandbox.run("ln -s /etc/shadow shadow; ln -s /proc/1/root/etc up; ln -s / root")
    for path in ("shadow", "up/shadow", "root/root/.bashrc"):
        with pytest.raises(OSError, match="No such file"):
            sandbox.read_file(path)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_well_formed(machine: str) -> None:
    code = list(struct.iter_unpack("HBBI", seccomp.program(machine)))
    jumps = {0x15, 0x35, 0x45}
    assert len(code) < 4096
    assert code[-1][0] == 0x06
    for place, (operation, if_true, if_false, _) in enumerate(code):
        if operation in jumps:
            assert place + 1 + max(if_true, if_false) < len(code)
