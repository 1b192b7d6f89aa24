"""Snapshots restore files in any sandbox of an equal spec, as often as needed."""

import dataclasses
import pickle

import pytest
from sandbox_fixtures import opened, output

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox.protocol import Promise, Sandbox, SandboxBackend

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
# Prints a line for each file: all but inodes, ctimes and atimes.
_DESCRIBE = rb"""
import hashlib, os, stat
ordered = %b

def describe(path, seen):
    facts = os.lstat(path)
    is_folder, is_file = stat.S_ISDIR(facts.st_mode), stat.S_ISREG(facts.st_mode)
    line = [path, oct(facts.st_mode), facts.st_mtime_ns, facts.st_uid == os.getuid()]
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
    for name in ordered(os.listdir(path)) if is_folder else ():
        describe(path + b"/" + name, seen)
    os.chmod(path, stat.S_IMODE(facts.st_mode))

for place in os.getcwd(), os.environ["HOME"]:
    os.chdir(place)
    describe(b".", {})
"""


def test_every_kind_of_file_is_restored(backend: SandboxBackend) -> None:
    # A copy of files may list a folder in another order.
    script = _DESCRIBE % (b"sorted" if backend.name == "landlock" else b"list")

    def describe(sandbox: Sandbox) -> str:
        return output(sandbox, "python -", stdin=script)

    with opened(backend, _TEMPLATE, python=True) as sandbox:
        untouched, base = describe(sandbox), sandbox.snapshot()
        output(sandbox, "python -", stdin=_CHANGE)
        wanted, later = describe(sandbox), sandbox.snapshot()
        assert sandbox.snapshot() == later
        assert describe(sandbox) == wanted != untouched
        for snapshot, files in ((base, untouched), (later, wanted)) * 2:
            sandbox.run('chmod -R u+rwX .; rm -rf ./* "$HOME"/.p*; echo junk > kinds')
            sandbox.restore(snapshot)
            assert describe(sandbox) == files
        sandbox.close()
        for call in (sandbox.snapshot, lambda: sandbox.restore(later)):
            with pytest.raises(SandboxError):
                call()
        copied = pickle.loads(pickle.dumps(later))  # noqa: S301 - made on the line
        with backend.open(later.spec, snapshot=copied) as one, backend.open(later.spec) as other:
            assert describe(one) == wanted
            output(one, "rm edited")
            assert output(other, "cat edited removed") == "before\nx\n"


def test_a_snapshot_holds_the_state_of_the_shell(backend: SandboxBackend) -> None:
    with opened(backend, {"folder/a": "", "folder/b": ""}, shell="persistent") as sandbox:
        output(sandbox, "cd folder; kept=1")
        snapshot = sandbox.snapshot()
        output(sandbox, "cd /; kept=2")
        sandbox.restore(snapshot)
        assert output(sandbox, "ls; echo $kept") == "a\nb\n1\n"


def test_a_path_above_the_kernel_limit_prevents_a_snapshot(backend: SandboxBackend) -> None:
    name = "n" * 200
    dig = f"import os\nfor _ in range(30):\n    os.mkdir('{name}')\n    os.chdir('{name}')\n"
    with opened(backend, {"dig.py": dig}, python=True) as sandbox:
        output(sandbox, "python dig.py")
        with pytest.raises(SandboxError, match="File name too long"):
            sandbox.snapshot()
        output(sandbox, "rm -r n*")
        assert sandbox.snapshot().data


def test_a_workspace_without_permissions_has_a_snapshot(backend: SandboxBackend) -> None:
    with opened(backend, {"file": "kept"}) as sandbox:
        output(sandbox, "chmod 000 .")
        for _ in range(2):
            sandbox.restore(sandbox.snapshot())
        assert output(sandbox, f"chmod 755 {sandbox.workdir}; cat {sandbox.workdir}/file", cwd="/")


@pytest.mark.promise(Promise.PRIVATE_ROOT)
def test_a_snapshot_holds_temporary_files(sandbox: Sandbox) -> None:
    output(sandbox, "echo t > /tmp/t; echo s > /dev/shm/s")
    snapshot = sandbox.snapshot()
    output(sandbox, "rm /tmp/t /dev/shm/s; echo new > /tmp/new")
    sandbox.restore(snapshot)
    assert output(sandbox, "cat /tmp/t /dev/shm/s; ls -A /tmp") == "t\ns\nt\n"


def test_a_snapshot_of_another_backend_or_spec_is_refused(backend: SandboxBackend) -> None:
    with opened(backend, {"file": "x"}) as sandbox:
        output(sandbox, "echo changed > file")
        snapshot = sandbox.snapshot()
        spec = dataclasses.replace(snapshot.spec, env={"OTHER": "spec"})
        for other in (
            dataclasses.replace(snapshot, backend="another"),
            dataclasses.replace(snapshot, spec=spec),
        ):
            with pytest.raises(InvalidArgumentError):
                sandbox.restore(other)
            with pytest.raises(InvalidArgumentError):
                backend.open(snapshot.spec, snapshot=other)
        assert output(sandbox, "cat file") == "changed\n"


@pytest.mark.promise(Promise.PRIVATE_ROOT)
def test_the_size_of_a_snapshot_depends_on_the_changes(backend: SandboxBackend) -> None:
    large = {f"folder{n}/file": "x" * 100_000 for n in range(20)}
    with opened(backend, large) as sandbox:
        output(sandbox, "echo changed > folder3/file; echo new > new")
        assert len(sandbox.snapshot().data) < 200_000
