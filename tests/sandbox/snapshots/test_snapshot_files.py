"""A snapshot restores every kind of file; a snapshot above the limits is refused."""

import dataclasses

import pytest
from sandbox_fixtures import BACKEND, make_sandbox, opened, output

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox import SandboxBackend, SandboxLimits, SandboxSpec
from coding_gym.sandbox.namespace import NamespaceBackend

pytestmark = pytest.mark.slow

_ON_DISK = NamespaceBackend(changes="disk")


@pytest.mark.parametrize(("first", "second"), [(BACKEND, _ON_DISK), (_ON_DISK, BACKEND)])
def test_a_snapshot_opens_wherever_changes_are_kept(
    first: SandboxBackend, second: SandboxBackend
) -> None:
    with opened(first, {"edited": "before", "replaced/old": "x"}) as sandbox:
        output(sandbox, "echo after > edited; rm -r replaced; mkdir replaced; touch replaced/new")
        snapshot = sandbox.snapshot()
        with second.open(snapshot.spec, snapshot=snapshot) as fork:
            assert output(fork, "cat edited; ls replaced") == "after\nnew\n"


def test_holes_of_a_file_take_no_space_in_a_snapshot() -> None:
    with make_sandbox(limits=SandboxLimits(file_bytes=1 << 42)) as sandbox:
        output(sandbox, "truncate -s 1T holes; echo end >> holes")
        snapshot = sandbox.snapshot()
        assert len(snapshot.data) < 100_000
        output(sandbox, "rm holes")
        sandbox.restore(snapshot)
        assert output(sandbox, "stat -c %s holes; tail -c 4 holes") == f"{(1 << 40) + 4}\nend\n"


@pytest.mark.parametrize(
    "fill",
    [
        "i=0; while : > /tmp/f$i; do i=$((i+1)); done",
        "touch /tmp/f; i=0; while ln /tmp/f /dev/shm/f$i; do i=$((i+1)); done",
        "cat /dev/zero > /tmp/f",
    ],
)
def test_a_full_sandbox_is_restored_with_its_limits(fill: str) -> None:
    fill = f"{{ {fill}; }} 2> /dev/null; stat -f -c '%b %c' /tmp; find /tmp ~ /dev/shm | wc -l"
    with make_sandbox(limits=SandboxLimits(disk_bytes=4 << 20, num_inodes=400)) as sandbox:
        before = sandbox.run(fill).output
        for _ in range(3):
            taken = sandbox.snapshot()
            sandbox.restore(taken)
            assert sandbox.snapshot() == taken
            assert sandbox.run(fill).output == before


@pytest.mark.parametrize("limits", [{"disk_bytes": 1 << 20}, {"num_inodes": 256}])
def test_a_snapshot_above_the_limits_ends_the_sandbox(limits: dict[str, int]) -> None:
    with make_sandbox() as sandbox:
        sandbox.run("head -c 3000000 /dev/zero > data; for i in {1..300}; do mkdir d$i; done")
        large = sandbox.snapshot()
    small = dataclasses.replace(large, spec=SandboxSpec(limits=SandboxLimits(**limits)))
    with BACKEND.open(small.spec) as sandbox:
        with pytest.raises((SandboxError, InvalidArgumentError)):
            sandbox.restore(small)
        with pytest.raises(SandboxError):
            sandbox.run("true")
