"""The connection to a Docker daemon; docker-py is imported here and nowhere else."""

import io
import os
import secrets
import socket
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker

from coding_gym.errors import SandboxError, SandboxUnavailableError
from coding_gym.sandbox.ownership import identity, is_gone

OWNER_LABEL = "coding_gym.owner"
_FORGOTTEN_S = 3600.0
_TIMEOUT_S = 60
_IN_MEMORY_BYTES = 32 << 20
_CONFLICT = 409
_START = (
    "start it with `sudo systemctl start docker`, or install it (Debian: `apt-get install "
    "docker.io`)"
)
_DEFAULT_URL = "unix:///var/run/docker.sock"
_LOOK = "check DOCKER_HOST, which says where the daemon is, or unset it"
_JOIN = "run `sudo usermod -aG docker $USER` and log in again"

_engines: dict[tuple[int, str], "Engine"] = {}


class Engine:
    """A connection to a daemon.

    Args:
        host: Such as ``unix:///run/docker.sock``; "" for what ``DOCKER_HOST`` and its kin say.

    Attributes:
        url: The daemon's address.
        api: docker-py's low-level client.
        info: The daemon's own description.

    Raises:
        SandboxUnavailableError: No daemon answers; says why, with the remedy.
    """

    def __init__(self, host: str = "") -> None:
        settings = docker.utils.kwargs_from_env() | ({"base_url": host} if host else {})
        self.url: str = settings.setdefault("base_url", _DEFAULT_URL)
        try:
            _connect_once(self.url)
            self.api = docker.APIClient(version="auto", timeout=_TIMEOUT_S, **settings)
        except (docker.errors.DockerException, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            remedy = _LOOK if os.environ.get("DOCKER_HOST") else _START
            raise SandboxUnavailableError(
                f"no Docker daemon answers at {self.url}: {reason}",
                _JOIN if isinstance(error, PermissionError) else remedy,
            ) from error
        self._shares_files: bool | None = None
        with self.errors_as("ask the daemon about itself"):
            self.info: dict[str, Any] = self.api.info()

    def is_podman(self) -> bool:
        """Whether it is Podman's Docker-compatible service."""
        return "BuildahVersion" in self.info

    def maps_root(self) -> bool:
        """Whether root of a container is another user of the host."""
        return not {"name=userns", "name=rootless"}.isdisjoint(self._security_options())

    def filters_system_calls(self) -> bool:
        """Whether the daemon's seccomp filter refuses what it should.

        Podman's lets every process make user namespaces.
        """
        options = [option.split(",") for option in self._security_options()]
        filters = ["profile=unconfined" not in each for each in options if "name=seccomp" in each]
        return any(filters) and not self.is_podman()

    def _security_options(self) -> list[str]:
        return self.info.get("SecurityOptions") or []

    def shares_files(self, image: str) -> bool:
        """Whether a path of this process names the same file for the daemon.

        Not so where the daemon is another machine's, or this process in a container. Tried once,
        with a folder bound to a container of the image that is never started.
        """
        if self._shares_files is None:
            with tempfile.TemporaryDirectory() as folder:
                token = secrets.token_bytes(16)
                Path(folder, "token").write_bytes(token)
                mount = {"Type": "bind", "Source": folder, "Target": "/coding_gym"}
                host_config = self.api.create_host_config(mounts=[mount], network_mode="none")
                try:
                    container = self.create(image, command=["true"], host_config=host_config)
                    self._shares_files = self.read_file(container, "/coding_gym/token") == token
                    self.remove(container)
                except docker.errors.APIError as error:
                    if "bind source path does not exist" not in str(error.explanation):
                        raise
                    self._shares_files = False
        return self._shares_files

    @contextmanager
    def errors_as(self, what: str) -> Iterator[None]:
        """Turns errors of the daemon, the connection and files into "cannot do `what`"."""
        try:
            yield
        except (docker.errors.DockerException, OSError) as error:
            reason = getattr(error, "explanation", "") or str(error)
            raise SandboxError(f"cannot {what}: {reason}") from error

    def find_image(self, name: str) -> dict[str, Any] | None:
        """Returns the description of an image; None where it has none of that name."""
        try:
            found: dict[str, Any] = self.api.inspect_image(name)
        except docker.errors.ImageNotFound:
            return None
        return found

    def create(self, image: str, **options: Any) -> str:
        """Returns the id of a new container, which says whose it is; it has not started."""
        labels = {OWNER_LABEL: identity()}
        container: str = self.api.create_container(image, labels=labels, **options)["Id"]
        return container

    def read_file(self, container: str, path: str) -> bytes:
        """Returns a file of a container, also through links; nothing where there is none."""
        archive = b""
        for _ in range(2):  # a link, and the file at its end
            try:
                stream, facts = self.api.get_archive(container, path)
            except docker.errors.NotFound:
                return b""
            archive = b"".join(stream)
            if facts["linkTarget"] in {"", path}:
                break
            path = facts["linkTarget"]
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            entry = tar.next()
            file = tar.extractfile(entry) if entry is not None and entry.isreg() else None
            return file.read() if file is not None else b""

    @contextmanager
    def put_files(self, container: str) -> Iterator[tarfile.TarFile]:
        """Yields a tar, whose entries are put into a container at the end, below ``/``."""
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as file:
            with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
                yield tar
            # Podman fails where it finds the end of the archive and gets padding behind it.
            file.truncate(tar.offset)
            file.seek(0)
            self.api.put_archive(container, "/", file)

    def attach(self, container: str) -> socket.socket:
        """Returns a stream to and from a container's first process."""
        params = {"stdin": 1, "stdout": 1, "stream": 1}
        wrapped = self.api.attach_socket(container, params=params)
        stream: socket.socket = getattr(wrapped, "_sock", wrapped)
        if type(stream) is not socket.socket:  # one with encryption
            return stream
        # A socket of our own: the client's would be open for as long as its answer is remembered.
        own = stream.dup()
        wrapped.close()
        stream.close()
        return own

    def remove(self, container: str) -> None:
        """Removes a container, running or not; fine where there is none, or it is going."""
        try:
            self.api.remove_container(container, force=True)
        except docker.errors.NotFound:
            return
        except docker.errors.APIError as error:
            if error.status_code != _CONFLICT:  # its removal is in progress
                raise

    def sweep(self) -> None:
        """Removes the containers of dead owners.

        A container ends with the stream of its owner, so a killed owner leaves at most a container
        that it had not started yet, or one whose stream a fork of it holds open. Only owners of
        this machine, since it was booted, and of this container can be known to be dead. A
        container that was not started within an hour is removed in any case.
        """
        with self.errors_as("look for containers of dead owners"):
            for container in self.api.containers(all=True, filters={"label": OWNER_LABEL}):
                age_s = time.time() - container["Created"]
                never_started = container["State"] == "created" and age_s > _FORGOTTEN_S
                owner = container["Labels"][OWNER_LABEL]  # that of a built image has no value
                if owner and (never_started or is_gone(owner)):
                    self.remove(container["Id"])


def connect(host: str) -> Engine:
    """Returns this process's connection to a daemon; the first call sweeps.

    Raises:
        SandboxUnavailableError: As `Engine` does.
        SandboxError: The daemon refuses to list or remove containers.
    """
    key = (os.getpid(), host)
    if key not in _engines:
        engine = Engine(host)
        engine.sweep()
        _engines[key] = engine
    return _engines[key]


def _connect_once(url: str) -> None:
    """Raises OSError where nothing listens; docker-py would leave a socket open then."""
    kind, _, path = url.partition("://")
    if "unix" in kind:
        with socket.socket(socket.AF_UNIX) as stream:
            stream.connect(f"/{path.lstrip('/')}")
