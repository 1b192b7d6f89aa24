"""Snapshots of sandboxes that are full, and into sandboxes that are too small."""

import dataclasses

import pytest
from sandbox_scene import BACKEND, MakeLayer, make_sandbox

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox import SandboxLimits, SandboxSpec, Snapshot, namespace_sandbox
from coding_gym.sandbox.namespace import NamespaceBackend


def test_a_full_sandbox_is_restored_full(make_layer: MakeLayer) -> None:
    limits = SandboxLimits(disk_bytes=4 << 20, num_inodes=400)
    with make_sandbox(layers=(make_layer({"file": "x"}),), limits=limits) as sandbox:
        sandbox.run("for i in {1..9}; do echo $i > f$i; ln f$i g$i; done; ln -s x y; ln y z")
        fill = "head -c 5000000 /dev/urandom > /tmp/fill; for i in {1..500}; do mkdir d$i; done"
        assert "No space left" in sandbox.run(fill).output
        check = "find . /tmp | sort | sha256sum; sha256sum /tmp/fill; stat -c %h f* g* y z"
        before = sandbox.run(check).output
        snapshot = sandbox.snapshot()
        for _ in range(2):
            sandbox.restore(snapshot)
            assert sandbox.run(check).output == before
        assert "No space left" in sandbox.run("mkdir more; echo x > /tmp/more").output


@pytest.mark.parametrize(
    "fill",
    [
        "i=0; while : > /tmp/f$i; do i=$((i+1)); done",
        "i=0; while mkdir ~/f$i; do i=$((i+1)); done",
        "i=0; while : > /tmp/f$i && ln /tmp/f$i /tmp/g$i; do i=$((i+1)); done",
        "touch /tmp/f; i=0; while ln /tmp/f /dev/shm/f$i; do i=$((i+1)); done",
        "cat /dev/zero > /tmp/f",
    ],
)
def test_who_fills_a_sandbox_does_not_keep_it_from_being_restored(fill: str) -> None:
    """However often, and the limits hold as before."""
    count = "stat -f -c '%b %c' /tmp; find /tmp ~ /dev/shm | wc -l"
    with make_sandbox(limits=SandboxLimits(disk_bytes=4 << 20, num_inodes=400)) as sandbox:
        before = sandbox.run(f"{{ {fill}; }} 2> /dev/null; {count}").output
        for _ in range(3):
            taken = sandbox.snapshot()
            sandbox.restore(taken)
            assert sandbox.snapshot() == taken
            assert sandbox.run(f"{{ {fill}; }} 2> /dev/null; {count}").output == before


@pytest.mark.parametrize("limits", [{"disk_bytes": 1 << 20}, {"num_inodes": 60}])
def test_what_does_not_fit_is_an_error_and_leaves_nothing(limits: dict[str, int]) -> None:
    with make_sandbox() as sandbox:
        sandbox.run("head -c 3000000 /dev/zero > data; for i in {1..90}; do mkdir d$i; done")
        large = sandbox.snapshot()
    spec = SandboxSpec(limits=SandboxLimits(**limits))
    small = dataclasses.replace(large, spec=spec)
    with BACKEND.open(spec) as sandbox:
        with pytest.raises(SandboxError, match=r"No space left|more than a sandbox may hold"):
            sandbox.restore(small)
        with pytest.raises(SandboxError, match="closed"):
            sandbox.run("true")


def test_more_than_any_such_sandbox_could_hold_is_refused_unread() -> None:
    spec = SandboxSpec(limits=SandboxLimits(disk_bytes=1 << 20, num_inodes=60))
    snapshot = Snapshot(backend="namespace", spec=spec, data=bytes(8 << 20))
    with (
        NamespaceBackend().open(spec) as sandbox,
        pytest.raises(InvalidArgumentError, match="more than a sandbox may hold"),
    ):
        sandbox.restore(snapshot)


def test_a_snapshot_that_outgrows_its_bound_is_the_end_of_the_sandbox(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with make_sandbox() as sandbox:
        sandbox.run("head -c 9000000 /dev/urandom > data")
        monkeypatch.setattr(namespace_sandbox, "max_snapshot_bytes", lambda _: 1 << 20)
        with pytest.raises(SandboxError, match="changes are more than 1048576 bytes"):
            sandbox.snapshot()
        with pytest.raises(SandboxError, match="changes are more than 1048576 bytes"):
            sandbox.run("true")
