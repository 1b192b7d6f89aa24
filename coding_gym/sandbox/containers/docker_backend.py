"""The ``docker`` backend: containers of a Docker daemon, each behind one persistent stream."""

import contextlib
import os
import tarfile
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from coding_gym.errors import SandboxUnavailableError
from coding_gym.sandbox.backend_checks import failed_probe
from coding_gym.sandbox.containers.container_sandbox import ContainerSandbox, check_spec, spec_env
from coding_gym.sandbox.containers.docker_engine import Engine, connect
from coding_gym.sandbox.containers.docker_images import FIRST_BASH, BuiltImage, build
from coding_gym.sandbox.protocol import Probe, Promise, Snapshot
from coding_gym.sandbox.spec import Mount, SandboxSpec

DEFAULT_IMAGE = "python:3.11"
# The user of commands of root; the same as in the `namespace` backend, which shares templates.
_UNPRIVILEGED = 64998
_NEVER = (Promise.DISK_LIMIT, Promise.INODE_LIMIT, Promise.OWN_PYTHON)
_UNLESS = {
    "MemoryLimit": Promise.MEMORY_LIMIT,
    "PidsLimit": Promise.PROCESS_LIMIT,
}
_LOOP = Path(__file__).with_name("loop.sh").read_text(encoding="utf-8")
_READ_BYTES = 1 << 18
_PODMAN_PROCESSES = 1 << 15  # of one user; `pids_limit` bounds those of one container
# Type, three zeros, size: https://docs.docker.com/reference/api/engine/, "Stream format".
_HEADER_BYTES = 8


class DockerBackend:
    """Sandboxes in containers, each behind one persistent stream.

    Covered: files, processes, the network, capabilities, system calls (the daemon's filter),
    memory, processors, numbers of processes. Not covered: the size of what is written to the
    workspace and to home (`Probe.missing`), and holes in the kernel or the daemon.

    Commands run as the image's user. Where that is root, they are an ordinary user, except in an
    image that a spec names under a daemon that maps root to another user of the host.

    Args:
        image: The root where a spec names none; needs bash, and for more than the simplest
            commands the usual small programs.
        host: The daemon, such as ``unix:///run/docker.sock``; "" for what ``DOCKER_HOST`` says.
    """

    name = "docker"

    def __init__(self, image: str = DEFAULT_IMAGE, *, host: str = "") -> None:
        self._image = image
        self._host = host

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
        info = engine.info
        missing = [*_NEVER, *(promise for key, promise in _UNLESS.items() if not info.get(key))]
        if not engine.filters_system_calls():
            missing.append(Promise.SYSTEM_CALLS)
        detail = (
            f"ran a command in a container of {self._image} (Docker {info['ServerVersion']},"
            f" {info['Driver']})"
        )
        return Probe(available=True, detail=detail, missing=tuple(missing))

    def open(self, spec: SandboxSpec, *, snapshot: Snapshot | None = None) -> ContainerSandbox:
        """Opens a sandbox; see `coding_gym.sandbox.protocol.SandboxBackend.open`."""
        check_spec(spec, self.name, snapshot)
        engine = connect(self._host)
        keeps_root = bool(spec.image) and engine.maps_root()
        user = None if keeps_root else self.owner()
        image = build(engine, spec.image or self._image, spec, user=user)
        start = partial(DockerTransport, engine, image, spec)
        return ContainerSandbox(self.name, spec, start, snapshot)


