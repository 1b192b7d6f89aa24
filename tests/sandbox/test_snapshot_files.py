"""What a snapshot holds, that all of it comes back, and what does not fit."""

import dataclasses
import os
from collections.abc import Iterator

import pytest
from repositories import commit
from sandbox_scene import BACKEND, MakeLayer, make_sandbox
from snapshot_scenes import TEMPLATE, differences, make_every_kind

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox import (
    Sandbox,
    SandboxBackend,
    SandboxLimits,
    SandboxSpec,
    Snapshot,
    default_interpreter,
    served_sandbox,
)
from coding_gym.sandbox.namespace import NamespaceBackend

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::coding_gym.sandbox.process.NoIsolationWarning"),
]

_ROOMY = SandboxLimits(file_bytes=1 << 42)


@pytest.fixture
def opened(any_backend: SandboxBackend, make_layer: MakeLayer) -> Iterator[Sandbox]:
    spec = SandboxSpec(layers=(make_layer(TEMPLATE),), python=default_interpreter(), limits=_ROOMY)
    with any_backend.open(spec) as sandbox:
        yield sandbox


def test_every_kind_of_file_comes_back(opened: Sandbox, any_backend: SandboxBackend) -> None:
    assert differences(any_backend, opened.snapshot().spec) == []


def test_a_terabyte_of_holes_costs_nothing(opened: Sandbox) -> None:
    made = opened.run("truncate -s 1T holes; echo end >> holes; stat -c %s holes")
    assert made.output == f"{(1 << 40) + 4}\n"
    snapshot = opened.snapshot()
    assert len(snapshot.data) < 100_000
    opened.run("rm holes")
    opened.restore(snapshot)
    assert opened.run("stat -c %s holes; tail -c 4 holes").output == f"{(1 << 40) + 4}\nend\n"


@pytest.mark.parametrize("kind", ["namespace", "namespace-on-disk"])
def test_folders_deeper_than_any_path_come_back(opened: Sandbox, kind: str) -> None:
    dig = b"import os\nfor _ in range(1100):\n    os.mkdir('deep')\n    os.chdir('deep')\n"
    assert opened.run("python -", stdin=dig + b"open('file', 'w').write('bottom')").ok
    snapshot = opened.snapshot()
    assert opened.run("rm -r deep").ok
    opened.restore(snapshot)
    climb = b"import os\nfor _ in range(1100):\n    os.chdir('deep')\nprint(open('file').read())"
    assert opened.run("python -", stdin=climb).output == "bottom\n"


def test_more_data_than_one_message_holds_comes_back(opened: Sandbox) -> None:
    make = "head -c 9000000 /dev/urandom > big; for i in {1..500}; do echo $i > small$i; done"
    check = "cat big small* | sha256sum"
    before = opened.run(f"{make}; {check}").output
    snapshot = opened.snapshot()
    assert len(snapshot.data) > 9_000_000
    opened.run("rm big small*")
    opened.restore(snapshot)
    assert opened.run(check).output == before


@pytest.mark.parametrize("place", ["/workspace", "/home/agent", "/tmp", "/dev/shm"])
@pytest.mark.parametrize("kind", ["namespace", "namespace-on-disk"])
def test_a_closed_place_itself_comes_back_closed(opened: Sandbox, place: str, kind: str) -> None:
    opened.run(f"echo x > {place}/file; chmod 0 {place}")
    snapshot = opened.snapshot()
    assert opened.run(f"stat -c %a {place}", cwd="/").output == "0\n"
    opened.restore(snapshot)
    look = f"stat -c %a {place}; chmod 700 {place}; cat {place}/file"
    assert opened.run(look, cwd="/").output == "0\nx\n"


@pytest.mark.parametrize("kind", ["namespace", "namespace-on-disk"])
def test_what_only_a_policy_would_do_is_no_obstacle(opened: Sandbox, kind: str) -> None:
    far = "touch -d @9000000000000000000 far; touch -d @-9000000000000000000 past"
    # More names than the kernel lists.
    many = "for i in range(400): os.setxattr('/tmp/many', 'user.' + 'x' * 200 + str(i), b'')"
    script = f"import os\n{many}\ntry: os.listxattr('/tmp/many')\nexcept OSError as e: print(e)"
    done = opened.run(
        f'{far}; rm -r replaced; mkdir replaced; touch /tmp/many; python -c "{script}"'
    )
    assert "Argument list too long" in done.output
    look = "stat -c %Y far past; ls -A replaced"
    before = opened.run(look).output
    opened.restore(opened.snapshot())
    assert opened.run(look).output == before


@pytest.mark.parametrize("kind", ["namespace", "namespace-on-disk"])
def test_two_snapshots_of_one_state_are_equal(opened: Sandbox, kind: str) -> None:
    make_every_kind(opened)
    first = opened.snapshot()
    assert opened.snapshot() == first
    opened.restore(first)
    assert opened.snapshot() == first


def test_git_sees_no_difference_and_need_not_look_again(
    any_backend: SandboxBackend, kind: str, make_layer: MakeLayer
) -> None:
    layer = make_layer(TEMPLATE)
    os.chown(layer, os.geteuid(), os.getegid())  # for now: git works in nobody else's folder
    commit(layer, {})
    for path in (layer, *layer.rglob("*")):
        os.chown(path, *any_backend.owner(), follow_symlinks=False)
    with any_backend.open(SandboxSpec(layers=(layer,))) as sandbox:
        sandbox.run("git status; echo more >> edited.py; rm removed.py; git rm -q moved.py")
        sandbox.run("echo new > new; echo staged > staged; git add staged; git stash list")
        look = "git status; git diff; git diff --cached; git log --oneline"
        before = sandbox.run(look).output
        stale = "git diff-files --name-only"  # does not look at contents
        stale_before = sandbox.run(stale).output.split()
        snapshot = sandbox.snapshot()
        sandbox.run("git reset -q --hard; git clean -qfd")
        sandbox.restore(snapshot)
        stale_after = sandbox.run(stale).output.split()
        assert sandbox.run(look).output == before
    if kind != "process":
        assert set(stale_after) <= {*stale_before, "staged"}
    assert "edited.py" in stale_before


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


def test_a_snapshot_beyond_its_bound_ends_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    with make_sandbox() as sandbox:
        sandbox.run("head -c 9000000 /dev/urandom > data")
        monkeypatch.setattr(served_sandbox, "max_snapshot_bytes", lambda *_, **__: 1 << 20)
        with pytest.raises(SandboxError, match="changes are more than 1048576 bytes"):
            sandbox.snapshot()
        with pytest.raises(SandboxError, match="changes are more than 1048576 bytes"):
            sandbox.run("true")
