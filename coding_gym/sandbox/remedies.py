"""Remedies for steps of a sandbox's set-up that the machine refuses."""

import errno
import os
from pathlib import Path

from coding_gym.errors import SandboxUnavailableError
from coding_gym.host.interpreters import default_interpreter
from coding_gym.sandbox.inside.syscalls import SetupError

_ROOT = Path("/")
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
_PROFILE = """abi <abi/4.0>,
include <tunables/global>
profile {name} {executable} flags=(unconfined) {{
  userns,
}}
"""
_REFUSALS = frozenset({errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENODEV, errno.EINVAL})
# Steps that fail because of the request, not because of the machine.
_STEPS_OF_REQUESTS = ("show ", "mount at ", "serve ", "write the sandbox's files", "restore ")


def is_refusal(failure: SetupError) -> bool:
    """Whether the machine refuses the step itself, so that trying again cannot help."""
    return failure.errno in _REFUSALS and not failure.step.startswith(_STEPS_OF_REQUESTS)


def unavailable(failure: SetupError) -> SandboxUnavailableError:
    """Returns the error for a step that the machine refuses, with its remedy."""
    return SandboxUnavailableError(str(failure), remedy(failure))


def remedy(failure: SetupError, *, root: Path = _ROOT) -> str:
    """Returns the command or option that makes a refused step work on this machine.

    Args:
        failure: The step.
        root: Folder with the machine's files that say what it forbids.
    """
    if _sysctl(_APPARMOR, root) == "1" and os.geteuid() != 0:
        return f"run `sudo sysctl -w {_APPARMOR}=0`"
    if _sysctl(_USERNS_CLONE, root) == "0" and os.geteuid() != 0:
        return f"run `sudo sysctl -w {_USERNS_CLONE}=1`"
    if _sysctl(_MAX_USERNS, root) == "0" or (
        failure.errno == errno.ENOSPC and "names" in failure.step
    ):
        return f"run `sudo sysctl -w {_MAX_USERNS}=65536`"
    if failure.step == "map the users":
        return "run with CAP_SETUID and CAP_SETGID, or as an ordinary user"
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return _POD
    if _in_container(root):
        return _CONTAINER
    if failure.errno == errno.ENOSYS or "overlay" in failure.step:
        return f"use Linux 5.12 or later (this is {os.uname().release})"
    return "run `coding-gym doctor` for what works here instead"


def apparmor_profile(*, root: Path = _ROOT) -> str:
    """Returns commands that let this interpreter, and no other program, make user namespaces.

    "" where AppArmor does not hold it back. A profile attaches to the file that is run, which is
    not the link of that name in a virtual environment.

    Args:
        root: Folder with the machine's files that say what it forbids.
    """
    if _sysctl(_APPARMOR, root) != "1" or os.geteuid() == 0:
        return ""
    executable = default_interpreter().executable
    name = "coding_gym" + str(executable).replace("/", ".")
    place = f"/etc/apparmor.d/{name}"
    text = _PROFILE.format(name=name, executable=executable)
    return f"sudo tee {place} <<'END'\n{text}END\nsudo apparmor_parser -r {place}"


def _sysctl(name: str, root: Path) -> str:
    path = root / "proc/sys" / name.replace(".", "/")
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _in_container(root: Path) -> bool:
    return (root / ".dockerenv").exists() or (root / "run/.containerenv").exists()
