"""Sandboxes over many cycles and kills: nothing is left, and other sandboxes keep working."""

import os
import random
import signal
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from sandbox_fixtures import descendants, num_descriptors, wait_gone

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox import Mount, SandboxSpec
from coding_gym.sandbox.namespace import NamespaceBackend

pytestmark = pytest.mark.nightly

_MISSING = SandboxSpec(mounts=(Mount(source=Path("/no/such/folder"), target="/opt/x"),))


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> NamespaceBackend:
    backend = NamespaceBackend(changes=getattr(request, "param", "auto"))
    probe = backend.probe()
    if not probe.available:
        pytest.skip(probe.detail)
    return backend


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for all temporary files of this process."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def cycle(backend: NamespaceBackend, number: int) -> None:
    """Opens a sandbox, uses it in one of several ways, and closes it."""
    with backend.open(SandboxSpec()) as sandbox:
        sandbox.write_file("new/file", b"x" * 10_000)
        if number % 10 == 0:
            sandbox.restore(sandbox.snapshot())
        if number % 25 == 0:
            assert sandbox.run("(setsid sleep 100 &); sleep 100 & echo on").num_leftovers >= 1
        if number % 50 == 0:
            assert sandbox.run("sleep 10", timeout_s=0.05).timed_out
        assert sandbox.read_file("new/file") == b"x" * 10_000
    if number % 25 == 0:
        with pytest.raises(InvalidArgumentError):
            backend.open(_MISSING)


def held(temporary: Path, settled: list[int]) -> dict[str, int]:
    """Counts what this process and its helpers hold, once other processes have ended."""
    wait_gone([pid for pid in descendants(os.getpid()) if pid not in settled], 30)
    pids = descendants(os.getpid())
    tables = [Path(f"/proc/{pid}/mounts") for pid in ("self", *pids)]
    return {
        "descriptors": num_descriptors(),
        "processes": len(pids),
        "mounts": sum(len(table.read_text().splitlines()) for table in tables),
        "files": sum(1 for _ in temporary.rglob("*")),
    }


@pytest.mark.parametrize("backend", ["auto", "disk"], indirect=True)
def test_opening_and_closing_leaves_nothing(backend: NamespaceBackend, temporary: Path) -> None:
    for number in range(30):
        cycle(backend, number)
    with backend.open(SandboxSpec()):
        helpers = descendants(os.getpid())[:2]
    before = held(temporary, helpers)
    for number in range(300):
        cycle(backend, number)
    assert held(temporary, helpers) == before


def test_killed_processes_break_no_other_sandbox(
    backend: NamespaceBackend, temporary: Path
) -> None:
    rng, stop = random.Random(0), threading.Event()
    finished, errors, broken = [0] * 4, [0] * 4, []

    def work(index: int) -> None:
        while not stop.is_set():
            try:
                with backend.open(SandboxSpec()) as sandbox:
                    sandbox.write_file("file", b"x")
                    sandbox.run("sleep 0.01")  # a killed command has an exit code
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
    cycle(backend, 1)
    assert list(temporary.rglob("*")) == []
