"""The ``landlock`` backend: for machines that forbid user namespaces. No mounts, no daemon."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from coding_gym.errors import SandboxUnavailableError
from coding_gym.host.network import settings
from coding_gym.sandbox import cgroups
from coding_gym.sandbox.backend_checks import failed_probe
from coding_gym.sandbox.host_folder import HostFolder, check_request, fill, open_sandbox, variables
from coding_gym.sandbox.landlock.grants import Grant, is_system, system_grants, tree_grants
from coding_gym.sandbox.landlock.reach import admit, reachable, reachable_python
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.protocol import Probe, Promise, Snapshot
from coding_gym.sandbox.served_sandbox import ServedSandbox
from coding_gym.sandbox.spec import SandboxSpec
from coding_gym.sandbox.zygote import landlock_rights
from coding_gym.sandbox.zygote.steps import SetupError
from coding_gym.sandbox.zygote.syscalls import machine
from coding_gym.sandbox.zygotes import require_linux

NAME = "landlock"
# Without mounts there is one view of the files; without cgroups, nothing to count with.
_NEVER = (
    Promise.DISK_LIMIT,
    Promise.INODE_LIMIT,
    Promise.FIXED_PATHS,
    Promise.PRIVATE_TMP,
    Promise.SMALL_SNAPSHOTS,
    Promise.OWN_IMAGE,
)
# What each version of Landlock brought that a promise rests on, and the Linux it came with. What
# else is missing of an older one is refused by the filter on system calls.
_OLDEST = 2
_SINCE = {Promise.HOST_PROCESSES: (6, "6.12")}
# Their files exist, and may not be read, which git and others take for a broken machine.
_NO_HOST_SETTINGS = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "PIP_CONFIG_FILE": "/dev/null",
}
_PATIENCE = "run it again; if it keeps failing, report it with this message"
_NO_LANDLOCK = (
    "use Linux 5.19 or later, with `landlock` in the `lsm=` list of the kernel's command line"
)


class LandlockBackend:
    """Sandboxes held by Landlock rules and a seccomp filter.

    Covered: the host's files (an allow-list; of the rest, names, sizes and dates can be asked for,
    and nothing else), signals, memory and environment of the host's processes, the network (no
    sockets at all), privileges, system calls, memory, the number of processes (without a delegated
    cgroup, a burst may reach twice the limit). Not covered: what `Probe.missing` names.
    The workspace is a copy, so opening one takes time for all its files, and so does a snapshot.

    Args:
        abi: The version of Landlock to use; what the kernel has when None or higher than that.
    """

    def __init__(self, abi: int | None = None) -> None:
        self._abi = abi

    @property
    def name(self) -> str:
        """``"landlock"``."""
        return NAME

    @property
    def prepares(self) -> bool:
        """False: a sandbox costs a copy of its files, too much to open one ahead of time."""
        return False

    def owner(self) -> tuple[int, int]:
        """Returns the uid and gid that sandboxes run as, those of the ``namespace`` backend.

        So that both can use the same templates.
        """
        return NamespaceBackend().owner()

    def probe(self) -> Probe:
        """Opens a throw-away sandbox, runs a command in it and closes it; never raises."""
        if (failed := failed_probe(self.open)) is not None:
            return failed
        version = self._version()
        lost = {promise: linux for promise, (since, linux) in _SINCE.items() if version < since}
        detail = f"Landlock {version}: opened a sandbox as uid {self.owner()[0]}, ran a command"
        for promise, linux in lost.items():
            detail += f"; {promise} needs Linux {linux}"
        unbounded = () if cgroups.delegation().folder else (Promise.CPU_LIMIT,)
        return Probe(available=True, detail=detail, missing=(*_NEVER, *unbounded, *lost))

    def open(self, spec: SandboxSpec, *, snapshot: Snapshot | None = None) -> ServedSandbox:
        """Opens a sandbox.

        Raises:
            InvalidArgumentError: A layer or mount that does not exist; an image; a
                snapshot of another backend or spec.
            SandboxUnavailableError: This machine cannot run the backend; says the remedy.
            SandboxError: The machine can, but this time it failed.
        """
        check_request(NAME, spec, snapshot, missing=_NEVER)
        self._require_landlock()
        try:
            return open_sandbox(NAME, spec, self.owner(), self._prepare, snapshot)
        except SetupError as failure:
            raise SandboxUnavailableError(str(failure), _remedy(failure)) from failure

    def _prepare(self, folder: Path, spec: SandboxSpec) -> tuple[HostFolder, dict[str, Any]]:
        owner = self.owner()
        admit(folder, owner)
        files = fill(
            folder,
            spec,
            owner,
            has_tmp=True,
            show=partial(reachable, user=owner),
            show_python=partial(reachable_python, user=owner),
        )
        env = variables(spec, files, _NO_HOST_SETTINGS | (settings().env if spec.network else {}))
        if spec.python is not None:
            prefix = files.places[str(spec.python.prefix)]
            if prefix != str(spec.python.prefix):
                env["LD_LIBRARY_PATH"] = f"{prefix}/lib"
        grants = list(_grants(spec, files))
        return files, {"env": env, "landlock": {"abi": self._version(), "grants": grants}}

    def _version(self) -> int:
        return landlock_rights.abi() if self._abi is None else min(self._abi, landlock_rights.abi())

    def _require_landlock(self) -> None:
        require_linux(NAME)
        try:
            machine()
        except OSError as error:
            raise SandboxUnavailableError(str(error), "use an x86_64 or aarch64 machine") from error
        if self.owner()[0] == 0:
            raise SandboxUnavailableError(
                "sandboxes would run as root: this user namespace has no other user",
                "run as an ordinary user, or map more users into the namespace",
            )
        if self._version() == 0:
            raise SandboxUnavailableError("this kernel does not enforce Landlock", _NO_LANDLOCK)
        if self._version() < _OLDEST:
            raise SandboxUnavailableError(
                "Landlock of this kernel lets nobody move a file to another folder",
                f"use Linux 5.19 or later (this is {os.uname().release})",
            )


def _grants(spec: SandboxSpec, files: HostFolder) -> Iterator[Grant]:
    yield from system_grants()
    yield "read", str(files.path / "python")
    for path in files.writable.values():
        yield "write", path
    for mount in spec.mounts:
        yield "write" if mount.writable else "read", files.places[mount.target]
    if spec.python is not None:
        prefix = Path(files.places[str(spec.python.prefix)])
        if not is_system(prefix):
            yield from tree_grants(prefix)
    if spec.network:
        yield "read", "/etc/resolv.conf"
        for source in settings().paths:
            yield "read", str(source)


def _remedy(failure: SetupError) -> str:
    if failure.step == "change the user":
        return "run with CAP_SETUID and CAP_SETGID, or as an ordinary user"
    if "Landlock" in failure.step:
        return "allow landlock_create_ruleset and its kin in the container's seccomp profile"
    return _PATIENCE
