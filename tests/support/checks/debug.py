"""Access to internals for the tests of this project.

These functions read private attributes, so that tests need not. They are not part of the public
API and change together with the internals.
"""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from checks.ablations import ABLATIONS, evaluating, without
from coding_gym import tools
from coding_gym.host import interpreters
from coding_gym.rewards import registry
from coding_gym.sandbox import options, ownership
from coding_gym.sandbox.containers import docker_engine
from coding_gym.sandbox.inside import wire
from coding_gym.sandbox.inside.wire import pack as pack_reply
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.protocol import SandboxBackend
from coding_gym.sandbox.served_sandbox import ServedSandbox
from coding_gym.sandbox.zygotes import zygote

__all__ = [
    "ABLATIONS",
    "disconnect",
    "evaluating",
    "first_pid",
    "forged_reply",
    "helper_pid",
    "pack_reply",
    "repeat_what_is_done_once",
    "restored_registries",
    "watchdog_pid",
    "without",
]

_TIMEOUT_S = 10.0
_CREDENTIALS = struct.Struct("iII")  # of SCM_CREDENTIALS: pid, uid and gid


def first_pid(sandbox: ServedSandbox) -> int:
    """Returns the process id of a sandbox's first process, as this process sees it.

    Args:
        sandbox: With no call in progress.
    """
    # The kernel writes the sender's id on a message, in terms of the receiver's namespace.
    question = wire.pack({"op": "read", "path": "/dev/null", "max_bytes": 0})
    channel = sandbox._channel
    with channel._in_use():
        channel._stream.settimeout(_TIMEOUT_S)
        channel._stream.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        try:
            channel._stream.sendall(question)
            _, found, _, _ = channel._stream.recvmsg(
                1, socket.CMSG_SPACE(_CREDENTIALS.size), socket.MSG_PEEK
            )
            wire.receive(channel._stream, max_body_bytes=0)
        finally:
            channel._stream.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
    pid, _, _ = _CREDENTIALS.unpack(found[0][2])
    return int(pid)


def watchdog_pid(sandbox: ServedSandbox) -> int:
    """Returns the process id of the process above the first one, of the ``landlock`` backend."""
    status = Path(f"/proc/{first_pid(sandbox)}/stat").read_text(errors="replace")
    return int(status.rpartition(")")[2].split()[1])


def helper_pid(backend: SandboxBackend) -> int:
    """Returns the process id of the helper that opens this process's sandboxes of a backend.

    That of ``namespace`` has one child, the server, whose children are the first processes of the
    sandboxes. That of ``landlock`` and ``process`` has their watchdogs as its children.
    """
    if isinstance(backend, NamespaceBackend):
        return zygote("namespace", *backend.owner()).pid
    return zygote("folder", os.geteuid(), os.getegid()).pid


@contextmanager
def forged_reply(sandbox: ServedSandbox, reply: bytes) -> Iterator[None]:
    """Lets a sandbox's owner read ``reply``, and then the end of the stream.

    Args:
        sandbox: Behaves as if its first process were taken over; it ends with the context.
        reply: The bytes that the first process sends; `pack_reply` makes a well-formed reply.
    """
    ours, theirs = socket.socketpair()
    channel = sandbox._channel
    stream, channel._stream = channel._stream, ours
    with stream, theirs:
        theirs.sendall(reply)
        theirs.shutdown(socket.SHUT_WR)
        yield


def repeat_what_is_done_once() -> None:
    """Makes this process repeat its once-only actions: clean-ups, warnings, look-ups."""
    for function in (ownership.sweep_once, options._warn_of_unkept):
        function.cache_clear()
    for lookup in (interpreters.describe, interpreters.find_interpreter):
        lookup.cache_clear()


def disconnect(host: str) -> None:
    """Closes this process's connection to a Docker daemon, so that the next call makes another."""
    found = docker_engine._engines.pop((os.getpid(), host), None)
    if found is not None:
        found.api.close()


@contextmanager
def restored_registries() -> Iterator[None]:
    """Removes, at its end, toolsets and rewards that were registered meanwhile."""
    with patch.dict(tools._TOOLSETS), patch.dict(registry._REWARDS):
        yield
