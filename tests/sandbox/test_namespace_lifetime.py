"""Ends, forks, threads and interrupted calls: what they leave of sandboxes and their zygote."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from episodes import raising
from sandbox_fixtures import (
    BACKEND,
    AlivePipe,
    descendants,
    helper_pid,
    make_sandbox,
    wait_gone,
)

from coding_gym.errors import SandboxError
from coding_gym.sandbox import Sandbox
from coding_gym.sandbox.zygotes import stop_zygotes

_OWNER = """
import sys, threading
from pathlib import Path
from coding_gym.sandbox import Mount, SandboxSpec, open_sandbox

mount = Mount(source=Path(sys.argv[1]), target="/opt/alive", writable=True)
opened = [open_sandbox(SandboxSpec(mounts=(mount,))) for _ in range(8)]
command = "trap '' TERM HUP; (setsid sleep 9876 &); exec 3> /opt/alive/pipe; echo >&3; sleep 9876"
for sandbox in opened[:4]:
    threading.Thread(target=sandbox.run, args=(command,), daemon=True).start()
for sandbox in opened[4:]:
    sandbox.write_file("file", b"x" * 100000)
sys.stdin.read()
"""


@pytest.mark.slow
def test_killing_the_owner_leaves_nothing(alive_pipe: AlivePipe, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER, alive_pipe.mount.source],
        stdin=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(temporary)},
    )
    with owner:
        for _ in range(4):
            alive_pipe.wait_opened()
        processes = descendants(owner.pid)
        owner.kill()
    # Two of the zygote, eight first processes, and of four commands bash and its two children.
    assert len(processes) >= 2 + 8 + 4 * 2
    assert wait_gone(processes, 10) == []
    assert str(alive_pipe.mount.source) not in Path("/proc/self/mountinfo").read_text(
        encoding="utf-8"
    )
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("which", ["outer", "server"])
def test_sandboxes_end_with_the_zygote(which: str) -> None:
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


class _Interruption(BaseException):
    pass


def test_an_interrupted_call_spoils_its_sandbox_and_no_other(alive_pipe: AlivePipe) -> None:
    def interrupt_the_call() -> None:
        alive_pipe.wait_opened()
        os.kill(os.getpid(), signal.SIGALRM)

    other = make_sandbox()
    sandbox = make_sandbox(mounts=(alive_pipe.mount,))
    previous = signal.signal(signal.SIGALRM, raising(_Interruption()))
    thread = threading.Thread(target=interrupt_the_call)
    thread.start()
    try:
        with pytest.raises(_Interruption):
            sandbox.run(f"echo > {alive_pipe.pipe()}; sleep 60")
    finally:
        thread.join()
        signal.signal(signal.SIGALRM, previous)
    with pytest.raises(SandboxError):
        sandbox.run("echo late")
    sandbox.close()
    assert other.run("echo unharmed").output == "unharmed\n"
    other.close()


# From 3.12 on, Python warns of forks while threads run, which is what some trainers do.
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_owner_starts_its_own_zygote() -> None:
    sandbox = make_sandbox()
    parents = helper_pid(BACKEND)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        answer = _in_the_fork(sandbox, parents)
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    assert os.read(reader, 1000) == b"own zygote, forked"
    os.close(reader)
    assert sandbox.run("echo unharmed").output == "unharmed\n"
    assert helper_pid(BACKEND) == parents
    sandbox.close()


def _in_the_fork(inherited: Sandbox, parents: int) -> str:
    try:
        with make_sandbox() as sandbox:
            output = sandbox.run("echo -n forked").output
        is_own = helper_pid(BACKEND) != parents
        try:
            inherited.run("true")
        except SandboxError:
            inherited.close()
            return f"{'own' if is_own else 'shared'} zygote, {output}"
        return "an inherited sandbox ran a command"
    finally:
        stop_zygotes()
