"""Helpers for tests of sandboxes: trees, repositories, processes, restricted machines."""

import gc
import json
import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import git

from coding_gym.sandbox import (
    Mount,
    Sandbox,
    SandboxBackend,
    SandboxSpec,
    default_interpreter,
)
from coding_gym.sandbox.inside import wire
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.zygotes import zygote

BACKEND = NamespaceBackend()
MakeLayer = Callable[[Mapping[str, str]], Path]
_CREDENTIALS = struct.Struct("iII")  # pid, uid and gid in SCM_CREDENTIALS
T = TypeVar("T")


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Writes files below a folder and returns the folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def write_rows(path: Path, *rows: object) -> Path:
    """Writes a JSONL file and returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def commit(
    folder: Path,
    files: Mapping[str, str | bytes],
    message: str = "a change",
    date: str = "2020-02-02 02:02:02 +0000",
) -> str:
    """Writes files and commits all changes, in a new repository if needed; returns the hash."""
    write_files(folder, files)
    author = git.Actor("someone", "someone@example.org")
    with git.Repo.init(folder, initial_branch="main") as repository:
        repository.git.add("--all")
        return repository.index.commit(
            message, author=author, committer=author, author_date=date, commit_date=date
        ).hexsha


def run_git(folder: Path, *arguments: str) -> str:
    """Runs git in a folder and returns the stripped output."""
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    command = [str(shutil.which("git")), *identity, *arguments]
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def make_sandbox(**fields: Any) -> Sandbox:
    """Opens a sandbox of the namespace backend with the fields of a `SandboxSpec`."""
    return BACKEND.open(SandboxSpec(**fields))


def output(sandbox: Sandbox, command: str, **options: Any) -> str:
    """Runs a command in a sandbox and returns its output; asserts that the command succeeds."""
    result = sandbox.run(command, **options)
    assert result.ok, (command, result)
    return result.output


def stripped_output(sandbox: Sandbox, command: str) -> str:
    """Returns the stripped output of a command; asserts that the command succeeds."""
    return output(sandbox, command).strip()


def python_output(sandbox: Sandbox, script: str, **options: Any) -> str:
    """Returns the output of a Python script; asserts that the script succeeds."""
    sandbox.write_file("script.py", script.encode())
    return output(sandbox, "python script.py", **options)


def change_owner(backend: SandboxBackend, folder: Path) -> None:
    """Makes the user of the backend's commands the owner of a folder and its contents."""
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, *backend.owner(), follow_symlinks=False)


@contextmanager
def tree(backend: SandboxBackend, files: Mapping[str, str]) -> Iterator[Path]:
    """Yields a temporary folder with files; its owner is the user of the backend's commands."""
    with tempfile.TemporaryDirectory(prefix=f"coding_gym-check-{os.getpid()}-") as name:
        folder = write_files(Path(name), files)
        folder.chmod(0o755)
        change_owner(backend, folder)
        yield folder


@contextmanager
def opened(
    backend: SandboxBackend,
    files: Mapping[str, str] | None = None,
    *,
    python: bool = False,
    **spec: Any,
) -> Iterator[Sandbox]:
    """Yields a sandbox with one layer that contains the files.

    Args:
        backend: The backend of the sandbox.
        files: Text by path.
        python: Whether ``python`` is in the PATH of commands.
        **spec: Further fields of `SandboxSpec`.
    """
    if python:
        spec["python"] = default_interpreter()
    with (
        tree(backend, files or {}) as layer,
        backend.open(SandboxSpec(layers=(layer,), **spec)) as sandbox,
    ):
        yield sandbox


class AlivePipe:
    """The reading end of a named pipe that processes in a sandbox keep open.

    Attributes:
        mount: The mount that the spec of the sandbox needs.
    """

    def __init__(self, folder: Path, descriptor: int) -> None:
        self.mount = Mount(source=folder, target="/opt/coding_gym-alive", writable=True)
        self._descriptor = descriptor
        self._poller = select.poll()
        self._poller.register(descriptor, select.POLLIN)

    def path(self, sandbox: Sandbox) -> str:
        """Returns the pipe's path for the commands of a sandbox."""
        return f"{sandbox.path(self.mount.target)}/pipe"

    def wait_opened(self) -> None:
        """Waits until a command has written a line."""
        assert self._poller.poll(30_000), "the command did not start in time"
        assert os.read(self._descriptor, 1)

    def is_closed(self, within_s: float) -> bool:
        """Returns True if each process that held the pipe open ends within the time limit."""
        return any(events & select.POLLHUP for _, events in self._poller.poll(within_s * 1000))


@contextmanager
def alive_pipe(backend: SandboxBackend) -> Iterator[AlivePipe]:
    """Yields a pipe that commands of the backend can open."""
    with tree(backend, {}) as folder:
        os.mkfifo(folder / "pipe")
        (folder / "pipe").chmod(0o666)
        descriptor = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        try:
            yield AlivePipe(folder, descriptor)
        finally:
            os.close(descriptor)


def first_pid(sandbox: Any) -> int:
    """Returns the id of a sandbox's first process in the PID namespace of this process.

    Args:
        sandbox: A sandbox without a call in progress, of a backend without a daemon.
    """
    # The kernel adds the sender's id to a message, in the receiver's namespace.
    request = wire.pack({"op": "read", "path": "/dev/null", "max_bytes": 0})
    channel = sandbox._channel
    with channel._in_use():
        channel._stream.settimeout(10)
        channel._stream.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        try:
            channel._stream.sendall(request)
            _, ancillary, _, _ = channel._stream.recvmsg(
                1, socket.CMSG_SPACE(_CREDENTIALS.size), socket.MSG_PEEK
            )
            wire.receive(channel._stream, max_body_bytes=0)
        finally:
            channel._stream.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
    pid, _, _ = _CREDENTIALS.unpack(ancillary[0][2])
    return int(pid)


