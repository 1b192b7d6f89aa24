"""Checks of what a sandbox keeps apart: the host, the network, privileges, other sandboxes."""

# The names of the checks say what others say in docstrings.

import os
import socket
from pathlib import Path

import coding_gym
from checks.claims import claim, expect, opened, output, python_output, tree
from coding_gym.sandbox.ownership import start_time
from coding_gym.sandbox.protocol import Promise, SandboxBackend

PACKAGE = Path(coding_gym.__file__).parent


def _has_no_proc() -> bool:
    return not Path("/proc/self/status").exists()


def _owner_is_filtered() -> bool:
    """Whether this process may not do what the check tries either, as in a container."""
    return _has_no_proc() or "\nSeccomp:\t0" not in Path("/proc/self/status").read_text()


@claim(Promise.HOST_FILES)
def files_of_the_host_cannot_be_read(backend: SandboxBackend) -> None:
    with tree(backend, {"secret": "of the host"}) as outside, opened(backend) as sandbox:
        result = sandbox.run(f"cat {outside}/secret")
        expect("output", "of the host" in result.output, False)
        output(sandbox, f"ln -s {outside}/secret link")
        try:
            found = sandbox.read_file("link")
        except OSError:
            found = b""
        expect("through a link", found, b"")


@claim(Promise.HOST_FILES)
def files_of_the_host_cannot_be_written(backend: SandboxBackend) -> None:
    with tree(backend, {"file": "of the host"}) as outside, opened(backend) as sandbox:
        sandbox.run(f"echo x > {outside}/file; echo x > {outside}/new; rm -f {outside}/file")
        expect("files", sorted(p.name for p in outside.iterdir()), ["file"])
        expect("content", (outside / "file").read_text(encoding="utf-8"), "of the host")


@claim(Promise.HOST_FILES)
def homes_and_this_package_are_inaccessible(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        expect("this package", sandbox.run(f"ls {PACKAGE}/grading").exit_code == 0, False)
        expect("shadow", sandbox.run("grep -c : /etc/shadow").exit_code == 0, False)
        expect("home", sandbox.run(f"ls -A {Path.home()}/.[a-z]*").exit_code == 0, False)


@claim(Promise.HOST_PROCESSES)
def processes_of_the_host_are_inaccessible(backend: SandboxBackend) -> None:
    pid = os.getpid()
    started = start_time(pid)
    with opened(backend) as sandbox:
        fields = sandbox.run(f"cat /proc/{pid}/stat").output.rpartition(")")[2].split()
        expect("this process is seen", fields[19:20] == [started], False)
        signalled = sandbox.run(f"kill -0 {pid}").ok
        expect("this process is signalled", signalled and fields[19:20] in ([], [started]), False)


@claim(Promise.NO_NETWORK)
def nothing_outside_is_reachable(backend: SandboxBackend) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, opened(backend) as sandbox:
        port = server.getsockname()[1]
        result = sandbox.run(f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached", timeout_s=20)
        expect("the host's loopback", "reached" in result.output, False)
        # An address that documentation may use: nobody answers, so it must fail at once.
        far = sandbox.run("exec 3<>/dev/tcp/192.0.2.1/80 && echo reached", timeout_s=5)
        expect("far away", ("reached" in far.output, far.timed_out), (False, False))


@claim(Promise.NO_NETWORK)
def abstract_sockets_of_the_host_are_inaccessible(backend: SandboxBackend) -> None:
    name = f"\0coding_gym-check-{os.getpid()}"
    script = (
        "import socket\n"
        f"try: socket.socket(socket.AF_UNIX).connect({name!r}); print('reached')\n"
        "except OSError: print('refused')\n"
    )
    with socket.socket(socket.AF_UNIX) as server, opened(backend, python=True) as sandbox:
        server.bind(name)
        server.listen()
        expect("connection", python_output(sandbox, script), "refused\n")


@claim(Promise.NO_PRIVILEGES)
def commands_have_no_privileges_and_gain_none(backend: SandboxBackend) -> None:
    # Asked of the kernel: a backend may keep all of /proc out of reach.
    script = (
        "import ctypes\n"
        "libc = ctypes.CDLL(None)\n"
        "sets = (ctypes.c_uint32 * 6)()\n"
        "libc.capget((ctypes.c_uint32 * 2)(0x20080522, 0), sets)\n"
        "print(sum(sets), libc.prctl(39, 0, 0, 0, 0))\n"
    )
    with opened(backend, python=True) as sandbox:
        said = python_output(sandbox, script).split()
        expect("capabilities, and no_new_privs", said, ["0", "1"])
        uids = output(sandbox, "cp $(type -P id) id; chmod 6755 id; id -u; ./id -u").split()
        expect("a setuid program", uids[1], uids[0])


@claim(Promise.NO_PRIVILEGES, is_moot=lambda: os.geteuid() != 0)
def the_host_never_sees_root(backend: SandboxBackend) -> None:
    uid, _ = backend.owner()
    expect("the owner of files is root", uid == 0, False)


@claim(Promise.SYSTEM_CALLS, is_moot=_owner_is_filtered)
def dangerous_system_calls_are_refused(backend: SandboxBackend) -> None:
    script = (
        "import ctypes, errno, platform\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "column = platform.machine() == 'aarch64'\n"
        "calls = dict(unshare=(272, 97), keyctl=(250, 219), bpf=(321, 280),\n"
        "             perf_event_open=(298, 241), userfaultfd=(323, 282), mount=(165, 40))\n"
        "for name, numbers in calls.items():\n"
        "    flags = 0x10000000 if name == 'unshare' else 0\n"
        "    libc.syscall(numbers[column], flags, 0, 0, 0, 0, 0)\n"
        "    print(name, errno.errorcode[ctypes.get_errno()] if ctypes.get_errno() else 'done')\n"
        "    ctypes.set_errno(0)\n"
    )
    with opened(backend, python=True) as sandbox:
        for line in python_output(sandbox, script).splitlines():
            name, answer = line.split()
            expect(f"{name} ({answer}) is refused", answer in {"EPERM", "ENOSYS", "EACCES"}, True)
