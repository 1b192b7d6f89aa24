"""The ``namespace`` backend: user, mount, pid, net, ipc, uts and cgroup namespaces; no daemon."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Literal

from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.sandbox import cgroups
from coding_gym.sandbox.backend_checks import failed_probe
from coding_gym.sandbox.channel import Channel
from coding_gym.sandbox.images import ImageStore
from coding_gym.sandbox.namespace_request import namespace_request
from coding_gym.sandbox.ownership import make_upper, remove_folder
from coding_gym.sandbox.protocol import Probe, Promise, Snapshot
from coding_gym.sandbox.remedies import is_refusal, unavailable
from coding_gym.sandbox.served_sandbox import ServedSandbox
from coding_gym.sandbox.snapshots import check_fits, check_snapshot
from coding_gym.sandbox.spec import SandboxLimits, SandboxSpec
from coding_gym.sandbox.zygote.image_root import NO_BASH
from coding_gym.sandbox.zygote.steps import SetupError
from coding_gym.sandbox.zygotes import Zygote, require_linux, with_zygote, zygote

# As root, what sandboxes run as: no account of any distribution has this number.
_UNPRIVILEGED = 64998
# An overlay refuses it (EXDEV); `mv` copies then.
_MISSING = (Promise.CPU_LIMIT, Promise.FOLDER_RENAMES)
_MISSING_ON_DISK = (*_MISSING, Promise.DISK_LIMIT, Promise.INODE_LIMIT)


class NamespaceBackend:
    """Sandboxes made of Linux namespaces and an overlay, opened by a zygote process.

    Covered: files (an allow-listed root, a private copy of the layers), processes, the network,
    the environment, capabilities, system calls, sizes and counts, memory. Not covered: CPU time
    without a delegated cgroup (`Probe.missing`), and holes in the kernel itself.

    Args:
        changes: Where a sandbox's changes go: ``"auto"`` is a tmpfs where the kernel can (6.6 and
            later), else a folder on disk, whose size nothing bounds; ``"disk"`` is always that.
    """

    def __init__(self, changes: Literal["auto", "disk"] = "auto") -> None:
        self._changes = changes

    @property
    def name(self) -> str:
        """``"namespace"``."""
        return "namespace"

    @property
    def prepares(self) -> bool:
        """True: its sandboxes start commands ahead."""
        return True

    def owner(self) -> tuple[int, int]:
        """Returns the uid and gid that sandboxes run as, which must own the layers.

        As root a fixed unprivileged one; root of a container that maps few users, and ordinary
        users, run as themselves.
        """
        kinds = ("uid", "gid")
        if os.geteuid() == 0 and all(_outside(kind, _UNPRIVILEGED) is not None for kind in kinds):
            return _UNPRIVILEGED, _UNPRIVILEGED
        return os.geteuid(), os.getegid()

    def probe(self) -> Probe:
        """Opens a throw-away sandbox, runs a command in it and closes it; never raises."""
        if (failed := failed_probe(self.open)) is not None:
            return failed
        return self._works()

    def open(self, spec: SandboxSpec, *, snapshot: Snapshot | None = None) -> ServedSandbox:
        """Opens a sandbox.

        Raises:
            InvalidArgumentError: A layer or mount that does not exist, or a target that cannot be;
                a snapshot of another backend or spec.
            SandboxUnavailableError: This machine cannot run the backend; says the remedy.
            SandboxError: The machine can, but this time it failed.
        """
        if snapshot is not None:
            check_snapshot(snapshot, backend=self.name, spec=spec)
            check_fits(snapshot)
        with _reported():
            return self._open(spec, snapshot)

    def _works(self) -> Probe:
        uid, _ = self.owner()
        on_disk = self._is_on_disk(zygote("namespace", *self.owner()))
        place = "on disk" if on_disk else "in memory"
        detail = f"opened a sandbox as uid {uid}, with its changes {place}, and ran a command; "
        detail += "memory is watched"
        missing: tuple[Promise, ...] = _MISSING_ON_DISK if on_disk else _MISSING
        if cgroups.delegation().folder is not None:
            missing = tuple(promise for promise in missing if promise != Promise.CPU_LIMIT)
        return Probe(available=True, detail=detail, missing=missing)

    def _is_on_disk(self, handle: Zygote) -> bool:
        return self._changes == "disk" or not handle.overlay_works_on_tmpfs

    def _open(self, spec: SandboxSpec, snapshot: Snapshot | None = None) -> ServedSandbox:
        channel = self._start(spec, snapshot)
        return ServedSandbox(self.name, spec, channel, start=partial(self._restart, spec))

    def _restart(self, spec: SandboxSpec, snapshot: Snapshot) -> Channel:
        with _reported():
            return self._start(spec, snapshot)

    def _start(self, spec: SandboxSpec, snapshot: Snapshot | None) -> Channel:
        require_linux(self.name)
        if self.owner()[0] == 0 and _outside("uid", 0) == 0:
            raise SandboxUnavailableError(
                "sandboxes would run as root: this user namespace maps its root to root and has "
                "no other user",
                "run as an ordinary user, or map more users into the namespace",
            )
        return with_zygote(
            "namespace", *self.owner(), lambda zygote: self._start_in(zygote, spec, snapshot)
        )

    def _start_in(self, handle: Zygote, spec: SandboxSpec, snapshot: Snapshot | None) -> Channel:
        image = _images().get(spec.image, self.owner()) if spec.image else None
        has_overlay = bool(spec.layers or image)
        with ExitStack() as undo:
            upper = self._make_upper() if self._is_on_disk(handle) and has_overlay else None
            if upper is not None:
                undo.callback(remove_folder, upper)
            group = _make_group(spec.limits)
            if group is not None:
                undo.callback(group.close)
            request = namespace_request(spec, upper, image=image, restores=snapshot is not None)
            channel = Channel(handle.open(request, group), undo)
        channel.wait_until_ready(snapshot=snapshot)
        return channel

    def _make_upper(self) -> Path:
        try:
            return make_upper(self.owner())
        except OSError as error:
            raise SandboxError(f"no folder for a sandbox's changes: {error}") from error


@cache
def _images() -> ImageStore:
    return ImageStore()


def _make_group(limits: SandboxLimits) -> cgroups.Group | None:
    try:
        return cgroups.make_group(limits)
    except OSError as error:
        raise SandboxError(f"no control group for a sandbox: {error}") from error


@contextmanager
def _reported() -> Iterator[None]:
    """Turns what a set-up fails with into what callers are promised."""
    try:
        yield
    except SetupError as failure:
        if failure.step == NO_BASH:
            raise InvalidArgumentError(
                "the image has no bash, which runs every command; install it there, as with "
                "`apt-get install bash` or `apk add bash`"
            ) from failure
        if is_refusal(failure):
            raise unavailable(failure) from failure
        raise SandboxError(str(failure)) from failure
    except OSError as error:  # out of descriptors, most often
        raise SandboxError(f"cannot open a sandbox: {error}") from error


def _outside(kind: str, number: int) -> int | None:
    """Returns what a uid or gid is outside this user namespace; None where it is not mapped."""
    for line in Path(f"/proc/self/{kind}_map").read_text(encoding="ascii").splitlines():
        first, outside, count = (int(field) for field in line.split())
        if first <= number < first + count:
            return outside + number - first
    return None
