"""Ends: killed owners and zygotes, dying and closed sandboxes, and what they leave."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from processes import children, descendants, num_descriptors, wait_gone
from sandbox_scene import BACKEND, Beacon, make_sandbox

from coding_gym.errors import SandboxError
from coding_gym.sandbox import Mount, SandboxLimits
from coding_gym.sandbox.zygote_process import Zygote
from coding_gym.testing.debug import first_pid, helper_pid

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


def test_killing_the_owner_leaves_nothing(beacon: Beacon, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER, beacon.mount.source],
        stdin=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(temporary)},
    )
    with owner:
        beacon.wait(4)
        processes = descendants(owner.pid)
        owner.kill()
    # Two of the zygote, eight first processes, and of four commands bash and its two children.
    assert len(processes) >= 2 + 8 + 4 * 2
    assert wait_gone(processes, 10) == []
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("which", ["outer", "server"])
def test_killing_the_zygote_ends_its_sandboxes_and_the_next_open_starts_another(which: str) -> None:
    sandbox = make_sandbox()
    outer = helper_pid(BACKEND)
    server, *below = descendants(outer)
    os.kill(outer if which == "outer" else server, signal.SIGKILL)
    assert wait_gone([server, *below], 10) == []
    with pytest.raises(SandboxError):
        sandbox.run("true")
    sandbox.close()
    with make_sandbox() as again:
        assert again.run("echo back").output == "back\n"


@pytest.mark.parametrize("which", ["outer", "server"])
def test_a_zygote_that_dies_while_a_sandbox_is_being_set_up_is_replaced_too(
    which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = []
    open_as_ever = Zygote.open

    def open_and_die(handle: Zygote, request: dict[str, Any]) -> socket.socket:
        stream = open_as_ever(handle, request)
        if not killed:
            outer = helper_pid(BACKEND)
            killed.extend([outer, *descendants(outer)])
            os.kill(killed[0 if which == "outer" else 1], signal.SIGKILL)
            assert wait_gone(killed[1:], 10) == []
            stream.close()  # its first process may have answered before
            stream, theirs = socket.socketpair()
            theirs.close()
        return stream

    monkeypatch.setattr(Zygote, "open", open_and_die)
    with make_sandbox() as sandbox:
        assert sandbox.run("echo up").output == "up\n"
        assert killed
        assert wait_gone(killed, 0) == []


def test_a_dead_sandbox_says_so_at_once_and_always() -> None:
    sandbox = make_sandbox()
    os.kill(first_pid(sandbox), signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(SandboxError, match="died"):
            sandbox.run("true")
        with pytest.raises(SandboxError, match="died"):
            sandbox.read_file("file")
    sandbox.close()
    sandbox.close()


def test_a_sandbox_that_dies_under_a_command_raises(beacon: Beacon) -> None:
    sandbox = make_sandbox(mounts=(beacon.mount,))
    first = first_pid(sandbox)

    def kill() -> None:
        beacon.wait()
        os.kill(first, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(SandboxError, match="died"):
        sandbox.run(f"{beacon.light}; sleep 60", timeout_s=90)
    killer.join()
    sandbox.close()


def test_closing_from_another_thread_ends_a_running_command(beacon: Beacon) -> None:
    sandbox = make_sandbox(mounts=(beacon.mount,))
    first = first_pid(sandbox)
    errors: list[SandboxError] = []

    def run() -> None:
        try:
            sandbox.run(f"{beacon.light}; sleep 60")
        except SandboxError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    beacon.wait()
    running = descendants(first)
    sandbox.close()
    thread.join(10)
    assert [str(error) for error in errors] == ["the sandbox is closed"]
    assert len(running) == 1
    assert wait_gone(running, 0) == []
    assert wait_gone([first], 10) == []


def test_opening_and_closing_leaks_no_descriptor() -> None:
    make_sandbox().close()
    before = num_descriptors()
    for _ in range(20):
        with make_sandbox() as sandbox:
            sandbox.run("true")
    assert num_descriptors() == before
    (server,) = children(helper_pid(BACKEND))
    assert wait_gone(children(server), 10) == []


def test_a_failed_open_leaks_no_descriptor(tmp_path: Path) -> None:
    make_sandbox().close()
    before = num_descriptors()
    for _ in range(5):
        with pytest.raises(SandboxError, match="mount at /usr/nowhere"):
            make_sandbox(mounts=(Mount(source=tmp_path, target="/usr/nowhere"),))
    assert num_descriptors() == before


def test_what_goes_wrong_inside_before_a_sandbox_serves_is_told_in_one_line() -> None:
    limits = SandboxLimits(num_processes="many")
    with pytest.raises(SandboxError, match="could not serve the sandbox: TypeError") as caught:
        make_sandbox(limits=limits)
    assert "\n" not in str(caught.value)
