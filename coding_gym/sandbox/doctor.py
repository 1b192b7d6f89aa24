"""Reports which backends work on this machine, and why others do not, with the remedy."""

import os
import resource
from dataclasses import dataclass
from typing import Any

from coding_gym.sandbox.protocol import Probe
from coding_gym.sandbox.select import AUTOMATIC, backend_names, get_backend

_DEFAULT_EPISODES = 64
# Per sandbox and user: its first process, a shell, and the processes of a test run.
_PROCESSES = 8
# Per sandbox in the owner: its channel, and more while it is being opened.
_DESCRIPTORS = 4
_OWN_DESCRIPTORS = 64


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
    found = [_shortage("open files", "n", "nofile", resource.RLIMIT_NOFILE, files)]
    if os.geteuid() != 0:  # the kernel does not limit root
        processes = _PROCESSES * num_episodes
        found.append(_shortage("processes", "u", "nproc", resource.RLIMIT_NPROC, processes))
    return tuple(filter(None, found))


def _shortage(name: str, option: str, item: str, kind: int, needed: int) -> str:
    soft, hard = resource.getrlimit(kind)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return ""
    remedy = f"run `ulimit -{option} {needed}` in the shell that starts the trainer"
    if hard != resource.RLIM_INFINITY and hard < needed:
        remedy = f"put `* - {item} {needed}` into /etc/security/limits.conf, log in again"
    return f"{needed} {name} are needed, {soft} are allowed: {remedy}"