class DockerTransport:
    """A container that has started, which the daemon removes when it ends.

    Args:
        engine: The daemon.
        image: The container's image.
        spec: The container's spec.

    Raises:
        SandboxUnavailableError: It needs a writable mount, and the daemon cannot bind files.
        SandboxError: The daemon refused a step.
    """

    def __init__(self, engine: Engine, image: BuiltImage, spec: SandboxSpec) -> None:
        self._engine = engine
        self._frames = bytearray()
        with engine.errors_as("start a container"):
            can_bind = not spec.mounts or engine.shares_files(image.name)
            if not can_bind and any(mount.writable for mount in spec.mounts):
                raise SandboxUnavailableError(
                    "a writable mount needs a Docker daemon that shares this process's files",
                    "use the daemon of this machine, from outside of any container",
                )
            options = _create_options(engine, image, spec, spec.mounts if can_bind else ())
            self._id = engine.create(image.name, **options)
            with contextlib.ExitStack() as undo:
                undo.callback(engine.remove, self._id)
                if not can_bind:
                    with engine.put_files(self._id) as tar:
                        for mount in spec.mounts:
                            target = mount.target.strip("/")
                            tar.add(mount.source.resolve(), target, filter=_readable_by_all)
                self.input = undo.enter_context(engine.attach(self._id))
                engine.api.start(self._id)
                undo.pop_all()

    def receive(self, timeout_s: float) -> bytes:
        """Returns bytes of standard output; see `loop_protocol.Transport`."""
        self.input.settimeout(timeout_s)
        while data := self.input.recv(_READ_BYTES):
            self._frames += data
            if payload := b"".join(take_payloads(self._frames)):
                return payload
        return b""

    def interrupt(self) -> None:
        """Sends SIGUSR1 to the first process."""
        with self._engine.errors_as("signal a container"):
            self._engine.api.kill(self._id, "SIGUSR1")

    def started_at(self) -> float:
        """Returns when the container started, by the daemon's clock."""
        with self._engine.errors_as("look at a container"):
            facts = self._engine.api.inspect_container(self._id)
        return datetime.fromisoformat(facts["State"]["StartedAt"]).timestamp()

    def clean_up(self, *, has_ended: bool) -> None:
        """Closes the stream; the daemon removes the container where it has ended."""
        self.input.close()
        if not has_ended:
            with self._engine.errors_as("remove a container"):
                self._engine.remove(self._id)


def take_payloads(stream: bytearray) -> Iterator[bytes]:
    """Takes the whole frames off the front of an attached stream, and yields their payloads."""
    while (end := _HEADER_BYTES + int.from_bytes(stream[4:_HEADER_BYTES], "big")) <= len(stream):
        yield bytes(stream[_HEADER_BYTES:end])
        del stream[:end]


def _create_options(
    engine: Engine, image: BuiltImage, spec: SandboxSpec, binds: tuple[Mount, ...]
) -> dict[str, Any]:
    """Returns the keyword arguments of docker-py's ``create_container``, but for the image."""
    limits = spec.limits
    ulimits = {"core": 0, "fsize": limits.file_bytes, "nofile": limits.num_open_files}
    if engine.is_podman():
        # By itself it asks for 2**20, which fails where its root may not raise limits.
        ulimits["nproc"] = _PODMAN_PROCESSES
    host_config: dict[str, Any] = {
        "network_mode": "host" if spec.network else "none",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        # One more for the first process.
        "pids_limit": limits.num_processes + 1,
        "mem_limit": limits.memory_bytes,
        "memswap_limit": limits.memory_bytes,
        "shm_size": limits.disk_bytes,
        "tmpfs": {"/tmp": f"rw,exec,nosuid,nodev,mode=1777,size={limits.disk_bytes}"},  # noqa: S108 - inside
        "ulimits": [{"Name": name, "Soft": n, "Hard": n} for name, n in ulimits.items()],
        # All output goes through the stream; a log would fill the host's disk.
        "log_config": {"Type": "none"},
        "auto_remove": True,
        "mounts": [
            {"Type": "bind", "Source": str(m.source.resolve()), "Target": m.target}
            | {"ReadOnly": not m.writable}
            for m in binds
        ],
    }
    return {
        "entrypoint": [FIRST_BASH, "-c", _LOOP, "bash"],
        "command": [],
        "environment": spec_env(spec, image.env, image.user.name),
        "user": f"{image.user.uid}:{image.user.gid}",
        "hostname": "sandbox",
        "working_dir": "/",
        "stdin_open": True,
        "healthcheck": {"test": ["NONE"]},  # an image's own would run beside the commands
        "host_config": engine.api.create_host_config(**host_config),
    }


def _readable_by_all(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Makes an entry of a copied mount root's, and readable by the user of commands."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode |= 0o555 if entry.isdir() else 0o444
    return entry
