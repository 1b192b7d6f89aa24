"""Commands have no access to the host, the network or privileges."""

import os
import socket
from pathlib import Path

import pytest
from sandbox_fixtures import opened, output, python_output, tree

import coding_gym
from coding_gym.sandbox.inside.syscalls import number
from coding_gym.sandbox.protocol import Promise, Sandbox, SandboxBackend

PACKAGE = Path(coding_gym.__file__).parent


def test_files_of_the_host_cannot_be_read_or_written(backend: SandboxBackend) -> None:
    with tree(backend, {"file": "of the host"}) as outside, opened(backend) as sandbox:
        command = f"cat {outside}/file; echo x > {outside}/file; echo x > {outside}/new"
        assert "of the host" not in sandbox.run(f"{command}; rm -f {outside}/file").output
        output(sandbox, f"ln -s {outside}/file link")
        try:
            content = sandbox.read_file("link")
        except OSError:
            content = b""
        assert content == b""
        assert sorted(p.name for p in outside.iterdir()) == ["file"]
        assert (outside / "file").read_text(encoding="utf-8") == "of the host"


def test_homes_and_this_package_are_inaccessible(sandbox: Sandbox) -> None:
    assert sandbox.run(f"ls {PACKAGE}/grading").exit_code != 0
    assert sandbox.run("grep -c : /etc/shadow").exit_code != 0
    assert sandbox.run(f"ls -A {Path.home()}/.[a-z]*").exit_code != 0


def test_processes_of_the_host_are_inaccessible(backend: SandboxBackend) -> None:
    pid = os.getpid()
    started = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    with opened(backend) as sandbox:
        fields = sandbox.run(f"cat /proc/{pid}/stat").output.rpartition(")")[2].split()
        assert fields[19:20] != [started]
        signalled = sandbox.run(f"kill -0 {pid}").ok
        assert not (signalled and fields[19:20] in ([], [started]))


@pytest.mark.parametrize("trap", ["mkfifo", "mkdir", "ln -s /tmp/stolen"])
def test_commands_cannot_reach_the_next_standard_input(sandbox: Sandbox, trap: str) -> None:
    name = "$(readlink /proc/self/fd/0)"  # the file that stores the input, if it is a file
    sandbox.run(f'name="{name}"; {trap} "${{name% (deleted)}}"', stdin=b"first")
    assert sandbox.run("cat", stdin=b"secret", timeout_s=20).output == "secret"
    sandbox.write_file("file", b"data")
    assert sandbox.read_file("file") == b"data"
    assert not sandbox.run("cat /tmp/stolen").ok


def test_the_network_is_unreachable(backend: SandboxBackend) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, opened(backend) as sandbox:
        port = server.getsockname()[1]
        result = sandbox.run(f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached", timeout_s=20)
        assert "reached" not in result.output
        # A documentation address, at which no machine answers, so the call must fail at once.
        far = sandbox.run("exec 3<>/dev/tcp/192.0.2.1/80 && echo reached", timeout_s=5)
        assert ("reached" in far.output, far.timed_out) == (False, False)


def test_abstract_sockets_of_the_host_are_inaccessible(backend: SandboxBackend) -> None:
    name = f"\0coding_gym-check-{os.getpid()}"
    script = (
        "import socket\n"
        f"try: socket.socket(socket.AF_UNIX).connect({name!r}); print('reached')\n"
        "except OSError: print('refused')\n"
    )
    with socket.socket(socket.AF_UNIX) as server, opened(backend, python=True) as sandbox:
        server.bind(name)
        server.listen()
        assert python_output(sandbox, script) == "refused\n"


def test_commands_have_no_privileges_and_gain_none(backend: SandboxBackend) -> None:
    # By system calls, because a backend may hide all of /proc.
    script = (
        "import ctypes\n"
        "libc = ctypes.CDLL(None)\n"
        "sets = (ctypes.c_uint32 * 6)()\n"
        "libc.capget((ctypes.c_uint32 * 2)(0x20080522, 0), sets)\n"
        "print(sum(sets), libc.prctl(39, 0, 0, 0, 0))\n"
    )
    with opened(backend, python=True) as sandbox:
        printed = python_output(sandbox, script).split()
        assert printed == ["0", "1"]
        uids = output(sandbox, "cp $(type -P id) id; chmod 6755 id; id -u; ./id -u").split()
        assert uids[1] == uids[0]


@pytest.mark.promise(Promise.SYSTEM_CALLS, strict=False)
def test_dangerous_system_calls_are_refused(backend: SandboxBackend) -> None:
    names = ("unshare", "keyctl", "bpf", "perf_event_open", "userfaultfd", "mount")
    script = (
        "import ctypes, errno\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        f"for name, number in { {name: number(name) for name in names} }.items():\n"
        "    libc.syscall(number, 0x10000000 if name == 'unshare' else 0, 0, 0, 0, 0, 0)\n"
        "    print(name, errno.errorcode[ctypes.get_errno()] if ctypes.get_errno() else 'done')\n"
        "    ctypes.set_errno(0)\n"
    )
    with opened(backend, python=True) as sandbox:
        for line in python_output(sandbox, script).splitlines():
            assert line.split()[1] in {"EPERM", "ENOSYS", "EACCES"}
