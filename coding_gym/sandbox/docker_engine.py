"""Connects to a Docker daemon or to Podman's compatible service, and inspects its images."""

import contextlib
import io
import os
import socket
import tarfile
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import docker

from coding_gym.errors import SandboxError, SandboxUnavailableError
from coding_gym.process_cache import ProcessCache
from coding_gym.sandbox.images.layout import ImageUser, find_user
from coding_gym.sandbox.inside.fixed import USER
from coding_gym.sandbox.protocol import Promise

LABELS = {"coding_gym": ""}  # for `docker container prune --filter label=coding_gym`
# The daemon's settings determine the refused system calls; Podman allows user namespaces.
_MISSING = (Promise.DISK_LIMIT, Promise.INODE_LIMIT, Promise.OWN_PYTHON, Promise.SYSTEM_CALLS)
_BY_SETTING = {"MemoryLimit": Promise.MEMORY_LIMIT, "PidsLimit": Promise.PROCESS_LIMIT}
_BASHES = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")
_START = (
    "start it with `sudo systemctl start docker`, or install it (Debian: `apt-get install "
    "docker.io`); for a daemon elsewhere set DOCKER_HOST, and for certificates DOCKER_CERT_PATH"
)
_JOIN = "run `sudo usermod -aG docker $USER` and log in again"
_API_TIMEOUT_S = 60

_engines: ProcessCache["Engine"] = ProcessCache()


class Engine:
    """A connection to a daemon.

    Args:
        host: The address, such as ``unix:///run/docker.sock``; "" to read the DOCKER_* variables.

    Attributes:
        url: The daemon's address.
        api: docker-py's low-level client.
        info: The daemon's description of itself.
        images: The images inspected so far, by id.

    Raises:
        SandboxUnavailableError: No daemon answers; the message has the reason and the remedy.
    """

    def __init__(self, host: str = "") -> None:
        self.url = host or os.environ.get("DOCKER_HOST", "")
        try:
            settings = docker.utils.kwargs_from_env() | ({"base_url": host} if host else {})
            self.url = settings.setdefault("base_url", "unix:///var/run/docker.sock")
            _connect_once(self.url)
            self.api = docker.APIClient(version="auto", timeout=_API_TIMEOUT_S, **settings)
        except (docker.errors.DockerException, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SandboxUnavailableError(
                f"no Docker daemon answers at {self.url}: {reason}",
                _JOIN if isinstance(error, PermissionError) else _START,
            ) from error
        self.images: dict[str, DaemonImage] = {}
        with self.errors_as("query the daemon"):
            self.info: dict[str, Any] = self.api.info()

    def missing(self) -> tuple[Promise, ...]:
        """Returns the promises that the daemon's containers do not keep."""
        return *_MISSING, *(name for key, name in _BY_SETTING.items() if not self.info.get(key))

    @contextlib.contextmanager
    def errors_as(self, action: str) -> Iterator[None]:
        """Converts errors of the daemon, the connection and files to SandboxError."""
        try:
            yield
        except (docker.errors.DockerException, OSError) as error:
            reason = getattr(error, "explanation", "") or str(error)
            raise SandboxError(f"cannot {action}: {reason}") from error

    def describe_image(self, name: str) -> dict[str, Any]:
        """Returns the description of an image; raises SandboxUnavailableError if it is missing."""
        try:
            description: dict[str, Any] = self.api.inspect_image(name)
        except docker.errors.ImageNotFound as error:
            raise SandboxUnavailableError(
                f"the Docker daemon has no image {name!r}",
                f"run `skopeo copy oci:FOLDER docker-archive:FILE:{name} && docker load -i FILE` "
                f"for an OCI layout, use an image of `docker images`, or run: docker pull {name}",
            ) from error
        return description

    def read_file(self, container: str, path: str) -> bytes:
        """Returns the content of a regular file of a container; empty if there is no such file."""
        try:
            stream, _ = self.api.get_archive(container, path)
        except docker.errors.NotFound:
            return b""
        with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as tar:
            entry = tar.next()
            file = tar.extractfile(entry) if entry is not None and entry.isreg() else None
            return file.read() if file is not None else b""

    def attach(self, container: str) -> socket.socket:
        """Returns a stream to and from a container's first process."""
        params = {"stdin": 1, "stdout": 1, "stream": 1}
        wrapped = self.api.attach_socket(container, params=params)
        # docker-py's socket stays open as long as its HTTP response exists.
        stream: socket.socket = getattr(wrapped, "_sock", wrapped)
        if type(stream) is not socket.socket:  # an encrypted connection
            return stream
        with contextlib.closing(wrapped), stream:
            return stream.dup()

    def remove(self, container: str) -> None:
        """Removes a container, running or not, unless the container is gone or being removed."""
        with self.errors_as("remove a container"):
            try:
                self.api.remove_container(container, force=True)
            except docker.errors.APIError as error:
                if error.status_code not in {404, 409}:
                    raise


def connect(host: str) -> Engine:
    """Returns this process's connection to a daemon, made by the first call; raises as `Engine`."""
    return _engines.get((os.getpid(), host), lambda: Engine(host))


def _connect_once(url: str) -> None:
    """Raises OSError if no daemon listens at a UNIX socket; docker-py would leave a socket open."""
    kind, _, path = url.partition("://")
    if "unix" in kind:
        with socket.socket(socket.AF_UNIX) as stream:
            stream.connect(f"/{path.lstrip('/')}")


class DaemonImage(NamedTuple):
    """An image: id, variables, user of commands, bash's content, files of /etc by name."""

    image_id: str
    env: Mapping[str, str]
    user: ImageUser
    bash: bytes
    etc: Mapping[str, bytes]


def inspect(engine: Engine, name: str, unprivileged: tuple[int, int]) -> DaemonImage:
    """Returns an image of the daemon; root as its user is replaced by ``unprivileged``.

    The result is cached.

    Raises:
        InvalidArgumentError: The image's user is not in its /etc/passwd.
        SandboxUnavailableError: There is no such image, or it has no bash; the message has the
            remedy.
        SandboxError: The daemon refused a step, or did not answer.
    """
    with engine.errors_as("inspect an image"):
        base = engine.describe_image(name)
        if (image := engine.images.get(base["Id"])) is not None:
            return image
        container = engine.api.create_container(base["Id"], ["true"], labels=LABELS)["Id"]
        try:
            etc = {key: engine.read_file(container, f"/etc/{key}") for key in ("passwd", "group")}
            bash = next(filter(None, (engine.read_file(container, path) for path in _BASHES)), b"")
        finally:
            engine.remove(container)
    if not bash:
        raise SandboxUnavailableError(f"image {name!r} has no bash", "install bash in the image")
    settings = base.get("Config") or {}
    user = find_user(settings.get("User") or "", etc.__getitem__)
    user = ImageUser(*unprivileged, USER) if user.uid == 0 else user
    pairs = (pair.partition("=") for pair in settings.get("Env") or ())
    env = {key: value for key, _, value in pairs}
    return engine.images.setdefault(base["Id"], DaemonImage(base["Id"], env, user, bash, etc))
