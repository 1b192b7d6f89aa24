"""Sandboxes for tests: opening one, a pipe that its commands hold open, ids of its processes."""

import os
import select
import socket
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from repositories import write_files

from coding_gym.host import interpreters
from coding_gym.sandbox import (
    Mount,
    Sandbox,
    SandboxBackend,
    SandboxSpec,
    default_interpreter,
    options,
    ownership,
)
from coding_gym.sandbox.containers import docker_backend
from coding_gym.sandbox.inside import wire
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.zygotes import zygote

BACKEND = NamespaceBackend()
MakeLayer = Callable[[Mapping[str, str]], Path]
_PIPE_FOLDER = "/opt/coding_gym-alive"
_CREDENTIALS = struct.Struct("iII")  # of SCM_CREDENTIALS: pid, uid and gid


def make_sandbox(**fields: Any) -> Sandbox:
    """Opens a sandbox of the namespace backend; the fields are those of its spec."""
    return BACKEND.open(SandboxSpec(**fields))


def output(sandbox: Sandbox, command: str, **options: Any) -> str:
    """Returns the output of a command that must succeed."""
    result = sandbox.run(command, **options)
    assert result.ok, (command, result)
    return result.output


def stripped_output(sandbox: Sandbox, command: str) -> str:
    """Returns the output of a command that must succeed, without blanks around it."""
    return output(sandbox, command).strip()


def python_output(sandbox: Sandbox, script: str, **options: Any) -> str:
    """Returns the output of a Python script that must succeed."""
    sandbox.write_file("script.py", script.encode())
    return output(sandbox, "python script.py", **options)


def change_owner(backend: SandboxBackend, folder: Path) -> None:
    """Makes the backend's commands own a folder and all in it."""
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, *backend.owner(), follow_symlinks=False)


@contextmanager
def tree(backend: SandboxBackend, files: Mapping[str, str]) -> Iterator[Path]:
    """Yields a temporary folder with files, owned as layers must be."""
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
    """Yields a sandbox with one layer that holds the files.

    Args:
        backend: Opens it.
        files: Text by path.
        python: Whether commands find ``python``.
        **spec: More fields of `SandboxSpec`.
    """
    if python:
        spec["python"] = default_interpreter()
    with (
        tree(backend, files or {}) as layer,
        backend.open(SandboxSpec(layers=(layer,), **spec)) as sandbox,
    ):
        yield sandbox


class AlivePipe:
    """The owner's end of a named pipe in a folder that commands may write.

    Attributes:
        mount: What the sandbox needs for it.
    """

    def __init__(self, folder: Path) -> None:
        self.mount = Mount(source=folder, target=_PIPE_FOLDER, writable=True)
        self._descriptor = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)

    def pipe(self, path: str = _PIPE_FOLDER) -> str:
        """Returns the pipe's path for commands, from the path of the mount for them."""
        return f"{path}/pipe"

    def wait_opened(self) -> None:
        """Waits until a command has written a line."""
        assert self._events(30.0) & select.POLLIN, "the command did not start in time"
        assert os.read(self._descriptor, 1)

    def is_closed(self, within_s: float) -> bool:
        """Whether every process that held the pipe open has ended by then."""
        return bool(self._events(within_s) & select.POLLHUP)

    def close(self) -> None:
        os.close(self._descriptor)

    def _events(self, timeout_s: float) -> int:
        poller = select.poll()
        poller.register(self._descriptor, select.POLLIN)
        return sum(events for _, events in poller.poll(timeout_s * 1000))


@contextmanager
def alive_pipe(backend: SandboxBackend) -> Iterator[AlivePipe]:
    """Yields a pipe that the commands of the backend may open."""
    with tree(backend, {}) as folder:
        os.mkfifo(folder / "pipe")
        change_owner(backend, folder)
        alive = AlivePipe(folder)
        try:
            yield alive
        finally:
            alive.close()


def first_pid(sandbox: Any) -> int:
    """Returns the process id of a sandbox's first process, as this process sees it.

    Args:
        sandbox: With no call in progress, of a backend without a daemon.
    """
    # The kernel writes the sender's id on a message, in terms of the receiver's namespace.
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
    """Returns the process id of the process above the first one, of the ``landlock`` backend."""
    status = Path(f"/proc/{first_pid(sandbox)}/stat").read_text(errors="replace")
    return int(status.rpartition(")")[2].split()[1])


def helper_pid(backend: SandboxBackend) -> int:
    """Returns the process id of the zygote that opens this process's sandboxes of a backend.

    That of ``namespace`` has one child, the server, whose children are the first processes of the
    sandboxes. That of ``landlock`` and ``process`` has their watchdogs as its children.
    """
    if isinstance(backend, NamespaceBackend):
        return zygote("namespace", *backend.owner()).pid
    return zygote("folder", os.geteuid(), os.getegid()).pid


@contextmanager
def forged_reply(sandbox: Any, reply: bytes) -> Iterator[None]:
    """Lets a sandbox's owner read ``reply``, and then the end of the stream."""
    ours, theirs = socket.socketpair()
    channel = sandbox._channel
    stream, channel._stream = channel._stream, ours
    with stream, theirs:
        theirs.sendall(reply)
        theirs.shutdown(socket.SHUT_WR)
        yield


def disconnect_docker(host: str) -> None:
    """Closes this process's connection to a Docker daemon, so that the next call makes another."""
    engine = docker_backend._engines.pop((os.getpid(), host), None)
    if engine is not None:
        engine.api.close()


def repeat_once_only_actions() -> None:
    """Makes this process repeat its once-only actions: clean-ups, warnings, look-ups."""
    for function in (ownership.sweep_once, options._warn_of_unkept):
        function.cache_clear()
    for lookup in (interpreters.describe, interpreters.find_interpreter):
        lookup.cache_clear()
