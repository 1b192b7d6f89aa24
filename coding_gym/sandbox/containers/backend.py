"""The ``docker`` backend."""

import os
from typing import Any, Literal

from coding_gym.errors import (
    InvalidArgumentError,
    MissingDependencyError,
    SandboxError,
    SandboxUnavailableError,
)
from coding_gym.sandbox.containers import owners
from coding_gym.sandbox.containers.base_images import find_base
from coding_gym.sandbox.containers.build import build
from coding_gym.sandbox.containers.container import Container
from coding_gym.sandbox.containers.engine import connect
from coding_gym.sandbox.containers.options import check_spec
from coding_gym.sandbox.containers.pool import pool
from coding_gym.sandbox.containers.sandbox import NAME, DockerSandbox
from coding_gym.sandbox.promises import Promise
from coding_gym.sandbox.protocol import Probe, Snapshot
from coding_gym.sandbox.snapshots import check_snapshot
from coding_gym.sandbox.spec import SandboxSpec

DEFAULT_IMAGE = "python:3.11"
DEFAULT_NUM_WARM = 2
# As root, what commands run as; the same as in the `namespace` backend, which shares templates.
_UNPRIVILEGED = 64998
_UNKNOWN_REMEDY = "run it again; if it keeps failing, report it with this message"
_ROOT = ("named", "always", "never")
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
    """Sandboxes in containers, each behind one persistent channel.

    Covered: files, processes, the network, capabilities, system calls (the daemon's filter),
    memory, processors, numbers of processes. Not covered: the size of what is written to the
    workspace and to home (`Probe.missing`), and holes in the kernel or the daemon.

    Args:
        image: What ``/`` is where a spec names none; needs bash, and for more than the simplest
            commands the usual small programs.
        host: The daemon, such as ``unix:///run/docker.sock``; "" for what ``DOCKER_HOST`` says.
        root: Where commands run as root if that is the image's user. ``"named"``: in images that a
            spec names, where the daemon maps root to another user of the host (rootless, or
            ``userns-remap``). ``"always"``: in every image, also where the daemon maps no users and
            commands are the host's root, though one without capabilities. ``"never"``: nowhere.
            Elsewhere they run as an ordinary user.
        num_warm: How many containers may be started ahead of time.
    """

    def __init__(
        self,
        image: str = DEFAULT_IMAGE,
        *,
        host: str = "",
        root: Literal["named", "always", "never"] = "named",
        num_warm: int = DEFAULT_NUM_WARM,
    ) -> None:
        if num_warm < 0:
            raise InvalidArgumentError(f"num_warm must be at least 0, got {num_warm}")
        if root not in _ROOT:
            raise InvalidArgumentError(f"root must be one of {_ROOT}, got {root!r}")
        self._image = image
        self._host = host
        self._root = root
        self._num_warm = num_warm

    @property
    def name(self) -> str:
        """``"docker"``."""
        return NAME

    @property
    def prepares(self) -> bool:
        """False: each command starts when it is run."""
        return False

    def owner(self) -> tuple[int, int]:
        """Returns the uid and gid of commands, where the image has no user of its own."""
        if os.geteuid() != 0 or self._root == "always":
            return os.geteuid(), os.getegid()
        return _UNPRIVILEGED, _UNPRIVILEGED

    def probe(self) -> Probe:
        """Opens a throw-away sandbox, runs a command in it and closes it; never raises."""
        try:
            engine = connect(self._host)
            with self.open(SandboxSpec()) as sandbox:
                result = sandbox.run("echo works", timeout_s=10)
            if result.output != "works\n":
                raise SandboxError(f"a first command printed {result.output!r}")
        except SandboxUnavailableError as error:
            way_out = error.remedy or _UNKNOWN_REMEDY
            return Probe(available=False, detail=error.problem, remedy=way_out)
        except MissingDependencyError as error:
            return Probe(available=False, detail=str(error), remedy="pip install 'docker>=7'")
        except SandboxError as error:
            return Probe(available=False, detail=str(error), remedy=_UNKNOWN_REMEDY)
        detail = (
            f"ran a command in a container of {self._image} (Docker {engine.info['ServerVersion']},"
            f" {engine.info['Driver']})"
        )
        return Probe(available=True, detail=detail, missing=self._missing(engine.info))

    def open(self, spec: SandboxSpec, *, snapshot: Snapshot | None = None) -> DockerSandbox:
        """Opens a sandbox.

        Raises:
            InvalidArgumentError: A layer or mount that does not exist, an image that is broken, a
                persistent shell; a snapshot of another backend or spec.
            SandboxUnavailableError: No daemon answers, or it has no such image; says the remedy.
            SandboxError: The daemon refused something, or a layer cannot be read.
        """
        check_spec(spec)
        if snapshot is not None:
            check_snapshot(snapshot, backend=NAME, spec=spec)
        engine = connect(self._host)
        owners.sweep(engine)
        base = find_base(engine, spec.image or self._image)
        may_keep_root = bool(spec.image) and _maps_root(engine.info)
        keeps_root = self._root == "always" or (self._root == "named" and may_keep_root)
        image = build(engine, base, spec, user=None if keeps_root else self.owner())

        def start() -> Container:
            return Container(engine, image, spec)

        warm = pool((engine.url, self._num_warm), self._num_warm)
        return DockerSandbox(spec, lambda: warm.open((image.name, spec), start), snapshot)

    def _missing(self, info: dict[str, Any]) -> tuple[Promise, ...]:
        missing = [*_NEVER, *(promise for key, promise in _UNLESS.items() if not info.get(key))]
        if not _filters_calls(info):
            missing.append(Promise.SYSTEM_CALLS)
        if self._root == "always" and not _maps_root(info):
            missing.append(Promise.NO_PRIVILEGES)
        # Where an overlay is one, and does not redirect folders.
        if "overlay" in info.get("Driver", ""):
            missing.append(Promise.FOLDER_RENAMES)
        return tuple(missing)


def _maps_root(info: dict[str, Any]) -> bool:
    """Whether root of a container is another user of the host."""
    return not {"name=userns", "name=rootless"}.isdisjoint(info.get("SecurityOptions") or ())


def _filters_calls(info: dict[str, Any]) -> bool:
    """Whether the daemon gives containers a seccomp filter that refuses anything."""
    options = [option.split(",") for option in info.get("SecurityOptions") or ()]
    return any("name=seccomp" in parts and "profile=unconfined" not in parts for parts in options)
