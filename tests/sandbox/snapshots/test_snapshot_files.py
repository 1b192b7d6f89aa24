"""A snapshot restores every kind of file; a snapshot above the limits is refused."""

import dataclasses

import pytest
from sandbox_fixtures import BACKEND, make_sandbox, opened, output

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox import (
    SandboxBackend,
    SandboxLimits,
    SandboxSpec,
    Snapshot,
    default_interpreter,
)
from coding_gym.sandbox.namespace import NamespaceBackend

pytestmark = pytest.mark.slow

_TEMPLATE = {
    "edited": "before\n",
    "removed": "x\n",
    "moved": "y\n",
    "replaced/deep/old": "old\n",
    "touched/file": "unchanged content\n",
}
_CHANGE = rb"""
import os, shutil

def make(name, data=b"", mode=0o644):
    with open(name, "wb") as file:
        file.write(data)
    os.chmod(name, mode)

make("edited", b"after\n"); os.remove("removed"); os.rename("moved", "moved_here")
shutil.rmtree("replaced"); os.mkdir("replaced"); make("replaced/new", b"new\n")
os.chmod("touched/file", 0o751); os.mkdir("kinds"); os.chdir("kinds")
make("empty"); make("large", os.urandom(9_000_000)); make("sticky", b"s", 0o1666)
make("set", b"s", 0o6755); os.mkfifo("fifo", 0o620)
os.symlink("/nowhere/\xff" * 9, b"dangling"); os.symlink(".", "loop")
make("first", b"one inode\n"); os.link("first", "second"); os.link("fifo", "linked")
with open("sparse", "wb") as file:
    file.write(b"head"); file.seek(5 << 20); file.write(b"middle"); file.truncate(11 << 20)
make("unreadable", b"secret\n", 0); make("write only", b"w", 0o200)
os.makedirs("closed/also"); make("closed/also/x"); os.chmod("closed/also", 0)
os.chmod("closed", 0); os.mkdir("shared"); os.chmod("shared", 0o2775)
for name in b"new\nline", b"-rf", b"\xff\xfe", b"a" * 255, b"...", b" ", b"\\", b"*", b"\xc3\xa9":
    make(name, name)
for name in "zebra", "apple", "mango":
    make(f"order_{name}")
os.utime("empty", ns=(10**18, 1_234_567_890_123_456_789))
os.utime("dangling", ns=(1, -999_999_999), follow_symlinks=False)
make(os.environ["HOME"] + "/.profile", b"export X=1\n", 0o600)
os.chdir(".."); os.utime(".", ns=(3, 4_000_000_005)); os.chmod(".", 0o711)
"""
# Prints a line for each file: all but inodes, ctimes and atimes, in the order of the listings.
_DESCRIBE = rb"""
import hashlib, os, stat

def describe(path, seen):
    facts = os.lstat(path)
    is_folder, is_file = stat.S_ISDIR(facts.st_mode), stat.S_ISREG(facts.st_mode)
    line = [path, oct(facts.st_mode), facts.st_mtime_ns, facts.st_uid]
    if not is_folder:
        inode = seen.setdefault((facts.st_dev, facts.st_ino), len(seen))
        line += [facts.st_size, facts.st_blocks * 512 < facts.st_size, facts.st_nlink, inode]
    if stat.S_ISLNK(facts.st_mode):
        line.append(os.readlink(path))
    if not is_folder and not is_file:
        return print(line)
    os.chmod(path, 0o700)
    if is_file:
        with open(path, "rb") as file:
            line.append(hashlib.sha256(file.read()).hexdigest())
    print(line)
    for name in os.listdir(path) if is_folder else ():
        describe(path + b"/" + name, seen)
    os.chmod(path, stat.S_IMODE(facts.st_mode))

for place in os.getcwdb(), os.fsencode(os.environ["HOME"]):
    describe(place, {})
"""
_BACKENDS = {"memory": BACKEND, "disk": NamespaceBackend(changes="disk")}


@pytest.fixture(params=_BACKENDS)
def backend(request: pytest.FixtureRequest) -> SandboxBackend:
    return _BACKENDS[request.param]


def test_every_kind_of_file_is_restored(backend: SandboxBackend) -> None:
    with opened(backend, _TEMPLATE, python=True) as sandbox:
        output(sandbox, "python -", stdin=_CHANGE)
        wanted = output(sandbox, "python -", stdin=_DESCRIBE)
        snapshot = sandbox.snapshot()
        assert sandbox.snapshot() == snapshot
        assert output(sandbox, "python -", stdin=_DESCRIBE) == wanted
        sandbox.run('chmod -R u+rwX .; rm -rf ./* "$HOME"/.p*; echo junk > kinds')
        assert output(sandbox, "python -", stdin=_DESCRIBE) != wanted
        sandbox.restore(snapshot)
        assert output(sandbox, "python -", stdin=_DESCRIBE) == wanted
        for other in _BACKENDS.values():
            with other.open(snapshot.spec, snapshot=snapshot) as fork:
                assert output(fork, "cat edited; ls replaced") == "after\nnew\n"
                if other is backend:  # another backend may list files in another order
                    assert output(fork, "python -", stdin=_DESCRIBE) == wanted


def test_a_snapshot_includes_an_attribute_that_is_not_text() -> None:
    mark = b"import os\nos.setxattr('/tmp', 'user.overlay.opaque', b'\\xff')\n"
    with make_sandbox(python=default_interpreter()) as sandbox:
        if not sandbox.run("python -", stdin=mark).ok:
            pytest.skip("the tmpfs of this kernel has no extended attributes")
        snapshot = sandbox.snapshot()
        sandbox.restore(snapshot)
        assert sandbox.snapshot() == snapshot


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


def test_a_snapshot_above_the_size_limit_is_not_read() -> None:
    spec = SandboxSpec(limits=SandboxLimits(disk_bytes=1 << 20, num_inodes=256))
    snapshot = Snapshot(backend="namespace", spec=spec, data=bytes(8 << 20))
    with BACKEND.open(spec) as sandbox, pytest.raises(InvalidArgumentError):
        sandbox.restore(snapshot)
