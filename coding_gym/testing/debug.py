"""What tests need to know of running sandboxes, and nothing else may ask.

The functions read private attributes of this package. They are not part of the public API, and
change with what they read.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from coding_gym.sandbox.landlock.sandbox import LandlockSandbox
from coding_gym.sandbox.namespace_sandbox import NamespaceSandbox
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.sandbox.zygote.wire import pack as pack_reply
from coding_gym.testing.ablations import ABLATIONS, evaluating, without

__all__ = ["ABLATIONS", "evaluating", "first_pid", "forged_reply", "pack_reply", "without"]

_TIMEOUT_S = 10.0


def first_pid(sandbox: Sandbox) -> int:
    """Returns the process id of a sandbox's first process, as this process sees it.

    Args:
        sandbox: Of the ``namespace`` or ``landlock`` backend, with no call in progress.
    """
    if not isinstance(sandbox, NamespaceSandbox | LandlockSandbox):
        raise TypeError(f"not a sandbox with a first process: {sandbox!r}")
    return sandbox._life.channel.peer_pid(timeout_s=_TIMEOUT_S)


@contextmanager
def forged_reply(sandbox: NamespaceSandbox, reply: bytes) -> Iterator[None]:
    """Lets a sandbox's owner read ``reply``, and then the end of the stream.

    Args:
        sandbox: Whose first process is as if taken over; it ends with the context.
        reply: What that would send; `pack_reply` makes a well-formed one.
    """
    ours, theirs = socket.socketpair()
    channel = sandbox._life.channel
    stream, channel._stream = channel._stream, ours
    with stream, theirs:
        theirs.sendall(reply)
        theirs.shutdown(socket.SHUT_WR)
        yield
