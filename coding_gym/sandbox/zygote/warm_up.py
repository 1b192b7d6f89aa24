"""The warm-up: commands that the server runs before there is any sandbox.

Python rewrites its instructions as it learns what they meet (PEP 659), and makes some objects when
they are first needed. All sandboxes share what was done before the first clone; what is done in
each of them costs each of them a quarter of a megabyte, and its first command some time.
"""

import contextlib
import os
import socket

from coding_gym.sandbox.zygote import files, serving, wire
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.commands import Commands

# Instructions are rewritten from the eighth time on.
_NUM_TIMES = 10
_SANDBOX = {
    "env": {},
    "limits": {"memory_bytes": 1 << 62, "num_processes": 1},
    "network": False,
    "shell": "fresh",
}
_COMMAND = b":"
_REQUEST = {
    "op": "run",
    "timeout_s": 1,
    "max_output_bytes": 1,
    "cwd": "/",
    "env": {},
    "stdin_bytes": 0,
    "is_plain": True,
}


def warm_up() -> int:
    """Answers requests of our own, in a file that only we have; returns how many commands ran.

    To be called in the first process of a pid namespace: there, what ends a command's leftovers
    ends nobody else.
    """
    count = 0
    owner, channel = socket.socketpair()
    with owner, channel, contextlib.suppress(OSError):
        commands = Commands(_SANDBOX, channel, home="/")
        for _ in range(_NUM_TIMES):
            owner.sendall(wire.pack(_REQUEST, _COMMAND))
            serving.answer_next(channel, commands)
            reply, _ = wire.receive(owner, max_body_bytes=serving.MAX_BODY_BYTES)
            count += reply["exit_code"] == 0
        for _ in range(_NUM_TIMES):
            _write_and_read()
    return count


def _write_and_read() -> None:
    descriptor = os.memfd_create("warm-up")
    try:
        path = f"/proc/self/fd/{descriptor}"
        files.write(path, b"x")
        files.read(path, 1)
        os.close(sc.open_without_magic("/", os.O_RDONLY | os.O_CLOEXEC))
    finally:
        os.close(descriptor)
