"""Ends: killed owners and zygotes, dying and closed sandboxes, and what they leave."""

import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from processes import descendants, num_descriptors, wait_gone
from sandbox_scene import BACKEND, Beacon, make_sandbox

from coding_gym.errors import SandboxError
from coding_gym.sandbox import Mount, SandboxLimits
from coding_gym.sandbox.options import Shell
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


def test_a_sandbox_that_dies_under_a_command_says_so_then_and_always(beacon: Beacon) -> None:
    sandbox = make_sandbox(mounts=(beacon.mount,))
    first = first_pid(sandbox)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(sandbox.run, f"{beacon.light}; sleep 60")
        beacon.wait()
        os.kill(first, signal.SIGKILL)
        with pytest.raises(SandboxError, match="died"):
            running.result(10)
    for call in (sandbox.run, sandbox.read_file) * 2:
        with pytest.raises(SandboxError, match="died"):
            call("file")
    sandbox.close()
    sandbox.close()


@pytest.mark.parametrize("shell", ["fresh", "waiting", "persistent"])
def test_closing_from_another_thread_ends_whatever_runs(beacon: Beacon, shell: Shell) -> None:
    sandbox = make_sandbox(mounts=(beacon.mount,), shell=shell)
    sandbox.run("(trap '' TERM HUP; setsid sleep 300 &)")
    first = first_pid(sandbox)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(sandbox.run, f"{beacon.light}; sleep 60")
        beacon.wait()
        processes = descendants(first)
        sandbox.close()
        with pytest.raises(SandboxError, match=r"^the sandbox is closed$"):
            running.result(10)
    assert processes
    assert wait_gone(processes, 0) == []
    assert wait_gone([first], 10) == []


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
