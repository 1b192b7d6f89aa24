"""Concurrent sandboxes are isolated from each other, and leave nothing in their owner."""

import os
import pickle
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from sandbox_fixtures import (
    alive_pipe,
    descendants,
    helper_pid,
    num_descriptors,
    opened,
    output,
    tree,
    wait_gone,
)

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox.docker_backend import DockerBackend
from coding_gym.sandbox.docker_engine import connect
from coding_gym.sandbox.ownership import process_folder
from coding_gym.sandbox.protocol import Promise, SandboxBackend
from coding_gym.sandbox.spec import SandboxSpec

# A process that owns a sandbox with a running command; its fork, which closes the sandbox in vain,
# outlives it.
_OWNER = """
import os, pickle, sys
backend, spec, command = pickle.load(sys.stdin.buffer)
with backend.open(spec) as sandbox:
    if os.fork() == 0:
        sandbox.close()
        sys.stdin.read()
        os._exit(0)
    sandbox.run(command)
"""


def test_sandboxes_do_not_share_their_workspaces(backend: SandboxBackend) -> None:
    with opened(backend, {"file": "base"}) as one, opened(backend, {"file": "base"}) as other:
        one.write_file("secret", b"1")
        output(one, "echo changed > file; touch ~/secret")
        assert output(other, "ls -A; cat file; ls -A ~") == "file\nbase"


@pytest.mark.promise(Promise.PRIVATE_ROOT)
def test_sandboxes_do_not_share_temporary_files(backend: SandboxBackend) -> None:
    name = f"coding_gym-check-{os.getpid()}"
    for folder in ("/tmp", "/dev/shm"):
        path = f"{folder}/{name}"
        with opened(backend) as one, opened(backend) as other:
            output(one, f"echo x > {path}")
            try:
                assert other.run(f"cat {path}").exit_code != 0
                assert not Path(path).exists()
            finally:
                output(one, f"rm {path}")


def test_sandboxes_do_not_see_each_others_processes(backend: SandboxBackend) -> None:
    with alive_pipe(backend) as alive, opened(backend, mounts=(alive.mount,)) as one:
        mark = f"coding_gym-check-{os.getpid()}"
        pipe = alive.path(one)
        command = f"exec -a '{mark} x' bash -c 'echo > {pipe}; sleep 60; :'"
        with ThreadPoolExecutor(1) as pool, opened(backend) as other:
            pool.submit(one.run, command)
            alive.wait_opened()
            count = f"cat /proc/[0-9]*/cmdline 2>&- | tr '\\0' ' ' | grep -c '{mark}[ ]x'"
            num_visible = other.run(count).output.strip()
            one.close()
        assert num_visible == "0"


def test_eight_sandboxes_work_from_eight_threads(backend: SandboxBackend) -> None:
    def work(number: int) -> str:
        with opened(backend, {"file": str(number)}) as sandbox:
            for turn in range(2):
                output(sandbox, f"echo {turn} >> file; sleep 0.01")
            sandbox.write_file("other", sandbox.read_file("file"))
            return output(sandbox, "cat other").replace("\n", " ")

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(work, range(8)))
    assert answers == [f"{number}0 1 " for number in range(8)]


_LONG = pytest.param(300, marks=[pytest.mark.nightly, pytest.mark.timeout(1500)])


@pytest.mark.parametrize("num_cycles", [12, _LONG])
def test_opening_and_closing_leaves_nothing(backend: SandboxBackend, num_cycles: int) -> None:
    for number in range(12):  # resources that are made once, as pools of connections, are no leak
        _use(backend, number)
    before = _resources(backend)
    for number in range(num_cycles):
        _use(backend, number)
    # Other descriptors of this process vary; a leak grows with each sandbox.
    grown = [new - old for old, new in zip(before, _resources(backend), strict=True)]
    assert max(grown) < num_cycles // 3


def _use(backend: SandboxBackend, number: int) -> None:
    """Opens a sandbox, uses it in a way that ``number`` selects, and closes it."""
    with backend.open(SandboxSpec()) as sandbox:
        output(sandbox, "echo x > file")
        if number % 3 == 0:
            assert sandbox.run("(setsid sleep 100 &); sleep 100 & echo on").num_leftovers >= 1
        elif number % 3 == 1:
            assert sandbox.run("sleep 10", timeout_s=0.05).timed_out
        elif backend.name != "docker":
            snapshot = sandbox.snapshot()
            sandbox.restore(snapshot)
            backend.open(snapshot.spec, snapshot=snapshot).close()
            with pytest.raises(SandboxError):
                backend.open(snapshot.spec, snapshot=replace(snapshot, data=snapshot.data[:-1]))
    if number % 3 == 2:
        with pytest.raises(InvalidArgumentError):
            backend.open(SandboxSpec(layers=(Path("/no/such/folder"),)))


def _resources(backend: SandboxBackend) -> tuple[int, ...]:
    """Counts threads and temporary folders of this process, and resources of all its sandboxes.

    Other processes of this user may add temporary folders meanwhile.
    """
    folder = process_folder(Path(tempfile.gettempdir()).resolve(), os.getpid())
    zygotes, num_containers = [], 0
    if isinstance(backend, DockerBackend):
        num_containers = len(connect(backend._host).api.containers(all=True))
    else:
        zygote = helper_pid(backend)
        server = descendants(zygote)[: backend.name == "namespace"]
        # Processes of closed sandboxes.
        wait_gone([pid for pid in descendants(zygote) if pid not in server], 30)
        zygotes = [zygote, *descendants(zygote)]
    mounts = [Path(f"/proc/{pid}/mounts").read_text("utf-8") for pid in zygotes]
    return (
        threading.active_count(),
        len(list(folder.iterdir())),
        len(zygotes) + num_containers,
        sum(map(num_descriptors, ("self", *zygotes))),
        sum(text.count("\n") for text in mounts),
    )


def test_a_sandbox_ends_when_its_owner_dies(backend: SandboxBackend) -> None:
    with alive_pipe(backend) as alive, tree(backend, {}) as temporary:
        spec = SandboxSpec(mounts=(alive.mount,))
        with backend.open(spec) as sandbox:
            pipe = alive.path(sandbox)
        # It ends after a minute if no signal kills it.
        command = f"trap '' TERM HUP; exec 3> {pipe}; echo >&3; sleep 60"
        owner = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _OWNER],
            stdin=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(temporary)},
        )
        with owner:
            assert owner.stdin is not None
            pickle.dump((backend, spec, command), owner.stdin)
            owner.stdin.flush()
            alive.wait_opened()
            owner.kill()
            assert alive.is_closed(10.0)
