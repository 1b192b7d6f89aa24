"""Sandboxes over many kills: nothing is left behind, and no other one breaks."""

import os
import random
import signal
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from sandbox_fixtures import descendants

from coding_gym.errors import SandboxError
from coding_gym.sandbox import SandboxSpec
from coding_gym.sandbox.namespace import NamespaceBackend

pytestmark = pytest.mark.nightly


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for all temporary files of this process."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_killed_processes_break_no_other_sandbox(
    temporary: Path,
) -> None:
    backend = NamespaceBackend()
    rng, stop = random.Random(0), threading.Event()
    finished, errors, broken = [0] * 4, [0] * 4, []

    def work(index: int) -> None:
        while not stop.is_set():
            try:
                with backend.open(SandboxSpec()) as sandbox:
                    sandbox.write_file("file", b"x")
                    sandbox.run("sleep 0.01")  # one that was killed has an exit code
                    sandbox.restore(sandbox.snapshot())
                    assert sandbox.read_file("file") == b"x"
                finished[index] += 1
            except SandboxError:
                errors[index] += 1
            except BaseException as error:  # noqa: BLE001 - reported below
                broken.append(error)
                return

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(60):
            wanted = [number + rng.randrange(1, 4) for number in finished]
            while any(map(int.__lt__, finished, wanted)) and not broken:  # all go on after a kill
                stop.wait(0.01)
            if pids := descendants(os.getpid()):
                with suppress(ProcessLookupError):
                    os.kill(rng.choice(pids), signal.SIGKILL)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert broken == []
    assert sum(errors) > 0
    with backend.open(SandboxSpec()) as sandbox:
        assert sandbox.run("echo on").output == "on\n"
    assert list(temporary.rglob("*")) == []
