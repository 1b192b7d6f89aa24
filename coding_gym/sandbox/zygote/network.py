"""The machine that a sandbox sees itself on: its name, and a network of its own."""

import socket
import struct

from coding_gym.sandbox.zygote.plan import Plan
from coding_gym.sandbox.zygote.program import ANY_ERROR

_NAME = b"sandbox"
_SIOCSIFFLAGS = 0x8914
_IFF_UP_LOOPBACK_RUNNING = 0x49
_LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET = 1
# At least, at first and at most; the kernel would give a connection some MiB, for networks.
_BUFFER_SIZES = {"tcp_rmem": "4096 131072 262144", "tcp_wmem": "4096 16384 262144"}


def plan_network(plan: Plan, *, shared: bool) -> None:
    """Names the machine, and brings the loopback device up where the network is our own."""
    with plan.step("name the sandbox"):
        plan.call("sethostname", _NAME, len(_NAME))
    if shared:
        _leave_abstract_sockets(plan)
        return
    with plan.step("bring the loopback device up"):
        kind = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC
        device = plan.opened("socket", socket.AF_INET, kind, 0)
        request = struct.pack("16sh22x", b"lo", _IFF_UP_LOOPBACK_RUNNING)
        plan.call("ioctl", device, _SIOCSIFFLAGS, request, at="lo")
        plan.close(device)
    for name, sizes in _BUFFER_SIZES.items():
        # The machine has a bound of its own for all; this is so that one sandbox cannot use it up.
        plan.write_text(f"/proc/sys/net/ipv4/{name}", sizes, tolerates=ANY_ERROR)


def _leave_abstract_sockets(plan: Plan) -> None:
    """Gives up UNIX sockets without a file that others made, where Landlock can (Linux 6.12).

    They belong to a network namespace, and servers behind them trust whoever has their uid.
    """
    scopes = struct.pack("3Q", 0, 0, _LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET)
    arguments = (scopes, len(scopes), 0)
    rules = plan.opened("landlock_create_ruleset", *arguments, tolerates=ANY_ERROR)
    plan.call("landlock_restrict_self", rules, 0, tolerates=ANY_ERROR)
    plan.close(rules, tolerates=ANY_ERROR)
