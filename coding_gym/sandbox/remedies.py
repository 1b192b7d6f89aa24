"""What to do about a step of a sandbox's set-up that the machine refuses."""

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

_APPARMOR = "kernel.apparmor_restrict_unprivileged_userns"
_USERNS_CLONE = "kernel.unprivileged_userns_clone"
_MAX_USERNS = "user.max_user_namespaces"
_CONTAINER = (
    "start the container with --security-opt seccomp=unconfined "
    "--security-opt systempaths=unconfined (and apparmor=unconfined on AppArmor hosts)"
)
_REFUSALS = frozenset({errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENODEV, errno.EINVAL})
# Steps that fail for what was asked, not for what the machine is.
_REQUESTED = ("show ", "mount at ", "serve ", "write the sandbox's files")


class SetupFailure(Exception):
    """A step of a set-up failed.

    Attributes:
        step: What was tried.
        errno: The system's error number, 0 where there is none.
        reason: The system's words.
    """

    def __init__(self, step: str, errno: int, reason: str) -> None:
        super().__init__(f"could not {step}: {reason}")
        self.step = step
        self.errno = errno
        self.reason = reason

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Rebuilds a failure from what the zygote sent."""
        return cls(str(data.get("step")), int(data.get("errno", 0)), str(data.get("reason")))

    @property
    def is_refusal(self) -> bool:
        """Whether the machine refuses the step itself, so that trying again cannot help."""
        return self.errno in _REFUSALS and not self.step.startswith(_REQUESTED)


def describe(failure: SetupFailure) -> str:
    """Returns a failure and its remedy in one line."""
    way_out = remedy(failure)
    return f"{failure}; run: {way_out}" if way_out.startswith("sudo") else f"{failure}; {way_out}"


def remedy(failure: SetupFailure) -> str:
    """Returns the command or option that makes a refused step work on this machine."""
    if _sysctl(_APPARMOR) == "1" and os.geteuid() != 0:
        return f"sudo sysctl -w {_APPARMOR}=0"
    if _sysctl(_USERNS_CLONE) == "0" and os.geteuid() != 0:
        return f"sudo sysctl -w {_USERNS_CLONE}=1"
    if _sysctl(_MAX_USERNS) == "0" or (failure.errno == errno.ENOSPC and "names" in failure.step):
        return f"sudo sysctl -w {_MAX_USERNS}=65536"
    if failure.step == "map the users":
        return "run with CAP_SETUID and CAP_SETGID, or as an ordinary user"
    if _in_container():
        return _CONTAINER
    if failure.errno == errno.ENOSYS or "overlay" in failure.step:
        return f"use Linux 5.12 or later (this is {os.uname().release})"
    return "run `coding-gym doctor` for what works here instead"


def _sysctl(name: str) -> str:
    path = Path("/proc/sys") / name.replace(".", "/")
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _in_container() -> bool:
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return True
    return "KUBERNETES_SERVICE_HOST" in os.environ
