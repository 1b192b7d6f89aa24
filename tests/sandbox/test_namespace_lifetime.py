"""Sandboxes and their zygote after kills, forks, threads and interrupted calls."""

import multiprocessing
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
    MakeLayer,
    descendants,
    helper_pid,
    make_sandbox,
    num_descriptors,
    wait_gone,
)

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox import Mount, Sandbox, namespace
from coding_gym.sandbox.inside import wire
from coding_gym.sandbox.ownership import process_folder
from coding_gym.sandbox.zygotes import stop_zygotes

_OWNER = """
import sys, threading
from pathlib import Path
from coding_gym.sandbox import Mount, SandboxSpec
from coding_gym.sandbox.namespace import NamespaceBackend

mount = Mount(source=Path(sys.argv[1]), target="/opt/alive", writable=True)
spec = SandboxSpec(layers=(Path(sys.argv[2]),), mounts=(mount,))
backend = NamespaceBackend(changes=sys.argv[3])
opened = [backend.open(spec) for _ in range(8)]
command = "chmod 700 folder; mkdir -m 0 closed; trap '' TERM HUP; (setsid sleep 9876 &)"
command += "; exec 3> /opt/alive/pipe; echo >&3; sleep 9876"
for sandbox in opened[:4]:
    threading.Thread(target=sandbox.run, args=(command,), daemon=True).start()
for sandbox in opened[4:]:
    sandbox.write_file("file", b"x" * 100000)
sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.parametrize("changes", ["auto", "disk"])
def test_killing_the_owner_leaves_nothing(
    changes: str, alive_pipe: AlivePipe, make_layer: MakeLayer, tmp_path: Path
) -> None:
    layer, temporary = make_layer({"folder/file": "x"}), tmp_path / "temporary"
    temporary.mkdir()
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER, alive_pipe.mount.source, layer, changes],
        stdin=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(temporary)},
    )
    with owner:
        for _ in range(4):
            alive_pipe.wait_opened()
        processes = descendants(owner.pid)
        assert _num_uppers(temporary) == (8 if changes == "disk" else 0)
        owner.kill()
    # Two processes of the zygote, eight first processes, and four commands with three each.
    assert len(processes) >= 2 + 8 + 4 * 2
    assert wait_gone(processes, 10) == []
    assert str(alive_pipe.mount.source) not in Path("/proc/self/mountinfo").read_text(
        encoding="utf-8"
    )
    assert _num_uppers(temporary) == 0
    if changes != "disk":
        assert not any(temporary.iterdir())


def _num_uppers(cache: Path) -> int:
    """Returns the number of folders of changes, after the next process has removed unused ones."""
    if (uppers := cache / "coding_gym" / "uppers").exists():
        process_folder.cache_clear()
        process_folder(uppers, os.getpid())
    return len([*cache.rglob("upper")])


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


def test_an_interrupted_call_closes_only_its_sandbox(alive_pipe: AlivePipe) -> None:
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
            sandbox.run(f"echo > {alive_pipe.path(sandbox)}; sleep 60")
    finally:
        thread.join()
        signal.signal(signal.SIGALRM, previous)
    with pytest.raises(SandboxError):
        sandbox.run("echo late")
    sandbox.close()
    assert other.run("echo unharmed").output == "unharmed\n"
    other.close()


# From 3.12 on, Python warns of forks while threads run; some trainers fork in this way.
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_owner_starts_its_own_zygote() -> None:
    sandbox = make_sandbox()
    parent_zygote = helper_pid(BACKEND)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=lambda: results.put(_in_the_fork(sandbox, parent_zygote)))
    child.start()
    assert results.get() == "own zygote, forked"
    child.join()
    assert sandbox.run("echo unharmed").output == "unharmed\n"
    assert helper_pid(BACKEND) == parent_zygote
    sandbox.close()


def _in_the_fork(inherited: Sandbox, parent_zygote: int) -> str:
    try:
        with make_sandbox() as sandbox:
            output = sandbox.run("echo -n forked").output
        is_own = helper_pid(BACKEND) != parent_zygote
        try:
            inherited.run("true")
        except SandboxError:
            inherited.close()
            return f"{'own' if is_own else 'shared'} zygote, {output}"
        return "an inherited sandbox ran a command"
    finally:
        stop_zygotes()


def test_invalid_mount_targets_are_refused_without_a_leak(tmp_path: Path) -> None:
    make_sandbox().close()
    before = num_descriptors()
    for target in ("/usr/nowhere", "/etc/passwd", "/etc/passwd/x", "/proc", "/dev/shm"):
        with pytest.raises(InvalidArgumentError, match=target):
            make_sandbox(mounts=(Mount(source=tmp_path, target=target),))
    (tmp_path / "file").touch()
    with pytest.raises(InvalidArgumentError, match="/home"):
        make_sandbox(mounts=(Mount(source=tmp_path / "file", target="/home"),))
    assert num_descriptors() == before


def test_a_late_reply_to_an_open_harms_no_other_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    with make_sandbox() as sandbox:
        with monkeypatch.context() as patched:
            patched.setattr(wire, "receive_descriptors", raising(TimeoutError("timed out")))
            with pytest.raises(SandboxError):
                make_sandbox()
        assert sandbox.run("echo unharmed").output == "unharmed\n"
        with make_sandbox() as another:
            assert another.run("echo opened").output == "opened\n"


def test_a_probe_reports_the_end_of_the_zygote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespace, "zygote", raising(SandboxError("the sandbox server died")))
    probe = BACKEND.probe()
    assert (probe.available, probe.detail) == (False, "the sandbox server died")
