"""Reports which backends work on this machine, and why others do not, with the remedy."""

import errno
import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coding_gym.errors import SandboxUnavailableError
from coding_gym.host.interpreters import default_interpreter
from coding_gym.sandbox.inside.syscalls import SetupError
from coding_gym.sandbox.protocol import Probe
from coding_gym.sandbox.select import AUTOMATIC, backend_names, get_backend

_DEFAULT_EPISODES = 64
# Per sandbox and user: its first process, a shell, and the processes of a test run.
_PROCESSES = 8
# Per sandbox in the owner: its channel, and more while it is being opened.
_DESCRIPTORS = 4
_OWN_DESCRIPTORS = 64
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The state of this machine.

    Attributes:
        probes: The result of each backend's probe, by its name.
        automatic: The backend that ``"auto"`` means here; "" where none works.
        shortages: Limits that are too low for the number of sandboxes, each with its remedy.
    """

    probes: dict[str, Probe]
    automatic: str
    shortages: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns the report as JSON-native values."""
        backends = {
            name: {
                "works": probe.available,
                "detail": probe.detail,
                "remedy": probe.remedy,
                "missing": [promise.name for promise in probe.missing],
            }
            for name, probe in self.probes.items()
        }
        return {
            "automatic": self.automatic,
            "backends": backends,
            "shortages": list(self.shortages),
        }


def examine(*, num_episodes: int = _DEFAULT_EPISODES) -> Report:
    """Opens a throw-away sandbox of every backend, and compares the machine's limits.

    The limits should suffice for ``num_episodes`` sandboxes at a time.
    """
    probes = {name: get_backend(name).probe() for name in backend_names()}
    automatic = next((name for name in AUTOMATIC if probes[name].available), "")
    return Report(probes=probes, automatic=automatic, shortages=shortages(num_episodes))


def shortages(num_episodes: int) -> tuple[str, ...]:
    """Returns the limits of this process that are too low for a number of open sandboxes."""
    files = _OWN_DESCRIPTORS + _DESCRIPTORS * num_episodes
    checks = [_shortage("open files", "n", "nofile", resource.RLIMIT_NOFILE, files)]
    if os.geteuid() != 0:  # the kernel does not limit root
        processes = _PROCESSES * num_episodes
        checks.append(_shortage("processes", "u", "nproc", resource.RLIMIT_NPROC, processes))
    return tuple(filter(None, checks))


def _shortage(name: str, option: str, item: str, kind: int, needed: int) -> str:
    soft, hard = resource.getrlimit(kind)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return ""
    remedy = f"run `ulimit -{option} {needed}` in the shell that starts the trainer"
    if hard != resource.RLIM_INFINITY and hard < needed:
        remedy = f"put `* - {item} {needed}` into /etc/security/limits.conf, log in again"
    return f"{needed} {name} are needed, {soft} are allowed: {remedy}"


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
