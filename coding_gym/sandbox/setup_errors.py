"""Converts failed steps of a set-up into the errors that `SandboxBackend.open` documents."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.sandbox.inside.syscalls import SetupError

_APPARMOR = "kernel.apparmor_restrict_unprivileged_userns"
_USERNS_CLONE = "kernel.unprivileged_userns_clone"
_CONTAINER = (
    "start the container with (on AppArmor hosts also --security-opt apparmor=unconfined): "
    "--security-opt seccomp=unconfined --security-opt systempaths=unconfined"
)
_POD = (
    "give the pod `hostUsers: false`, and its container's securityContext `procMount: Unmasked` "
    "and `seccompProfile: {type: Unconfined}`"
)
NO_DESCRIPTOR = (
    "this process has no free file descriptor for a sandbox; raise the limit with "
    "`ulimit -n NUMBER` in the shell that starts the process"
)
_REFUSALS = frozenset({errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENODEV, errno.EINVAL})
# Error numbers of a mount at an invalid target.
_INVALID_TARGET = frozenset(
    {errno.EACCES, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG}
    | {errno.EINVAL, errno.ENOENT, errno.ENOTDIR, errno.EROFS}
)
_REMEDIES = {
    "users": "run with CAP_SETUID and CAP_SETGID",
    "landlock": "allow landlock_create_ruleset, landlock_add_rule and landlock_restrict_self in "
    "the container's seccomp profile",
}


@contextmanager
def documented_errors() -> Iterator[None]:
    """Converts SetupError and OSError in the block into the errors that `open` documents."""
    try:
        yield
    except SetupError as failure:
        raise public_error(failure) from failure
    except OSError as error:  # usually because no descriptor is free
        raise SandboxError(f"cannot open a sandbox: {error}") from error


def public_error(failure: SetupError) -> InvalidArgumentError | SandboxError:
    """Returns the error of a failed step: invalid argument, unusable machine, transient failure."""
    if failure.kind == "bash":
        return InvalidArgumentError(
            "the image has no bash, which runs every command; install bash in the image, as with "
            "`apt-get install bash` or `apk add bash`"
        )
    if failure.kind == "target" and failure.errno in _INVALID_TARGET:
        return InvalidArgumentError(f"{failure}; choose another target")
    if _is_refusal(failure):
        return SandboxUnavailableError(str(failure), _remedy(failure))
    return SandboxError(str(failure))


def _is_refusal(failure: SetupError) -> bool:
    """Returns whether the machine refuses the step, so that a retry fails as well."""
    if failure.kind == "namespaces" and failure.errno == errno.ENOSPC:
        return True
    if failure.kind in ("request", "target"):
        return False
    return failure.kind == "modules" or failure.errno in _REFUSALS


def _remedy(failure: SetupError) -> str:
    """Returns the command or option that makes a refused step work on this machine."""
    if failure.kind in _REMEDIES:
        return _REMEDIES[failure.kind]
    if _sysctl(_APPARMOR) == "1" and os.geteuid() != 0:
        return f"run `sudo sysctl -w {_APPARMOR}=0`"
    if _sysctl(_USERNS_CLONE) == "0" and os.geteuid() != 0:
        return f"run `sudo sysctl -w {_USERNS_CLONE}=1`"
    if failure.errno == errno.ENOSPC:
        return "run `sudo sysctl -w user.max_user_namespaces=65536`"
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return _POD
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return _CONTAINER
    if failure.errno == errno.ENOSYS or failure.kind == "overlay":
        return f"use Linux 5.12 or later (this is {os.uname().release})"
    return "run `coding-gym doctor` to see which backends work here"


def _sysctl(name: str) -> str:
    path = Path("/proc/sys", name.replace(".", "/"))
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
