"""How landlock sandboxes end, and what older kernels lack."""

import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sandbox_scene import MakeLayer

from coding_gym.errors import SandboxError, SandboxUnavailableError
from coding_gym.sandbox import Mount, Sandbox, SandboxSpec, default_interpreter, temporary
from coding_gym.sandbox.landlock import LandlockBackend
from coding_gym.sandbox.processes import start_time
from coding_gym.sandbox.zygote.landlock import rights
from coding_gym.testing.beacon import beacon
from coding_gym.testing.debug import first_pid, watchdog_pid

_BACKEND = LandlockBackend()

pytestmark = pytest.mark.skipif(rights.abi() < 6, reason="the kernel has no Landlock with scopes")


def test_folders_of_processes_that_are_gone_are_removed() -> None:
    left = Path(tempfile.mkdtemp(prefix="coding_gym-test-999999999-1-"))
    running = Path(tempfile.mkdtemp(prefix=f"coding_gym-test-1-{start_time(1)}-"))
    made = temporary.make_folder("test")
    try:
        assert (left.exists(), running.exists(), made.exists()) == (False, True, True)
    finally:
        shutil.rmtree(left, ignore_errors=True)
        running.rmdir()
        made.rmdir()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("whose", [first_pid, watchdog_pid])
def test_the_end_of_either_process_is_the_end_of_the_sandbox(
    whose: Callable[[Sandbox], int], number: signal.Signals
) -> None:
    with beacon(_BACKEND) as lit, ThreadPoolExecutor(1) as pool:
        with _BACKEND.open(SandboxSpec(mounts=(lit.mount,))) as sandbox:
            folder = Path(sandbox.workdir).parent
            pipe = lit.pipe(sandbox.path(lit.mount.target))
            pid = whose(sandbox)
            running = pool.submit(sandbox.run, f"exec 3> {pipe}; echo >&3; sleep 60")
            lit.wait_lit()
            os.kill(pid, number)
            with pytest.raises(SandboxError, match="died"):
                running.result(10)
            with pytest.raises(SandboxError, match="died"):
                sandbox.run("true")
        assert lit.is_out(10), "the command goes on"
        assert not folder.exists()


@pytest.mark.parametrize("abi", [2, 6])
def test_a_file_that_may_only_be_read_cannot_be_emptied(abi: int, make_layer: MakeLayer) -> None:
    source = make_layer({"file": "kept"})
    mount = Mount(source=source, target="/opt/shown")
    script = (
        "import errno, os, sys\n"
        "for name in (sys.argv[1], 'mine'):\n"
        "    open('mine', 'w').write('x')\n"
        "    for action in (lambda: os.open(name, os.O_RDONLY | os.O_TRUNC),\n"
        "                   lambda: os.open(name, os.O_WRONLY | os.O_TRUNC),\n"
        "                   lambda: os.truncate(name, 0)):\n"
        "        try: action(); print('done')\n"
        "        except OSError as error: print(errno.errorcode[error.errno])\n"
    )
    spec = SandboxSpec(python=default_interpreter(), mounts=(mount,))
    with LandlockBackend(abi=abi).open(spec) as sandbox:
        sandbox.write_file("script.py", script.encode())
        said = sandbox.run(f"python script.py {sandbox.path('/opt/shown')}/file").output.split()
    assert set(said[:3]) == {"EACCES"}
    assert said[4] == "done"
    assert (source / "file").read_text() == "kept"


def test_signals_are_taken_for_confined_only_where_they_are() -> None:
    assert rights.scopes_signals(6)
    assert not rights.scopes_signals(5)


def test_a_kernel_without_landlock_is_told_what_to_do() -> None:
    probe = LandlockBackend(abi=0).probe()
    assert not probe.available
    assert probe.detail == "this kernel does not enforce Landlock"
    assert "lsm=" in probe.remedy
    with pytest.raises(SandboxUnavailableError, match="does not enforce Landlock"):
        LandlockBackend(abi=0).open(SandboxSpec())
    with pytest.raises(SandboxUnavailableError, match=r"use Linux 5\.19 or later"):
        LandlockBackend(abi=1).open(SandboxSpec())
