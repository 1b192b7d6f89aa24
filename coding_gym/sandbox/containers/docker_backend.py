"""The ``docker`` backend."""

import os
from functools import partial

from coding_gym.sandbox.backend_checks import failed_probe
from coding_gym.sandbox.containers.container_sandbox import (
    ContainerSandbox,
    check_spec,
)
from coding_gym.sandbox.containers.docker_engine import Engine, connect
from coding_gym.sandbox.containers.docker_images import build
from coding_gym.sandbox.containers.docker_transport import DockerTransport
from coding_gym.sandbox.protocol import Probe, Promise, Snapshot
from coding_gym.sandbox.spec import SandboxSpec

DEFAULT_IMAGE = "python:3.11"
_NAME = "docker"
# As root, what commands run as; the same as in the `namespace` backend, which shares templates.
_UNPRIVILEGED = 64998
_NEVER = (
    Promise.DISK_LIMIT,
    Promise.INODE_LIMIT,
    Promise.PERSISTENT_SHELL,
    Promise.OWN_PYTHON,
)
_UNLESS = {
    "MemoryLimit": Promise.MEMORY_LIMIT,
    "PidsLimit": Promise.PROCESS_LIMIT,
    "CpuCfsQuota": Promise.CPU_LIMIT,
}


class DockerBackend:
    """Sandboxes in containers, each behind one persistent stream.

    Covered: files, processes, the network, capabilities, system calls (the daemon's filter),
    memory, processors, numbers of processes. Not covered: the size of what is written to the
    workspace and to home (`Probe.missing`), and holes in the kernel or the daemon.

    Commands run as the image's user. Where that is root, they are an ordinary user, except in an
    image that a spec names under a daemon that maps root to another user of the host.

    Args:
        image: What ``/`` is where a spec names none; needs bash, and for more than the simplest
            commands the usual small programs.
        host: The daemon, such as ``unix:///run/docker.sock``; "" for what ``DOCKER_HOST`` says.
    """

    def __init__(self, image: str = DEFAULT_IMAGE, *, host: str = "") -> None:
        self._image = image
        self._host = host

    @property
    def name(self) -> str:
        """``"docker"``."""
        return _NAME

    @property
    def prepares(self) -> bool:
        """False: each command starts when it is run."""
        return False

    def owner(self) -> tuple[int, int]:
        """Returns the uid and gid of commands, where the image has no user of its own."""
        if os.geteuid() == 0:
            return _UNPRIVILEGED, _UNPRIVILEGED
        return os.geteuid(), os.getegid()

    def probe(self) -> Probe:
        """Opens a throw-away sandbox, runs a command in it and closes it; never raises."""
        if (failed := failed_probe(self.open)) is not None:
            return failed
        engine = connect(self._host)
        detail = (
            f"ran a command in a container of {self._image} (Docker {engine.info['ServerVersion']},"
            f" {engine.info['Driver']})"
        )
        return Probe(available=True, detail=detail, missing=self._missing(engine))

    def open(self, spec: SandboxSpec, *, snapshot: Snapshot | None = None) -> ContainerSandbox:
        """Opens a sandbox.

        Raises:
            InvalidArgumentError: A layer or mount that does not exist, an image that is broken, a
                persistent shell; a snapshot of another backend or spec.
            SandboxUnavailableError: No daemon answers, or it has no such image; says the remedy.
            SandboxError: The daemon refused something, or a layer cannot be read.
        """
        check_spec(spec, _NAME, snapshot)
        engine = connect(self._host)
        keeps_root = bool(spec.image) and engine.maps_root()
        user = None if keeps_root else self.owner()
        image = build(engine, spec.image or self._image, spec, user=user)
        start = partial(DockerTransport, engine, image, spec)
        return ContainerSandbox(_NAME, spec, start, snapshot)

    def _missing(self, engine: Engine) -> tuple[Promise, ...]:
        info = engine.info
        missing = [*_NEVER, *(promise for key, promise in _UNLESS.items() if not info.get(key))]
        if not engine.filters_system_calls():
            missing.append(Promise.SYSTEM_CALLS)
        # Where an overlay is one, and does not redirect folders.
        if "overlay" in info.get("Driver", ""):
            missing.append(Promise.FOLDER_RENAMES)
        return tuple(missing)
