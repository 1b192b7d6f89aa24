"""The ``namespace`` backend: user, mount, pid, net, ipc, uts and cgroup namespaces; no daemon."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path, PurePosixPath
from stat import S_ISDIR
from time import monotonic
from typing import Literal

from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.host import network
from coding_gym.sandbox.backend_checks import check_snapshot, check_spec, checked_probe
from coding_gym.sandbox.images.layout import find_image, read_manifest
from coding_gym.sandbox.images.store import Image, unpack_image
from coding_gym.sandbox.inside.fixed import PYTHON_FOLDER
from coding_gym.sandbox.inside.host_folders import is_in_top_folder
from coding_gym.sandbox.inside.request import (
    ImageRequest,
    MountRequest,
    Preload,
    SandboxRequest,
    Source,
)
from coding_gym.sandbox.ownership import make_upper, outside_id, remove_folder, unprivileged_owner
from coding_gym.sandbox.protocol import Probe, Promise, Snapshot
from coding_gym.sandbox.served_sandbox import Channel, ServedSandbox
from coding_gym.sandbox.setup_errors import documented_errors
from coding_gym.sandbox.spec import Interpreter, SandboxSpec, environment
from coding_gym.sandbox.zygotes import Zygote, with_zygote, zygote

_log = logging.getLogger(__name__)
_OLDEST_PRELOADED = (3, 11)  # the oldest Python that can run the modules of `inside`
_RETRY_S = 300.0  # after a preloaded zygote failed; each attempt can take half a minute
_MISSING_ON_DISK = (Promise.DISK_LIMIT, Promise.INODE_LIMIT)


class NamespaceBackend:
    """Sandboxes made of Linux namespaces and an overlay, opened by a zygote process.

    Protected: the host's files (the root has only allow-listed folders), the layers, processes, the
    network, the environment, capabilities, system calls. Limited: the resources in
    `SandboxLimits`. Not covered: CPU time, and vulnerabilities of the kernel.

    Args:
        changes: Where a sandbox's changes are stored. ``"auto"`` uses a tmpfs if overlayfs supports
            it (Linux 6.6), else a folder on disk without a size limit; ``"disk"``, for tests,
            always uses a folder on disk.
    """

    name = "namespace"

    def __init__(self, changes: Literal["auto", "disk"] = "auto") -> None:
        self._changes = changes
        self._not_before: dict[Preload, float] = {}  # time of the next attempt

    def owner(self) -> tuple[int, int]:
        """Returns the uid and gid of commands, which must own the layers."""
        return unprivileged_owner()

    def probe(self) -> Probe:
        """Opens a temporary sandbox, runs a command in it and closes it; never raises."""
        return checked_probe(self.open, self._describe)

    def _describe(self) -> Probe:
        uid, _ = self.owner()
        on_disk = self._is_on_disk(zygote("namespace", *self.owner()))
        storage = "on disk" if on_disk else "in memory"
        detail = f"opened a sandbox as uid {uid}, with its changes {storage}, and ran a command; "
        detail += "the memory limit is checked by polling"
        missing_promises = _MISSING_ON_DISK if on_disk else ()
        return Probe(available=True, detail=detail, missing=missing_promises)

    def image_id(self, image: str) -> str:
        """Returns an image's id; see `coding_gym.sandbox.protocol.SandboxBackend.image_id`."""
        try:
            return read_manifest(find_image(image)).digest
        except OSError as error:  # for example, no descriptor is free
            raise SandboxError(f"image {image!r} cannot be read: {error}") from error

    def open(self, spec: SandboxSpec, *, snapshot: Snapshot | None = None) -> ServedSandbox:
        """Opens a sandbox; see `coding_gym.sandbox.protocol.SandboxBackend.open`."""
        check_spec(spec, self.name, lacks=())
        if spec.workspace_alias and not spec.image:
            raise InvalidArgumentError("workspace_alias needs an image, got none; set image")
        if snapshot is not None:
            check_snapshot(snapshot, backend=self.name, spec=spec)
        return ServedSandbox(
            self.name, spec, self._start(spec, snapshot), start=partial(self._start, spec)
        )

    def _is_on_disk(self, handle: Zygote) -> bool:
        return self._changes == "disk" or not handle.overlay_works_on_tmpfs

    def _start(self, spec: SandboxSpec, snapshot: Snapshot | None) -> Channel:
        with documented_errors():
            user = self.owner()
            if user[0] == 0 and outside_id("uid", 0) == 0:
                raise SandboxUnavailableError(
                    "sandboxes would run as root: this user namespace maps its root to root and "
                    "has no other user",
                    "run as an ordinary user, or map more users into the namespace",
                )
            request = self._request(spec, restores=snapshot is not None)
            start = partial(self._start_in, request, spec, snapshot)
            preload = _preload_of(spec, request.mounts)
            if preload is not None and monotonic() >= self._not_before.get(preload, 0.0):
                try:
                    return with_zygote("namespace", *user, start, preload)
                except SandboxUnavailableError as error:
                    _log.warning(
                        "the modules %s are not preloaded: %s", spec.preload, error.problem
                    )
                    self._not_before[preload] = monotonic() + _RETRY_S
            return with_zygote("namespace", *user, start)

    def _start_in(
        self, request: SandboxRequest, spec: SandboxSpec, snapshot: Snapshot | None, handle: Zygote
    ) -> Channel:
        with ExitStack() as cleanup:
            if (request.layers or request.image) and self._is_on_disk(handle):
                upper = make_upper(self.owner())
                cleanup.callback(remove_folder, upper)
                request = replace(request, upper=replace(_source(upper), writable=True))
            stream = handle.open(request)
            channel = Channel(stream, cleanup, forks_python=handle.is_preloaded)
        channel.wait_until_ready(snapshot, spec.forwards)
        return channel

    def _request(self, spec: SandboxSpec, *, restores: bool) -> SandboxRequest:
        """Returns the request for a sandbox with its changes on a tmpfs.

        Args:
            spec: The sandbox's spec.
            restores: Whether the sandbox starts with the files of a snapshot.
        """
        image = unpack_image(spec.image, self) if spec.image else None
        env, host_mounts = network.settings() if spec.network else ({}, {})
        return SandboxRequest(
            layers=tuple(_source(layer) for layer in spec.layers),
            mounts=tuple(_mounts(spec, image, host_mounts)),
            upper=None,
            image=None
            if image is None
            else ImageRequest(
                folder=_source(image.folder),
                layers=image.layers,
                uid=image.user.uid,
                gid=image.user.gid,
            ),
            workspace_alias=spec.workspace_alias and _plain(spec.workspace_alias),
            links=_links(spec.python),
            env=env | _environment(spec, image),
            limits=asdict(spec.limits),
            network=spec.network,
            ports=tuple(spec.forwards),
            restores=restores,
        )


