"""Restricts init before it serves: name, network, privileges, limits.

Commands inherit these restrictions.
"""

import contextlib
import fcntl
import resource
import socket
import struct
from collections.abc import Mapping
from functools import cache

from coding_gym.sandbox.inside import landlock_rules, seccomp
from coding_gym.sandbox.inside import syscalls as sc
from coding_gym.sandbox.inside.fixed import HOSTNAME

_SIOCSIFFLAGS = 0x8914
_LOOPBACK_UP = struct.pack("16sh22x", b"lo", 0x49)  # IFF_UP, IFF_LOOPBACK, IFF_RUNNING
# Minimum, default and maximum; the kernel's defaults are some MiB per connection.
_BUFFER_SIZES = {"tcp_rmem": "4096 131072 262144", "tcp_wmem": "4096 16384 262144"}
# With this capability init sees processes that `hidepid` hides; the filter refuses tracing.
_CAP_SYS_PTRACE = 19
# NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE on, KEEP_CAPS off, all four locked.
_SECUREBITS_LOCKED = 0xEF
NO_RANDOMIZATION = 0x0040000  # a flag of personality(2)
OOM_SCORE = 900  # the kernel kills sandboxes first, well before the trainer
# A limit of 0 stops dumps to files, but the crash handler still runs, as root, if the core pattern
# is a pipe; with 1 no handler runs (fs/coredump.c). The filter ignores new limits.
_CORE_BYTES = 1
_MEMLOCK_BYTES = 1 << 16
_PENDING_SIGNALS = 1024  # queued signals; the kernel counts those of all sandboxes of a user

# The server builds the filter once; a sandbox only installs it.
FILTER = seccomp.program(sc.machine())


def set_network(*, shared: bool) -> None:
    """Sets the host name; brings up loopback, or blocks abstract sockets of a shared network."""
    with sc.step("set the host name"):
        socket.sethostname(HOSTNAME)
    if shared:
        with sc.step("block abstract sockets"):
            landlock_rules.block_abstract_sockets()
        return
    datagram = socket.AF_INET, socket.SOCK_DGRAM
    with sc.step("bring the loopback device up"), socket.socket(*datagram) as device:
        fcntl.ioctl(device, _SIOCSIFFLAGS, _LOOPBACK_UP)
    for name, sizes in _BUFFER_SIZES.items():
        # One sandbox must not use up the machine's total.
        with contextlib.suppress(OSError):
            sc.write_text(f"/proc/sys/net/ipv4/{name}", sizes)


def drop_privileges(limits: Mapping[str, int]) -> None:
    """Drops privileges permanently.

    Init keeps its permitted capabilities, and commands lose theirs at exec. So commands cannot
    change init's priority and affinity, for which the kernel requires a superset of capabilities.
    """
    with sc.step("set the out-of-memory score"):
        sc.raise_oom_score(OOM_SCORE)
    with sc.step("switch address randomisation off"):
        sc.personality(NO_RANDOMIZATION)
    with sc.step("drop capabilities"):
        sc.prctl(sc.PR_SET_DUMPABLE, 0)
        sc.prctl(sc.PR_CAP_AMBIENT, sc.PR_CAP_AMBIENT_CLEAR_ALL)
        sc.prctl(sc.PR_SET_SECUREBITS, _SECUREBITS_LOCKED)
        for capability in range(num_capabilities()):
            sc.prctl(sc.PR_CAPBSET_DROP, capability)
        # All capabilities stay permitted.
        sc.set_capabilities(1 << _CAP_SYS_PTRACE, (1 << num_capabilities()) - 1)
        sc.prctl(sc.PR_SET_NO_NEW_PRIVS, 1)
    set_limits(limits)
    with sc.step("install the seccomp filter"):
        sc.install_filter(FILTER)


@cache
def num_capabilities() -> int:
    """Returns the number of capabilities of this kernel."""
    with open("/proc/sys/kernel/cap_last_cap", "rb") as file:
        return int(file.read()) + 1


def limit_descriptors(limits: Mapping[str, int]) -> None:
    """Sets the limit of open files of this process and of all commands."""
    # The kernel applies this limit to a user's descriptors in transit, too; half is for the server.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    value = min(limits["num_open_files"], hard // 2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (value, value))


def set_limits(limits: Mapping[str, int], *, num_extra_processes: int = 0) -> None:
    """Sets all limits of this process and of commands except the limit of open files."""
    for kind, value in (
        (resource.RLIMIT_CORE, _CORE_BYTES),
        (resource.RLIMIT_NICE, 0),
        (resource.RLIMIT_RTPRIO, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, _MEMLOCK_BYTES),
        (resource.RLIMIT_SIGPENDING, _PENDING_SIGNALS),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        (resource.RLIMIT_NPROC, limits["num_processes"] + num_extra_processes),
    ):
        # A sandbox inherits the server's hard limits.
        _, ceiling = resource.getrlimit(kind)
        value = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
        with sc.step("set limits"):
            resource.setrlimit(kind, (value, value))
