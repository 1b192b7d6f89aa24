"""What init gives up before it serves; commands inherit all of it."""

import resource
import struct
from functools import cache

from coding_gym.sandbox.zygote import seccomp
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.numbers import machine
from coding_gym.sandbox.zygote.plan import Plan

# Lets init, under its filter, do no more than see the processes that hide from /proc.
_CAP_SYS_PTRACE = 19
_PR_SET_DUMPABLE, _PR_CAPBSET_READ, _PR_CAPBSET_DROP, _PR_SET_SECUREBITS = 4, 23, 24, 28
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
# NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, these and KEEP_CAPS (off) locked.
_SECUREBITS_LOCKED = 0xEF
_CAPABILITY_VERSION = 0x20080522
_ADDR_NO_RANDOMIZE = 0x0040000
_ASK = 0xFFFFFFFF
_FILTER_MODE = 1  # SECCOMP_SET_MODE_FILTER
_OOM_SCORE = 900  # the kernel's first choice, well before the trainer
# Not 0, which keeps a dump from a file but not from the host's crash handler, a program that runs
# as root where the core pattern is a pipe: fs/coredump.c starts none for this one value. The filter
# lets nobody change it.
_CORE_BYTES = 1
_MEMLOCK_BYTES = 1 << 16
_PENDING_SIGNALS = 1024  # queued ones; the owner's user has one store of them for all sandboxes

# Built once, in the server: a sandbox only installs it.
_FILTER = sc.FilterProgram(seccomp.program(machine()))


def plan_lockdown(plan: Plan, limits: dict[str, int]) -> None:
    """Drops privileges for good.

    Init keeps its *permitted* capabilities: they are what makes a command's attempts to change
    init's priority or affinity fail. An exec by a uid that is not root loses them.
    """
    with plan.step("set the out-of-memory score"):
        if sc.oom_score() < _OOM_SCORE:
            plan.write_text("/proc/self/oom_score_adj", str(_OOM_SCORE))
    with plan.step("switch address randomisation off"):
        plan.call("personality", _ADDR_NO_RANDOMIZE, gives=sc.personality(_ASK))
    with plan.step("drop capabilities"):
        plan.prctl(_PR_SET_DUMPABLE, 0)
        plan.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
        plan.prctl(_PR_SET_SECUREBITS, _SECUREBITS_LOCKED)
        for capability in range(_num_capabilities()):
            plan.prctl(_PR_CAPBSET_DROP, capability)
        _drop_effective_capabilities(plan)
        plan.prctl(_PR_SET_NO_NEW_PRIVS, 1)
    with plan.step("set limits"):
        _set_limits(plan, limits)
    with plan.step("install the seccomp filter"):
        plan.call("seccomp", _FILTER_MODE, 0, _FILTER.address)


@cache
def _num_capabilities() -> int:
    """Returns how many capabilities this kernel knows."""
    for capability in range(64):
        try:
            sc.prctl(_PR_CAPBSET_READ, capability)
        except OSError:  # EINVAL: above the last
            return capability
    return 64


def _drop_effective_capabilities(plan: Plan) -> None:
    """Empties the effective and inheritable sets, but for one; the whole permitted set stays."""
    permitted = (1 << _num_capabilities()) - 1
    sets = []
    for half in (0, 32):
        effective = 1 << _CAP_SYS_PTRACE >> half
        sets += [effective & 0xFFFFFFFF, permitted >> half & 0xFFFFFFFF, 0]
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    plan.call("capset", header, struct.pack("6I", *sets))


def _set_limits(plan: Plan, limits: dict[str, int]) -> None:
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
        # The ceilings are the server's own, which a sandbox starts with.
        _, ceiling = resource.getrlimit(kind)
        value = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
        plan.call("prlimit64", 0, kind, struct.pack("2Q", value, value), 0)
