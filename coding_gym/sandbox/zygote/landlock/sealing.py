"""What init gives up besides the rights on files: its user, its limits, most system calls."""

import os
import resource

from coding_gym.sandbox.zygote import seccomp
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.landlock import rights
from coding_gym.sandbox.zygote.steps import step

_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 4, 24, 38
_ADDR_NO_RANDOMIZE = 0x0040000
_OOM_SCORE = "900"  # the kernel's first choice, well before the trainer
_MEMLOCK_BYTES = 1 << 16
_PENDING_SIGNALS = 1024


def become(uid: int, gid: int) -> None:
    """Takes the user that sandboxes run as, and leaves root's capabilities behind for good."""
    if os.getuid() == uid:
        return
    with step("change the user"):
        _drop_bounding_set()
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        # Cleared by the change; /proc would show these processes as root's.
        sc.prctl(_PR_SET_DUMPABLE, 1)


def bound(limits: dict[str, int]) -> None:
    """Sets the limits of commands that are not confined.

    Without privileges to gain, everything that they start can be ended.
    """
    with step("set limits"):
        sc.prctl(_PR_SET_NO_NEW_PRIVS, 1)
        set_limit(resource.RLIMIT_CORE, 0)
        set_limit(resource.RLIMIT_FSIZE, limits["file_bytes"])
        set_limit(resource.RLIMIT_NOFILE, limits["num_open_files"])
    os.umask(0o022)


def restrain(limits: dict[str, int]) -> None:
    """Sets what commands inherit: limits, priorities, no privileges from programs they run."""
    with step("set the out-of-memory score"):
        sc.write_text("/proc/self/oom_score_adj", _OOM_SCORE)
    with step("switch address randomisation off"):
        sc.personality(_ADDR_NO_RANDOMIZE)
    with step("drop capabilities"):
        sc.drop_effective_capabilities()
        sc.prctl(_PR_SET_NO_NEW_PRIVS, 1)
    with step("set limits"):
        for kind, value in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_NICE, 0),
            (resource.RLIMIT_RTPRIO, 0),
            (resource.RLIMIT_MSGQUEUE, 0),
            (resource.RLIMIT_MEMLOCK, _MEMLOCK_BYTES),
            (resource.RLIMIT_SIGPENDING, _PENDING_SIGNALS),
            (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        ):
            set_limit(kind, value)
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    os.umask(0o022)


def filter_calls(version: int, *, network: bool) -> None:
    """Installs the filter of the ``namespace`` sandbox, and those for what Landlock lacks.

    Args:
        version: What there is of Landlock.
        network: Whether sockets are left as they are.
    """
    with step("install the seccomp filter"):
        sc.install_filter(seccomp.program(sc.machine()))
        if not rights.knows_truncation(version):
            sc.install_filter(seccomp.no_cutting(sc.machine()))
        if not network:
            sc.install_filter(seccomp.no_sockets(sc.machine()))


def set_limit(kind: int, value: int) -> None:
    """Sets a limit for good, no higher than it may be."""
    _, ceiling = resource.getrlimit(kind)
    value = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
    resource.setrlimit(kind, (value, value))


def _drop_bounding_set() -> None:
    for capability in range(64):
        try:
            sc.prctl(_PR_CAPBSET_DROP, capability)
        except OSError:  # beyond the last one, or not ours to drop
            return
