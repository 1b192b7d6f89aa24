"""What init gives up before it serves; commands inherit all of it."""

import os
import resource

from coding_gym.sandbox.zygote import seccomp
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.steps import step

# Lets init, under its filter, do no more than see the processes that hide from /proc.
_CAP_SYS_PTRACE = 19
_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_SECUREBITS = 4, 24, 28
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
# NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, these and KEEP_CAPS (off) locked.
_SECUREBITS_LOCKED = 0xEF
_ADDR_NO_RANDOMIZE = 0x0040000
_OOM_SCORE = 900  # the kernel's first choice, well before the trainer
# Not 0, which keeps a dump from a file but not from the host's crash handler, a program that runs
# as root where the core pattern is a pipe: fs/coredump.c starts none for this one value. The filter
# lets nobody change it.
_CORE_BYTES = 1
_MEMLOCK_BYTES = 1 << 16
_PENDING_SIGNALS = 1024  # queued ones; the owner's user has one store of them for all sandboxes

# Built once, in the server: a sandbox only installs it.
_FILTER = seccomp.program(sc.machine())


def apply(limits: dict[str, int]) -> None:
    """Drops privileges for good.

    Init keeps its *permitted* capabilities: they are what makes a command's attempts to change
    init's priority or affinity fail. An exec by a uid that is not root loses them.
    """
    with step("set the out-of-memory score"):
        sc.raise_oom_score(_OOM_SCORE)
    with step("switch address randomisation off"):
        sc.personality(_ADDR_NO_RANDOMIZE)
    with step("drop capabilities"):
        sc.prctl(_PR_SET_DUMPABLE, 0)
        sc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
        sc.prctl(_PR_SET_SECUREBITS, _SECUREBITS_LOCKED)
        _drop_bounding_set()
        sc.drop_effective_capabilities(but=(_CAP_SYS_PTRACE,))
        sc.prctl(_PR_SET_NO_NEW_PRIVS, 1)
    with step("set limits"):
        _set_limits(limits)
    os.umask(0o022)
    with step("install the seccomp filter"):
        sc.install_filter(_FILTER)


def _drop_bounding_set() -> None:
    for capability in range(64):
        try:
            sc.prctl(_PR_CAPBSET_DROP, capability)
        except OSError:  # EINVAL: above the last capability that this kernel knows
            return


def _set_limits(limits: dict[str, int]) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for kind, value in (
        (resource.RLIMIT_CORE, _CORE_BYTES),
        (resource.RLIMIT_NICE, 0),
        (resource.RLIMIT_RTPRIO, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, _MEMLOCK_BYTES),
        (resource.RLIMIT_SIGPENDING, _PENDING_SIGNALS),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        (resource.RLIMIT_NPROC, limits["num_processes"]),
        # Half of the server's own, which must still be able to pass descriptors on.
        (resource.RLIMIT_NOFILE, min(limits["num_open_files"], hard // 2)),
    ):
        _, ceiling = resource.getrlimit(kind)
        value = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
        resource.setrlimit(kind, (value, value))
