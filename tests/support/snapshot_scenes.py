"""What the tests of snapshots share: backends, and programs that run in a sandbox.

One program makes every kind of file, one describes all there is.
"""

import json
from typing import Any

from coding_gym.sandbox import Sandbox, SandboxBackend, SandboxSpec
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.process import ProcessBackend

BACKENDS: dict[str, SandboxBackend] = {
    "namespace": NamespaceBackend(),
    "namespace-on-disk": NamespaceBackend(changes="disk"),
    "process": ProcessBackend(),
}

# Of a template; `EVERY_KIND` changes some of it.
TEMPLATE = {
    "kept.py": "print('kept')\n",
    "edited.py": "print('before')\n",
    "removed.py": "x\n",
    "moved.py": "y\n",
    "replaced/old": "old\n",
    "replaced/deep/old": "old\n",
    "emptied/file": "z\n",
    "touched/file": "unchanged content\n",
    "touched/other": "o\n",
    "renamed/inside/file": "w\n",
}

EVERY_KIND = rb"""
import errno, os, shutil, socket, struct

def make(name, data=b"", mode=0o644):
    with open(name, "wb") as file:
        file.write(data)
    os.chmod(name, mode)

make("edited.py", b"print('after')\n")
os.remove("removed.py")
os.rename("moved.py", "moved_here.py")
shutil.rmtree("replaced"); os.mkdir("replaced"); make("replaced/new", b"new\n")
shutil.rmtree("emptied")
os.chmod("touched/file", 0o751); os.utime("touched/other", (1e9, 1e9 + 0.25))
os.system("mv renamed renamed_too")

os.mkdir("kinds"); os.chdir("kinds")
make("empty"); make("binary", bytes(range(256)) * 40); make("large", os.urandom(3_000_000))
make("executable", b"#!/bin/sh\n", 0o755); make("sticky", b"s", 0o1666); make("set", b"s", 0o6755)
os.symlink("empty", "link"); os.symlink("/nowhere/\xff" * 9, b"dangling"); os.symlink(".", "loop")
os.mkfifo("fifo", 0o620)
socket.socket(socket.AF_UNIX).bind("socket")
make("first", b"one inode\n"); os.mkdir("linked")
os.link("first", "second"); os.link("first", "linked/third")
os.link("link", "link2", follow_symlinks=False); os.link("fifo", "linked/fifo")
with open("sparse", "wb") as file:
    file.write(b"head"); file.seek(5 << 20); file.write(b"middle"); file.truncate(11 << 20)
make("holes"); os.truncate("holes", 1 << 30)
make("unreadable", b"secret\n", 0); make("write only", b"w", 0o200)
os.mkdir("closed"); make("closed/inside", b"i"); os.mkdir("closed/also"); make("closed/also/x")
os.chmod("closed/also", 0); os.chmod("closed", 0)
os.mkdir("listable"); make("listable/x", b"l"); os.chmod("listable", 0o600)
os.mkdir("shared"); os.chmod("shared", 0o2775)
for name in b"new\nline", b"-rf", b"\xff\xfe", b"a" * 255, b"...", b" ", b"\\", b"*", b"\xc3\xa9":
    make(name, name)
# For all but the group, who may write; in the kernel's form (linux/posix_acl_xattr.h).
entries = ((1, 6, -1), (2, 4, os.getuid()), (4, 6, -1), (16, 6, -1), (32, 0, -1))
access = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
for name, attribute, value in (
    ("binary", "user.note", b"\x00\xff"),
    ("shared", "user.note", b"folder"),
    ("executable", "system.posix_acl_access", access),
    ("shared", "system.posix_acl_default", access),
):
    try:
        os.setxattr(name, attribute, value)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
for name in "zebra", "apple", "mango":
    make(f"order_{name}")
for name in sorted(os.listdir(b".")):
    if name not in (b"link", b"dangling", b"loop", b"link2"):
        os.utime(name, ns=(10**18 + len(name), 1_234_567_890_123_456_789 - len(name)))
os.utime("dangling", ns=(1, -999_999_999), follow_symlinks=False)
home = os.environ["HOME"]
make(f"{home}/.profile", b"export X=1\n", 0o600)
os.chdir(".."); os.utime(".", ns=(3, 4_000_000_005)); os.chmod(".", 0o711)
"""

