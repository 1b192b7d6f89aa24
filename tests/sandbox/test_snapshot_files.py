"""What a snapshot holds, and that all of it comes back."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_scene import MakeLayer
from snapshot_scenes import (
    BACKENDS,
    TEMPLATE,
    differences,
    make_every_kind,
)

from coding_gym.sandbox import (
    Sandbox,
    SandboxBackend,
    SandboxLimits,
    SandboxSpec,
    default_interpreter,
)

pytestmark = pytest.mark.filterwarnings("ignore::coding_gym.sandbox.process.NoIsolationWarning")

_ROOMY = SandboxLimits(file_bytes=1 << 42)


@pytest.fixture(params=BACKENDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def backend_of_kind(kind: str) -> SandboxBackend:
    return BACKENDS[kind]


@pytest.fixture
def opened(backend_of_kind: SandboxBackend, make_layer: MakeLayer) -> Iterator[Sandbox]:
    spec = SandboxSpec(layers=(make_layer(TEMPLATE),), python=default_interpreter(), limits=_ROOMY)
    with backend_of_kind.open(spec) as sandbox:
        yield sandbox


def test_every_kind_of_file_comes_back_and_is_in_a_fork(
    opened: Sandbox, backend_of_kind: SandboxBackend
) -> None:
    assert differences(backend_of_kind, opened.snapshot().spec) == []


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


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=e", *arguments],  # noqa: S607
        cwd=folder,
        check=True,
        capture_output=True,
    )


def test_git_sees_no_difference_and_need_not_look_again(
    backend_of_kind: SandboxBackend, kind: str, make_layer: MakeLayer
) -> None:
    layer = make_layer(TEMPLATE)
    os.chown(layer, os.geteuid(), os.getegid())  # for now: git works in nobody else's folder
    _git(layer, "init", "-qb", "main")
    _git(layer, "add", ".")
    _git(layer, "commit", "-qm", "base")
    for path in (layer, *layer.rglob("*")):
        os.chown(path, *backend_of_kind.owner(), follow_symlinks=False)
    with backend_of_kind.open(SandboxSpec(layers=(layer,))) as sandbox:
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
