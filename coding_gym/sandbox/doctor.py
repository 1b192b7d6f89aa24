"""Which refusals of the machine end a set-up for good, and the remedy for each."""

import errno
import os
from pathlib import Path

from coding_gym.errors import SandboxUnavailableError
from coding_gym.sandbox.inside.syscalls import SetupError

_APPARMOR = "kernel.apparmor_restrict_unprivileged_userns"
_USERNS_CLONE = "kernel.unprivileged_userns_clone"
_MAX_USERNS = "user.max_user_namespaces"
_CONTAINER = (
    "start the container with --security-opt seccomp=unconfined "
    "--security-opt systempaths=unconfined (and apparmor=unconfined on AppArmor hosts)"
)
_POD = (
    "give the pod `hostUsers: false`, and its container's securityContext `procMount: Unmasked` "
    "and `seccompProfile: {type: Unconfined}`"
)
_REFUSALS = frozenset({errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENODEV, errno.EINVAL})
# Steps that fail because of the request, not because of the machine.
_STEPS_OF_REQUESTS = ("show ", "mount at ", "serve ", "write the sandbox's files", "restore ")


def is_refusal(failure: SetupError) -> bool:
    """Whether the machine refuses the step itself, so that trying again cannot help."""
    return failure.errno in _REFUSALS and not failure.step.startswith(_STEPS_OF_REQUESTS)


def unavailable(failure: SetupError) -> SandboxUnavailableError:
    """Returns the error for a step that the machine refuses, with its remedy."""
    return SandboxUnavailableError(str(failure), remedy(failure))


def remedy(failure: SetupError) -> str:
    """Returns the command or option that makes a refused step work on this machine."""
    if _sysctl(_APPARMOR) == "1" and os.geteuid() != 0:
        return f"run `sudo sysctl -w {_APPARMOR}=0`"
    if _sysctl(_USERNS_CLONE) == "0" and os.geteuid() != 0:
        return f"run `sudo sysctl -w {_USERNS_CLONE}=1`"
    if _sysctl(_MAX_USERNS) == "0" or (failure.errno == errno.ENOSPC and "names" in failure.step):
        return f"run `sudo sysctl -w {_MAX_USERNS}=65536`"
    if failure.step == "map the users":
        return "run with CAP_SETUID and CAP_SETGID, or as an ordinary user"
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return _POD
    if _in_container():
        return _CONTAINER
    if failure.errno == errno.ENOSYS or "overlay" in failure.step:
        return f"use Linux 5.12 or later (this is {os.uname().release})"
    return "run `coding-gym doctor` for what works here instead"


def _sysctl(name: str) -> str:
    path = Path("/proc/sys", name.replace(".", "/"))
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _in_container() -> bool:
    return Path("/.dockerenv").exists() or Path("/run/.containerenv").exists()