def watchdog_pid(sandbox: Sandbox) -> int:
    """Returns the id of the watchdog, the parent of the first process (``landlock`` backend)."""
    status = Path(f"/proc/{first_pid(sandbox)}/stat").read_text(errors="replace")
    return int(status.rpartition(")")[2].split()[1])


def helper_pid(backend: SandboxBackend) -> int:
    """Returns the id of the zygote that opens this process's sandboxes of a backend.

    The zygote of ``namespace`` has one child, the server, whose children are the sandboxes' first
    processes. The children of the zygote of ``landlock`` are the sandboxes' watchdogs.
    """
    if isinstance(backend, NamespaceBackend):
        return zygote("namespace", *backend.owner())._process.pid
    return zygote("landlock", os.geteuid(), os.getegid())._process.pid


@contextmanager
def forged_reply(sandbox: Any, reply: bytes) -> Iterator[None]:
    """Replaces the sandbox's stream; its owner reads ``reply``, then the end of the stream."""
    owner_end, sandbox_end = socket.socketpair()
    channel = sandbox._channel
    stream, channel._stream = channel._stream, owner_end
    with stream, sandbox_end:
        sandbox_end.sendall(reply)
        sandbox_end.shutdown(socket.SHUT_WR)
        yield


def children(pid: int) -> list[int]:
    """Returns the process ids of the children of ``pid``; an ended process has none."""
    pids: list[int] = []
    with suppress(OSError):  # the process has ended
        for listing in Path(f"/proc/{pid}/task").glob("*/children"):
            pids += map(int, listing.read_text(encoding="ascii").split())
    return pids


def descendants(pid: int) -> list[int]:
    """Returns the process ids of all descendants of ``pid``, parents before children."""
    return [pid_below for child in children(pid) for pid_below in (child, *descendants(child))]


def running(program: str, below: int) -> list[int]:
    """Returns the ids of the descendants of ``below`` that run the program."""
    pids = []
    for pid in descendants(below):
        with suppress(OSError):  # the process has ended
            if Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == program:
                pids.append(pid)
    return pids


def left_by_dropping(make: Callable[[], object]) -> set[int]:
    """Returns the processes that outlive the last reference to the result of ``make``."""
    before = set(descendants(os.getpid()))
    result = make()
    assert set(descendants(os.getpid())) - before
    del result
    gc.collect()
    return set(descendants(os.getpid())) - before


def wait_gone(pids: Collection[int], timeout_s: float) -> list[int]:
    """Waits for processes to end; returns the ids of those that still run after the time limit."""
    deadline = time.monotonic() + timeout_s
    while (alive := [pid for pid in pids if _is_running(pid)]) and time.monotonic() < deadline:
        time.sleep(0.01)
    return alive


def _is_running(pid: int) -> bool:
    with suppress(OSError):  # the process has ended
        status = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        return status.rpartition(")")[2][1] not in "ZX"
    return False


def num_descriptors(pid: int | str = "self") -> int:
    """Returns the number of open files of a process."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def wait_until(condition: Callable[[], T], timeout_s: float = 30.0) -> T:
    """Returns the first true value of a condition; fails after a time limit."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"the condition did not hold in {timeout_s} seconds"
        time.sleep(0.01)
    return value


# Defines `refuse`: system calls fail in this process and in the processes that it starts.
_REFUSE = """
import ctypes, os, platform, struct
from pathlib import Path

def refuse(*numbers, error=1):
    code = [(0x20, 0, 0, 0)]
    for number in numbers:
        code += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | error)]
    code.append((0x06, 0, 0, 0x7FFF0000))
    from coding_gym.sandbox.inside import syscalls
    syscalls.prctl(38, 1)
    syscalls.install_filter(b"".join(struct.pack("HBBI", *instruction) for instruction in code))

IS_ARM = platform.machine() == "aarch64"
"""

NO_UNSHARE = "refuse(97 if IS_ARM else 272)\n"
NO_MOUNT = "refuse(40 if IS_ARM else 165)\n"
NO_LANDLOCK = "refuse(444, 445, 446, error=38)\n"

# Enters a user namespace in which a process cannot create further user namespaces.
NO_USER_NAMESPACES = """
uid, gid, this = os.geteuid(), os.getegid(), f"/proc/{os.getpid()}"
begin_read, begin = os.pipe()
helper = os.fork() if uid == 0 else 1
if helper == 0:
    os.read(begin_read, 1)
    for kind in ("uid_map", "gid_map"):
        Path(f"{this}/{kind}").write_text("0 0 100000")
    os._exit(0)
assert ctypes.CDLL(None).unshare(0x10000000) == 0  # before a library starts threads
if uid == 0:
    os.write(begin, b"x")
    os.waitpid(helper, 0)
else:
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
Path("/proc/sys/user/max_user_namespaces").write_text("0")
"""


def run_on(machine: str, script: str) -> "subprocess.CompletedProcess[str]":
    """Runs a Python script without Docker after ``machine``, such as ``NO_MOUNT + NO_LANDLOCK``."""
    return subprocess.run(
        [sys.executable, "-c", f"{_REFUSE}{machine}{script}"],
        env={**os.environ, "DOCKER_HOST": "unix:///nonexistent/docker.sock"},
        capture_output=True,
        text=True,
        timeout=120,
    )
