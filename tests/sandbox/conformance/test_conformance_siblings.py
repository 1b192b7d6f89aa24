"""Concurrent sandboxes are isolated from each other, and leave nothing in their owner."""

import os
import pickle
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sandbox_fixtures import alive_pipe, num_descriptors, opened, output, tree

from coding_gym.sandbox.ownership import process_folder
from coding_gym.sandbox.protocol import Promise, SandboxBackend
from coding_gym.sandbox.spec import SandboxSpec

_NUM_CYCLES = 6
# A process that owns a sandbox with a running command.
_OWNER = """
import pickle, sys
backend, spec, command = pickle.load(sys.stdin.buffer)
with backend.open(spec) as sandbox:
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


def test_opening_and_closing_leaves_nothing_in_the_owner(backend: SandboxBackend) -> None:
    def cycle() -> None:
        with opened(backend, {"file": "x"}) as sandbox:
            output(sandbox, "echo y > file")

    for _ in range(
        _NUM_CYCLES
    ):  # resources that are made once, as pools of connections, are no leak
        cycle()
    before = num_descriptors(), threading.active_count(), _num_temporary()
    for _ in range(_NUM_CYCLES):
        cycle()
    after = num_descriptors(), threading.active_count(), _num_temporary()
    # Other descriptors of this process vary; a leak grows with each sandbox.
    for old, new in zip(before, after, strict=True):
        assert new - old < _NUM_CYCLES


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


def _num_temporary() -> int:
    """Returns the number of this process's folders; other processes may add folders meanwhile."""
    parent = Path(tempfile.gettempdir()).resolve()
    return len(list(process_folder(parent, os.getpid()).iterdir()))