# Prints a JSON list of what is in the folders that it is given, unreadable things included.
_DESCRIBE = rb"""
import hashlib, json, os, stat, sys

FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK

def opened(name, parent, facts):
    os.chmod(name, 0o700, dir_fd=parent)
    try:
        return os.open(name, FLAGS, dir_fd=parent)
    finally:
        os.chmod(name, stat.S_IMODE(facts.st_mode), dir_fd=parent)

def extents(fd, size):
    found, position = [], 0
    while position < size:
        try:
            start = os.lseek(fd, position, os.SEEK_DATA)
        except OSError:
            break
        position = os.lseek(fd, start, os.SEEK_HOLE)
        os.lseek(fd, start, os.SEEK_SET)
        found.append([start, hashlib.sha256(os.read(fd, position - start)).hexdigest()])
    return found

def attributes(fd):
    return {n: os.getxattr(fd, n).hex() for n in sorted(os.listxattr(fd)) if "security" not in n}

def described(path, name, parent, inodes):
    facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
    kind = stat.S_IFMT(facts.st_mode)
    entry = [path, oct(facts.st_mode), facts.st_mtime_ns, facts.st_uid]
    if kind != stat.S_IFDIR:
        same = inodes.setdefault((facts.st_dev, facts.st_ino), len(inodes))
        entry += [facts.st_nlink, same, facts.st_size]
    if kind == stat.S_IFLNK:
        entry.append(os.readlink(name, dir_fd=parent))
    if kind == stat.S_IFREG:
        fd = opened(name, parent, facts)
        os.chmod(name, 0o700, dir_fd=parent)
        entry += [extents(fd, facts.st_size), attributes(fd)]
        os.chmod(name, stat.S_IMODE(facts.st_mode), dir_fd=parent)
        os.close(fd)
    if kind == stat.S_IFDIR:
        entry += folder(path, name, parent, facts, inodes)
    return entry

def folder(path, name, parent, facts, inodes):
    os.chmod(name, 0o700, dir_fd=parent)
    fd = os.open(name, FLAGS, dir_fd=parent)
    try:
        names = os.listdir(fd)
        return [attributes(fd), [described(f"{path}/{n}", n, fd, inodes) for n in names]]
    finally:
        os.chmod(name, stat.S_IMODE(facts.st_mode), dir_fd=parent)
        os.close(fd)

print(json.dumps([described("", place, None, {}) for place in sys.argv[1:]]))
"""


def make_every_kind(sandbox: Sandbox) -> None:
    """Changes `TEMPLATE` and adds one of each kind of file, in the workspace and at home."""
    done = sandbox.run("python -", stdin=EVERY_KIND)
    assert (done.output, done.exit_code) == ("", 0)


def describe(sandbox: Sandbox, *places: str) -> Any:
    """Returns all that can be told of some folders' entries but inodes, ctimes and atimes.

    Types, permissions, times, sizes, where data lies in a file, contents, targets, attributes,
    which names are one file, and the order of listings.
    """
    command = 'python - "$PWD" "$HOME" ' + " ".join(places)
    done = sandbox.run(command, stdin=_DESCRIBE, max_output_bytes=64 << 20)
    assert done.exit_code == 0, done.output[-2000:]
    return json.loads(done.output)


def destroy(sandbox: Sandbox) -> None:
    """Removes and overwrites whatever can be."""
    sandbox.run('chmod -R u+rwX . "$HOME"; rm -rf ./* "$HOME"/* "$HOME"/.p*; echo junk > kinds')


def differences(backend: SandboxBackend, spec: SandboxSpec) -> list[str]:
    """Returns which of a restored sandbox and of a fork are not as the first was, if any."""
    with backend.open(spec) as sandbox:
        make_every_kind(sandbox)
        before = describe(sandbox)
        snapshot = sandbox.snapshot()
        found = [] if describe(sandbox) == before else ["after the snapshot"]
        destroy(sandbox)
        assert describe(sandbox) != before
        sandbox.restore(snapshot)
        found += [] if describe(sandbox) == before else ["restored"]
    with backend.open(spec, snapshot=snapshot) as fork:
        return found + ([] if describe(fork) == before else ["fork"])
