"""The door to docker-py, which is imported here and nowhere else."""

import importlib
import io
import os
import secrets
import socket
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from coding_gym.errors import MissingDependencyError, SandboxError, SandboxUnavailableError
from coding_gym.sandbox.containers.locks import SharedLock

_TIMEOUT_S = 60
_CONFLICT = 409
_START = (
    "start it with `sudo systemctl start docker`, or install it (Debian: `apt-get install "
    "docker.io`)"
)
_DEFAULT_URL = "unix:///var/run/docker.sock"
_LOOK = "see to DOCKER_HOST, which says where the daemon is, or unset it"
_JOIN = "run `sudo usermod -aG docker $USER` and log in again"

_lock = SharedLock()
_engines: dict[tuple[int, str], "Engine"] = {}


class Engine:
    """A connection to a daemon.

    Args:
        host: Such as ``unix:///run/docker.sock``; "" for what ``DOCKER_HOST`` and its kin say.

    Raises:
        SandboxUnavailableError: No daemon answers; says why, and what would help.
    """

    def __init__(self, host: str = "") -> None:
        docker = _import_docker()
        self._errors = docker.errors
        settings = docker.utils.kwargs_from_env() | ({"base_url": host} if host else {})
        self.url: str = settings.setdefault("base_url", _DEFAULT_URL)
        _try(self.url)
        try:
            self.api = docker.APIClient(version="auto", timeout=_TIMEOUT_S, **settings)
        except docker.errors.DockerException as error:
            problem = f"no Docker daemon answers at {self.url}: {error}"
            raise SandboxUnavailableError(problem, _remedy()) from error
        self._shares_files: bool | None = None
        self.info: dict[str, Any] = self.api.info()

    def shares_files(self, image: str) -> bool:
        """Whether a path of this process names the same file for the daemon.

        Not so where the daemon is another machine's, or this process in a container. Tried once,
        with a file in a container of the image that is never started.
        """
        if self._shares_files is None:
            with tempfile.TemporaryDirectory() as folder:
                token = secrets.token_bytes(16)
                Path(folder, "token").write_bytes(token)
                self._shares_files = self._shown(image, folder) == token
        return self._shares_files

    def _shown(self, image: str, folder: str) -> bytes:
        bind = {"Type": "bind", "Source": folder, "Target": "/coding_gym", "ReadOnly": True}
        host_config = self.api.create_host_config(mounts=[bind], network_mode="none")
        try:
            container = self.api.create_container(image, ["true"], host_config=host_config)["Id"]
        except self._errors.APIError as error:
            if "bind source path does not exist" not in str(error.explanation):
                raise
            return b""
        try:
            return self.read_file(container, "/coding_gym/token")
        finally:
            self.remove(container)

    @contextmanager
    def errors_as(self, what: str) -> Iterator[None]:
        """Turns whatever the daemon refuses into a SandboxError that says what was tried."""
        requests = importlib.import_module("requests")
        try:
            yield
        except (self._errors.DockerException, requests.RequestException) as error:
            reason = getattr(error, "explanation", "") or str(error)
            raise SandboxError(f"cannot {what}: {reason}") from error

    def find_image(self, name: str) -> dict[str, Any] | None:
        """Returns what the daemon knows of an image; None where it has none of that name."""
        try:
            found: dict[str, Any] = self.api.inspect_image(name)
        except self._errors.ImageNotFound:
            return None
        return found

    def read_file(self, container: str, path: str) -> bytes:
        """Returns a file of a container; nothing where there is no such regular file."""
        return self.read_file_or_link(container, path)[0]

    def read_file_or_link(self, container: str, path: str) -> tuple[bytes, str]:
        """Returns a regular file's bytes and nothing, or nothing and where a link leads."""
        try:
            stream, _ = self.api.get_archive(container, path)
        except self._errors.NotFound:
            return b"", ""
        with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as tar:
            entry = tar.next()
            if entry is None or not entry.isreg():
                return b"", entry.linkname if entry is not None and entry.issym() else ""
            file = tar.extractfile(entry)
            return (file.read() if file is not None else b""), ""

    def remove_image(self, name: str) -> bool:
        """Removes an image; False where it is in use."""
        try:
            self.api.remove_image(name)
        except self._errors.APIError as error:
            if error.status_code != _CONFLICT:
                raise
            return False
        return True

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

    def interrupt(self, container: str) -> None:
        """Sends SIGUSR1 to a container's first process."""
        with self.errors_as("signal a container"):
            self.api.kill(container, "SIGUSR1")

    def remove(self, container: str) -> None:
        """Removes a container, running or not; fine where there is none, or it is going."""
        try:
            self.api.remove_container(container, force=True)
        except self._errors.NotFound:
            return
        except self._errors.APIError as error:
            if error.status_code != _CONFLICT:  # its removal is in progress
                raise


def connect(host: str) -> Engine:
    """Returns this process's connection to a daemon; raises as `Engine` does."""
    with _lock:
        key = (os.getpid(), host)
        if key not in _engines:
            _engines[key] = Engine(host)
        return _engines[key]


def _import_docker() -> Any:
    try:
        return importlib.import_module("docker")
    except ImportError as error:
        problem = "docker-py is not installed; run: pip install 'docker>=7'"
        raise MissingDependencyError(problem) from error


def _remedy() -> str:
    return _LOOK if os.environ.get("DOCKER_HOST") else _START


def _try(url: str) -> None:
    """Raises SandboxUnavailableError, with the remedy, unless something listens on this machine."""
    kind, _, path = url.partition("://")
    if "unix" not in kind:
        return
    with socket.socket(socket.AF_UNIX) as stream:
        try:
            stream.connect(f"/{path.lstrip('/')}")
        except PermissionError as error:
            problem = f"the Docker daemon's socket {path} may not be opened"
            raise SandboxUnavailableError(problem, _JOIN) from error
        except OSError as error:
            problem = f"no Docker daemon is running: {path}: {error.strerror}"
            raise SandboxUnavailableError(problem, _remedy()) from error
