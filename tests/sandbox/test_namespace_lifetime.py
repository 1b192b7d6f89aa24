"""Ends: killed owners and zygotes, dying and closed sandboxes, and what they leave."""

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from coding_gym.errors import SandboxError
from coding_gym.sandbox import Mount, SandboxLimits, SandboxSpec
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.zygote_process import Zygote
from coding_gym.sandbox.zygotes import zygote

if TYPE_CHECKING:
    from tests.sandbox.conftest import Beacon

_OWNER = """
import sys, threading
from pathlib import Path
from coding_gym.sandbox import Mount, SandboxSpec, open_sandbox

mount = Mount(source=Path(sys.argv[1]), target="/opt/beacon", writable=True)
opened = [open_sandbox(SandboxSpec(mounts=(mount,))) for _ in range(8)]
command = "trap '' TERM HUP; (setsid sleep 98765 &); echo > /opt/beacon/fifo; sleep 98765"
for sandbox in opened[:4]:
    threading.Thread(target=sandbox.run, args=(command,), daemon=True).start()
for sandbox in opened[4:]:
    sandbox.write_file("file", b"x" * 100000)
sys.stdin.read()
"""


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(child) for child in text.split()]


def _tree(pid: int) -> list[int]:
    return [pid, *(p for child in _children(pid) for p in _tree(child))]


def _wait_gone(pids: list[int], timeout_s: float) -> list[int]:
    """Returns those of the processes that still run when the time is up."""
    deadline = time.monotonic() + timeout_s
    left = []
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            wait_ms = max(0.0, deadline - time.monotonic()) * 1000
            poller = select.poll()
            poller.register(descriptor, select.POLLIN)
            if not poller.poll(wait_ms):
                left.append(pid)
        finally:
            os.close(descriptor)
    return left


def _num_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _first_process_of(backend: NamespaceBackend) -> int:
    """Returns the host's pid of the newest sandbox's init."""
    server = _children(zygote(*backend.owner())._pid)[0]
    return max(_children(server))


def _mounts() -> list[str]:
    """Returns this machine's mounts, without those of a container engine that others may use."""
    lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if "docker" not in line]


def test_killing_the_owner_leaves_nothing(beacon: "Beacon", tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    mounts_before = _mounts()
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER, beacon.mount.source],
        stdin=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(temporary)},
    )
    with owner:
        beacon.wait(4)
        processes = _tree(owner.pid)[1:]
        owner.kill()
    # Two of the zygote, eight first processes, and of four commands bash and its two children.
    assert len(processes) >= 2 + 8 + 4 * 2
    assert _wait_gone(processes, 2) == []
    assert _mounts() == mounts_before
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("which", ["outer", "server"])
def test_killing_the_zygote_ends_its_sandboxes_and_the_next_open_starts_another(
    backend: NamespaceBackend, which: str
) -> None:
    sandbox = backend.open(SandboxSpec())
    outer = zygote(*backend.owner())._pid
    processes = _tree(outer)
    os.kill(outer if which == "outer" else processes[1], signal.SIGKILL)
    assert _wait_gone(processes[1:], 2) == []
    with pytest.raises(SandboxError):
        sandbox.run("true")
    sandbox.close()
    with backend.open(SandboxSpec()) as again:
        assert again.run("echo back").output == "back\n"


@pytest.mark.parametrize("which", ["outer", "server"])
def test_a_zygote_that_dies_while_a_sandbox_is_being_set_up_is_replaced_too(
    backend: NamespaceBackend, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = []
    open_as_ever = Zygote.open

    def open_and_die(handle: Zygote, request: dict[str, Any]) -> socket.socket:
        stream = open_as_ever(handle, request)
        if not killed:
            killed.extend(_tree(handle._pid))
            os.kill(killed[0 if which == "outer" else 1], signal.SIGKILL)
            assert _wait_gone(killed[1:], 2) == []
            stream.close()  # its first process may have answered before
            stream, theirs = socket.socketpair()
            theirs.close()
        return stream

    monkeypatch.setattr(Zygote, "open", open_and_die)
    with backend.open(SandboxSpec()) as sandbox:
        assert sandbox.run("echo up").output == "up\n"
        assert killed
        assert _wait_gone(killed, 0) == []


def test_a_dead_sandbox_says_so_at_once_and_always(backend: NamespaceBackend) -> None:
    sandbox = backend.open(SandboxSpec())
    os.kill(_first_process_of(backend), signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(SandboxError, match="died"):
            sandbox.run("true")
        with pytest.raises(SandboxError, match="died"):
            sandbox.read_file("file")
    sandbox.close()
    sandbox.close()


def test_a_sandbox_that_dies_under_a_command_raises(
    backend: NamespaceBackend, beacon: "Beacon"
) -> None:
    sandbox = backend.open(SandboxSpec(mounts=(beacon.mount,)))
    first = _first_process_of(backend)

    def kill() -> None:
        beacon.wait()
        os.kill(first, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(SandboxError, match="died"):
        sandbox.run(f"{beacon.light}; sleep 60", timeout_s=90)
    killer.join()
    sandbox.close()


def test_closing_from_another_thread_ends_a_running_command(
    backend: NamespaceBackend, beacon: "Beacon"
) -> None:
    sandbox = backend.open(SandboxSpec(mounts=(beacon.mount,)))
    errors: list[SandboxError] = []

    def run() -> None:
        try:
            sandbox.run(f"{beacon.light}; sleep 60")
        except SandboxError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    beacon.wait()
    processes = _tree(_first_process_of(backend))
    sandbox.close()
    thread.join(10)
    assert [str(error) for error in errors] == ["the sandbox is closed"]
    first, command = processes
    assert _wait_gone([command], 0) == []
    assert _wait_gone([first], 2) == []


def test_opening_and_closing_leaks_no_descriptor(backend: NamespaceBackend) -> None:
    backend.open(SandboxSpec()).close()
    before = _num_descriptors()
    for _ in range(20):
        with backend.open(SandboxSpec()) as sandbox:
            sandbox.run("true")
    assert _num_descriptors() == before
    server = _children(zygote(*backend.owner())._pid)[0]
    assert _wait_gone(_children(server), 2) == []


def test_a_failed_open_leaks_no_descriptor(backend: NamespaceBackend, tmp_path: Path) -> None:
    backend.open(SandboxSpec()).close()
    before = _num_descriptors()
    for _ in range(5):
        with pytest.raises(SandboxError, match="mount at /usr/nowhere"):
            backend.open(SandboxSpec(mounts=(Mount(source=tmp_path, target="/usr/nowhere"),)))
    assert _num_descriptors() == before


def test_what_goes_wrong_inside_before_a_sandbox_serves_is_told_in_one_line(
    backend: NamespaceBackend,
) -> None:
    limits = SandboxLimits(num_processes="many")
    with pytest.raises(SandboxError, match="could not serve the sandbox: TypeError") as caught:
        backend.open(SandboxSpec(limits=limits))
    assert "\n" not in str(caught.value)
