"""Many cycles of open and close leave no processes, descriptors, mounts or files."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from sandbox_fixtures import descendants, num_descriptors, wait_gone

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox import Mount, SandboxSpec
from coding_gym.sandbox.namespace import NamespaceBackend

_MISSING = SandboxSpec(mounts=(Mount(source=Path("/no/such/folder"), target="/opt/x"),))


def cycle(backend: NamespaceBackend, number: int) -> None:
    """Opens a sandbox, uses it in ways that ``number`` selects, and closes it."""
    with backend.open(SandboxSpec()) as sandbox:
        sandbox.write_file("new/file", b"x" * 10_000)
        if number % 10 == 0:
            snapshot = sandbox.snapshot()
            sandbox.restore(snapshot)
            backend.open(snapshot.spec, snapshot=snapshot).close()
            with pytest.raises(SandboxError):
                backend.open(snapshot.spec, snapshot=replace(snapshot, data=snapshot.data[:-1]))
        if number % 25 == 0:
            assert sandbox.run("(setsid sleep 100 &); sleep 100 & echo on").num_leftovers >= 1
        if number % 50 == 0:
            assert sandbox.run("sleep 10", timeout_s=0.05).timed_out
        assert sandbox.read_file("new/file") == b"x" * 10_000
    if number % 25 == 0:
        with pytest.raises(InvalidArgumentError):
            backend.open(_MISSING)


def count_resources(temporary: Path, helpers: list[int]) -> dict[str, int]:
    """Counts resources of this process and its helpers, after other processes have ended."""
    wait_gone([pid for pid in descendants(os.getpid()) if pid not in helpers], 30)
    pids = descendants(os.getpid())
    tables = [Path(f"/proc/{pid}/mounts") for pid in ("self", *pids)]
    return {
        "descriptors": sum(map(num_descriptors, ("self", *pids))),
        "processes": len(pids),
        "mounts": sum(len(table.read_text().splitlines()) for table in tables),
        "files": sum(1 for _ in temporary.rglob("*")),
    }


@pytest.mark.parametrize(
    ("changes", "num_cycles"),
    [
        pytest.param("auto", 50, marks=pytest.mark.slow),
        pytest.param("auto", 300, marks=pytest.mark.nightly),
        pytest.param("disk", 300, marks=pytest.mark.nightly),
    ],
)
def test_opening_and_closing_leaves_nothing(
    changes: str, num_cycles: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    backend = NamespaceBackend(changes=changes)
    for number in range(30):
        cycle(backend, number)
    with backend.open(SandboxSpec()):
        helpers = descendants(os.getpid())[:2]
    before = count_resources(tmp_path, helpers)
    for number in range(num_cycles):
        cycle(backend, number)
    after = count_resources(tmp_path, helpers)
    # Resources of earlier tests in this process can be freed meanwhile.
    assert {name: count for name, count in after.items() if count > before[name]} == {}
