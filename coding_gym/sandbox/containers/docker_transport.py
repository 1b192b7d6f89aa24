"""One container of a Docker daemon: how it is made, and the stream to its first process."""

import contextlib
import math
import socket
import tarfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from coding_gym.errors import SandboxUnavailableError
from coding_gym.sandbox.containers.container_sandbox import container_env
from coding_gym.sandbox.containers.docker_engine import Engine
from coding_gym.sandbox.containers.docker_images import FIRST_BASH, BuiltImage
from coding_gym.sandbox.spec import Mount, SandboxSpec

_LOOP = Path(__file__).with_name("loop.sh").read_text(encoding="utf-8")
_HOSTNAME = "sandbox"
_READ_BYTES = 1 << 18
_PODMAN_PROCESSES = 1 << 15  # of one user; `pids_limit` bounds those of one container
# Type, three zeros, size: https://docs.docker.com/reference/api/engine/, "Stream format".
_HEADER_BYTES = 8


class DockerTransport:
    """A container that has started, which the daemon removes when it ends.

    Args:
        engine: The daemon.
        image: What the container is made from.
        spec: What the container is to be.

    Raises:
        SandboxUnavailableError: It needs a writable mount, and the daemon cannot bind files.
        SandboxError: The daemon refused a step.
    """

    def __init__(self, engine: Engine, image: BuiltImage, spec: SandboxSpec) -> None:
        self._engine = engine
        self._frames = Demultiplexer()
        with engine.errors_as("start a container"):
            can_bind = not spec.mounts or engine.shares_files(image.name)
            if not can_bind and any(mount.writable for mount in spec.mounts):
                raise SandboxUnavailableError(
                    "a writable mount needs a Docker daemon that shares this process's files",
                    "use the daemon of this machine, from outside of any container",
                )
            options = create_options(engine, image, spec, spec.mounts if can_bind else ())
            self._id = engine.create(image.name, **options)
            with contextlib.ExitStack() as undo:
                undo.callback(engine.remove, self._id)
                if not can_bind:
                    _copy_mounts(engine, self._id, spec)
                self._stream = undo.enter_context(engine.attach(self._id))
                engine.api.start(self._id)
                undo.pop_all()

    def send(self, data: bytes, timeout_s: float) -> None:
        """Writes to standard input; see `loop_protocol.Transport`."""
        self._stream.settimeout(timeout_s)
        self._stream.sendall(data)

    def receive(self, timeout_s: float) -> bytes:
        """Returns what came from standard output; see `loop_protocol.Transport`."""
        self._stream.settimeout(timeout_s)
        while data := self._stream.recv(_READ_BYTES):
            if payload := b"".join(self._frames.feed(data)):
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

    def end_input(self) -> None:
        """Ends standard input."""
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_WR)

    def forget(self) -> None:
        """Closes the stream."""
        self._stream.close()

    def clean_up(self, *, has_ended: bool) -> None:
        """Closes the stream; the daemon removes the container where it has ended."""
        self.forget()
        if not has_ended:
            with self._engine.errors_as("remove a container"):
                self._engine.remove(self._id)


class Demultiplexer:
    """Takes the daemon's framing off an attached stream."""

    def __init__(self) -> None:
        self._header = b""
        self._left = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yields the payloads in what came next, whole or in parts."""
        while data:
            if self._left:
                part, data = data[: self._left], data[self._left :]
                self._left -= len(part)
                yield part
                continue
            missing = _HEADER_BYTES - len(self._header)
            self._header, data = self._header + data[:missing], data[missing:]
            if len(self._header) == _HEADER_BYTES:
                self._left = int.from_bytes(self._header[4:], "big")
                self._header = b""


def create_options(
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
        "mounts": [_bind(mount) for mount in binds],
    }
    if limits.num_cpus is not None:
        host_config["nano_cpus"] = math.ceil(limits.num_cpus * 1e9)
    return {
        "entrypoint": [FIRST_BASH, "-c", _LOOP, "bash"],
        "command": [],
        "environment": container_env(spec, image.env, image.user.name),
        "user": f"{image.user.uid}:{image.user.gid}",
        "hostname": _HOSTNAME,
        "working_dir": "/",
        "stdin_open": True,
        "host_config": engine.api.create_host_config(**host_config),
    }


def _bind(mount: Mount) -> dict[str, Any]:
    return {
        "Type": "bind",
        "Source": str(mount.source.resolve()),
        "Target": mount.target,
        "ReadOnly": not mount.writable,
    }


def _copy_mounts(engine: Engine, container: str, spec: SandboxSpec) -> None:
    with engine.put_files(container) as tar:
        for mount in spec.mounts:
            tar.add(mount.source.resolve(), mount.target.strip("/"), filter=_owned_by_root)


def _owned_by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    # Commands are another user, and read what a mount would have let them read.
    entry.mode |= 0o555 if entry.isdir() else 0o444
    return entry