def _mounts(
    spec: SandboxSpec, image: Image | None, host_mounts: Mapping[str, Path]
) -> list[MountRequest]:
    """Returns the mounts of a sandbox: its interpreter, ``host_mounts`` and the spec's mounts."""
    mounts = []
    if spec.python is not None and not _is_always_visible(spec.python, image):
        source = replace(_source(spec.python.prefix), hides_packages=True)
        mounts.append(MountRequest(source=source, target=str(spec.python.prefix)))
    for target, path in host_mounts.items():
        mounts.append(MountRequest(source=_source(path), target=target))
    for mount in spec.mounts:
        source = replace(_source(mount.source), writable=mount.writable)
        mounts.append(MountRequest(source=source, target=_plain(mount.target)))
    return mounts


def _plain(path: str) -> str:
    return str(PurePosixPath(path))


def _environment(spec: SandboxSpec, image: Image | None) -> dict[str, str]:
    if image is None:
        return environment(spec, first=(PYTHON_FOLDER,))
    first = () if spec.python is None else (PYTHON_FOLDER,)
    return environment(spec, first=first, image_env=image.env, user=image.user.name)


def _is_always_visible(python: Interpreter, image: Image | None) -> bool:
    """Returns whether a Python is in a system folder; with an image, such a Python is an error."""
    is_in_system = is_in_top_folder(str(python.prefix))
    if is_in_system and image is not None:
        raise InvalidArgumentError(
            f"{python.executable} is part of the host's {python.prefix}, which a sandbox with an "
            "image does not have; use python=None for the image's Python, or an interpreter "
            "outside system folders"
        )
    return is_in_system


def _source(path: Path) -> Source:
    """Returns the real path, device and inode of a host folder or file."""
    real_path = path.resolve()
    info = real_path.stat()
    is_folder = S_ISDIR(info.st_mode)
    return Source(path=str(real_path), device=info.st_dev, inode=info.st_ino, is_folder=is_folder)


def _links(python: Interpreter | None) -> dict[str, str]:
    if python is None:
        return {}
    return {f"{PYTHON_FOLDER}/{name}": str(python.executable) for name in python.names}


def _preload_of(spec: SandboxSpec, mounts: Sequence[MountRequest]) -> Preload | None:
    """Returns the modules to preload; None if Python starts without them.

    Nothing is preloaded with the host's network, or with an image: its libraries can differ.

    Args:
        spec: The spec of the sandbox.
        mounts: All mounts of the sandbox.
    """
    if not spec.preload or spec.python is None or spec.image or spec.network:
        return None
    if spec.python.minor < _OLDEST_PRELOADED:
        return None
    site = str(spec.python.site_packages)
    targets = {str(spec.python.prefix), site}
    needed_mounts = tuple(mount for mount in mounts if mount.target in targets)
    if not any(mount.target == site and not mount.source.writable for mount in needed_mounts):
        return None
    return Preload(
        executable=str(spec.python.executable),
        modules=spec.preload,
        folder=site,
        mounts=needed_mounts,
    )
