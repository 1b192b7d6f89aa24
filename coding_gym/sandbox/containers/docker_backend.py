"""Containers of a Docker daemon: one per sandbox, whose first process runs ``loop.sh``.

`DockerBackend.open` puts the workspace into a container of an image, starts it and returns a
`DockerSandbox`. Its `run` writes a request to ``loop.sh`` over the container's standard
input, and reads the answer. Files are read, written, saved and restored by commands as well: they
see every mount, and have the rights of the sandbox's user alone.
"""

import contextlib
import errno
import io
import os
import posixpath
import secrets
import shlex
import signal
import socket
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import docker

from coding_gym.calls import ExecResult
from coding_gym.errors import (
    InvalidArgumentError,
    SandboxError,
    SandboxUnavailableError,
    last_line,
)
from coding_gym.host import network as host_network
from coding_gym.sandbox import backend_checks, layer_union
from coding_gym.sandbox.backend_checks import (
    CheckedSandbox,
    Run,
    check_snapshot,
    failed_probe,
    max_snapshot_bytes,
    render_output,
)
from coding_gym.sandbox.channel import OwnerHandle
from coding_gym.sandbox.images import find_image, read_manifest, write_docker_archive
from coding_gym.sandbox.images.users import ImageUser, find_user
from coding_gym.sandbox.inside.output import BoundedOutput
from coding_gym.sandbox.ownership import identity, is_gone
from coding_gym.sandbox.protocol import Probe, Promise, Snapshot
from coding_gym.sandbox.spec import (
    HOME,
    WORKDIR,
    SandboxSpec,
    environment,
    mounted_packages,
    socket_mounts,
)

DEFAULT_IMAGE = "python:3.11"
OWNER_LABEL = "coding_gym.owner"
_LOADED = "coding-gym-images"
# The user of commands of root; the same as in the `namespace` backend, which shares templates.
_UNPRIVILEGED, _NAME = 64998, "agent"
# The bash that runs loop.sh. No user may read it, so that the kernel keeps its memory, descriptors
# and environment from everyone, commands of the same user included (`would_dump`, fs/exec.c).
_FIRST_BASH = "/.coding_gym/bash"
_BASHES = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")
_LOOP = Path(__file__).with_name("loop.sh").read_text(encoding="utf-8")
_NEVER = (Promise.DISK_LIMIT, Promise.INODE_LIMIT, Promise.OWN_PYTHON)
_UNLESS = {"MemoryLimit": Promise.MEMORY_LIMIT, "PidsLimit": Promise.PROCESS_LIMIT}
_START = (
    "start it with `sudo systemctl start docker`, or install it (Debian: `apt-get install "
    "docker.io`)"
)
_LOOK = "check DOCKER_HOST, which says where the daemon is, or unset it"
_JOIN = "run `sudo usermod -aG docker $USER` and log in again"

_API_TIMEOUT_S, _CLOSE_TIMEOUT_S = 60, 5.0
_SCRIPT_TIMEOUT_S, _TIMEOUT_EXIT_CODE = 120.0, 124
_SEND_TIMEOUT_S, _SLOWEST_BYTES_PER_S = 20.0, 2 << 20
# bash may sleep through the end of a command, very rarely; a poke wakes it. See loop.sh.
_FIRST_POKE_S, _LAST_POKE_S = 0.05, 4.0
_KILL_AGAIN_S, _NUM_KILLS_BY_REQUEST, _MAX_KILLS = 0.5, 4, 40
_PODMAN_PROCESSES = 1 << 15  # of one user; `pids_limit` bounds those of one container
_IN_MEMORY_BYTES, _READ_BYTES, _CHUNK_BYTES = 32 << 20, 1 << 18, 1 << 18
_MESSAGE_BYTES = 1 << 16
# Type, three zeros, size: https://docs.docker.com/reference/api/engine/, "Stream format".
_HEADER_BYTES = 8
# More than a first or last line of an answer has.
_MAX_LINE_BYTES = 200
# For `printf %b`. bash holds no NUL, and marks its own quoting with 1 and 127.
_ESCAPES = {b"\\": b"\\\\", b"\0": b"\\0000", b"\1": b"\\0001", b"\x7f": b"\\0177"}

_CHECKED_PATH = """LC_ALL=C; path={path}
refuse() {{ echo "refused: $1"; exit 1; }}
[[ -d $path ]] && refuse EISDIR
[[ -e $path && ! -f $path ]] && refuse EINVAL
"""
_READ = 'exec 5<"$path" && exec head -c {limit} <&5\nexit 1'
_WRITE = """is_new=
[[ -e $path || -L $path ]] || is_new=yes
if [[ $is_new && $path = */* && ! -d ${path%/*} ]]; then
  # Where a file is in the way, opening says so better.
  message=$(mkdir -p -- "${path%/*}/" 2>&1) || [[ $message = *"File exists" ]] || refuse "$message"
fi
exec 5>"$path" && cat >&5 && exit
[[ $is_new ]] && rm -f -- "$path"
exit 1
"""
_ERRNO_BY_TEXT = {os.strerror(number): number for number in errno.errorcode}
# A snapshot has the names that the layers have and the sandbox has not, NUL-terminated behind their
# size, and a tar of what commands changed: files of the workspace and of home whose ctime, which no
# command can set, is later than the container's start, and all files of the other two folders.
_LIST = f"cd / && {{ tar --version && type -P xargs; }} >/dev/null && find .{WORKDIR} -print0"
_PACK = f"""cd / && (
  find .{WORKDIR} .{HOME} ! -type s -newerct @{{started}} -print0
  find ./tmp ./dev/shm -mindepth 1 ! -type s -print0
) | tar -c --format=posix --null --no-recursion --ignore-failed-read -T - -f - 2>/dev/null"""
_REMOVE, _UNPACK = "cd / && xargs -0 rm -rf --", "cd / && tar -x -p -f -"

_engines: dict[tuple[int, str], "Engine"] = {}


class Engine:
    """A connection to a daemon.

    Args:
        host: Such as ``unix:///run/docker.sock``; "" for what ``DOCKER_HOST`` and its kin say.

    Attributes:
        url: The daemon's address.
        api: docker-py's low-level client.
        info: The daemon's own description.
        images: Images that were looked into, by id.

    Raises:
        SandboxUnavailableError: No daemon answers; says why, with the remedy.
    """

    def __init__(self, host: str = "") -> None:
        settings = docker.utils.kwargs_from_env() | ({"base_url": host} if host else {})
        self.url: str = settings.setdefault("base_url", "unix:///var/run/docker.sock")
        try:
            _connect_once(self.url)
            self.api = docker.APIClient(version="auto", timeout=_API_TIMEOUT_S, **settings)
        except (docker.errors.DockerException, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            remedy = _LOOK if os.environ.get("DOCKER_HOST") else _START
            raise SandboxUnavailableError(
                f"no Docker daemon answers at {self.url}: {reason}",
                _JOIN if isinstance(error, PermissionError) else remedy,
            ) from error
        self.images: dict[str, Image] = {}
        with self.errors_as("ask the daemon about itself"):
            self.info: dict[str, Any] = self.api.info()

    def is_podman(self) -> bool:
        """Whether it is Podman's Docker-compatible service."""
        return "BuildahVersion" in self.info

    def missing(self) -> tuple[Promise, ...]:
        """Returns the promises that its containers do not keep."""
        found = [*_NEVER, *(each for key, each in _UNLESS.items() if not self.info.get(key))]
        options = [text.split(",") for text in self.info.get("SecurityOptions") or ()]
        filters = ["profile=unconfined" not in each for each in options if "name=seccomp" in each]
        # Podman's filter lets every process make user namespaces.
        if not any(filters) or self.is_podman():
            found.append(Promise.SYSTEM_CALLS)
        return tuple(found)

    @contextlib.contextmanager
    def errors_as(self, what: str) -> Iterator[None]:
        """Turns errors of the daemon, the connection and files into "cannot do `what`"."""
        try:
            yield
        except (docker.errors.DockerException, OSError) as error:
            reason = getattr(error, "explanation", "") or str(error)
            raise SandboxError(f"cannot {what}: {reason}") from error

    def find_image(self, name: str) -> dict[str, Any] | None:
        """Returns the description of an image; None where it has none of that name."""
        with contextlib.suppress(docker.errors.ImageNotFound):
            found: dict[str, Any] = self.api.inspect_image(name)
            return found
        return None

    def create(self, image: str, **options: Any) -> str:
        """Returns the id of a new container, which says whose it is; it has not started."""
        labels = {OWNER_LABEL: identity()}
        container: str = self.api.create_container(image, labels=labels, **options)["Id"]
        return container

    def read_file(self, container: str, path: str) -> bytes:
        """Returns the content of a regular file of a container; empty if it does not exist."""
        try:
            stream, _ = self.api.get_archive(container, path)
        except docker.errors.NotFound:
            return b""
        with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as tar:
            entry = tar.next()
            file = tar.extractfile(entry) if entry is not None and entry.isreg() else None
            return file.read() if file is not None else b""

    @contextlib.contextmanager
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
        """Removes a container, running or not; does nothing if it is gone or being removed."""
        try:
            self.api.remove_container(container, force=True)
        except docker.errors.NotFound:
            return
        except docker.errors.APIError as error:
            if error.status_code != 409:
                raise

    def sweep(self) -> None:
        """Removes the containers of dead owners.

        A container ends with the stream of its owner, so a killed owner leaves at most a container
        that it had not started yet, or one whose stream a fork of it holds open. Only owners of
        this machine, since it was booted, and of this container can be known to be dead.
        """
        with self.errors_as("look for containers of dead owners"):
            for container in self.api.containers(all=True, filters={"label": OWNER_LABEL}):
                if is_gone(container["Labels"][OWNER_LABEL]):
                    self.remove(container["Id"])


def connect(host: str) -> Engine:
    """Returns this process's connection to a daemon, made by the first call, which sweeps.

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


class Image(NamedTuple):
    """An image of the daemon: its id, its variables, and what containers of it get."""

    name: str
    env: Mapping[str, str]
    user: ImageUser
    bash: bytes
    etc: Mapping[str, bytes]


class DockerBackend:
    """Sandboxes in containers, each behind one persistent stream.

    Covered: files, processes, the network, capabilities, system calls (the daemon's filter),
    memory, numbers of processes. Not covered: the size of what is written to the
    workspace and to home (`Probe.missing`), and holes in the kernel or the daemon.

    Commands run as the image's user; where that is root, as an ordinary user. Mounts need a daemon
    that shares this process's files.

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
        detail = (
            f"ran a command in a container of {self._image} (Docker "
            f"{engine.info['ServerVersion']}, {engine.info['Driver']})"
        )
        return Probe(available=True, detail=detail, missing=engine.missing())

    def image_id(self, image: str) -> str:
        """Returns an image's id; see `coding_gym.sandbox.protocol.SandboxBackend.image_id`."""
        engine = connect(self._host)
        with engine.errors_as("look for an image"):
            return str(_find_base(engine, image)["Id"])

    def open(self, spec: SandboxSpec, *, snapshot: Snapshot | None = None) -> "DockerSandbox":
        """Opens a sandbox; see `coding_gym.sandbox.protocol.SandboxBackend.open`."""
        backend_checks.check_spec(spec)
        for mount in (*spec.mounts, *socket_mounts(spec)):
            backend_checks.checked_target(mount.target)
        backend_checks.checked_target(spec.workspace_alias or WORKDIR, "workspace_alias")
        if snapshot is not None:
            check_snapshot(snapshot, backend=self.name, spec=spec)
        engine = connect(self._host)
        image = _look_into(engine, spec.image or self._image, self.owner())
        return DockerSandbox(engine, image, spec, snapshot)


def _look_into(engine: Engine, name: str, fallback: tuple[int, int]) -> Image:
    """Returns an image of the daemon, or of a layout folder; each is looked into once.

    Raises:
        InvalidArgumentError: It is for another kind of machine, or has no such user.
        SandboxUnavailableError: There is no such image, or it has no bash; says what to do.
        SandboxError: The daemon refused a step.
    """
    with engine.errors_as("look into an image"):
        base = _find_base(engine, name)
        if (known := engine.images.get(base["Id"])) is not None:
            return known
        container = engine.create(base["Id"], command=["true"])
        try:
            etc = {one: engine.read_file(container, f"/etc/{one}") for one in ("passwd", "group")}
            bash = next(filter(None, (engine.read_file(container, path) for path in _BASHES)), b"")
        finally:
            engine.remove(container)
    if not bash:
        raise SandboxUnavailableError("the image has no bash", "name an image that has it")
    settings = base.get("Config") or {}
    user = find_user(settings.get("User") or "", etc.__getitem__)
    user = ImageUser(*fallback, _NAME) if user.uid == 0 else user
    pairs = (pair.partition("=") for pair in settings.get("Env") or ())
    env = {name: value for name, _, value in pairs}
    return engine.images.setdefault(base["Id"], Image(base["Id"], env, user, bash, etc))


def _find_base(engine: Engine, name: str) -> dict[str, Any]:
    """Returns an image of the daemon, or that of a layout folder, which it loads."""
    is_folder = Path(name, "index.json").expanduser().exists()
    if not is_folder and (found := engine.find_image(name)) is not None:
        return found
    try:
        layout = find_image(name)
    except InvalidArgumentError as error:
        raise SandboxUnavailableError(
            f"the Docker daemon has no image {name!r}",
            f"run `docker pull {name}`, or name one of `docker images`",
        ) from error
    # One of our names: that of the layout may be in use for another image.
    tag = f"{_LOADED}:{read_manifest(layout).digest.partition(':')[2][:40]}"
    if (found := engine.find_image(tag)) is None:
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "image.tar"
            write_docker_archive(layout, archive, tag)
            with archive.open("rb") as file:
                for line in engine.api.load_image(file):
                    if "error" in line:
                        raise SandboxError(f"cannot load an image: {line['error']}")
        found = engine.find_image(tag)
    if found is None:
        raise SandboxError("the image was removed while it was loaded")
    return found


def _fill(tar: tarfile.TarFile, image: Image, spec: SandboxSpec) -> None:
    """Writes the files that a container gets beside those of its image."""
    user, owner = image.user, (image.user.uid, image.user.gid)
    _add(tar, posixpath.dirname(_FIRST_BASH), 0o755)
    _add(tar, _FIRST_BASH, 0o111, image.bash)
    _add(tar, posixpath.dirname(HOME), 0o755)
    for folder in (HOME, WORKDIR):
        _add(tar, folder, 0o755, owner=owner)
    if user.name == _NAME:
        line = f"{_NAME}:x:{user.uid}:{user.gid}::{HOME}:/bin/bash\n"
        for name, added in (("passwd", line), ("group", f"{_NAME}:x:{user.gid}:\n")):
            before = image.etc[name].strip()
            _add(tar, f"/etc/{name}", 0o644, before + b"\n" * bool(before) + added.encode())
        # Tools that an image keeps there, and mounts below it, are for commands too.
        _add(tar, "/root", 0o755)
    alias = posixpath.normpath(spec.workspace_alias or "/")
    # It cannot be in the place of what it leads to, or of the folder around home.
    if alias not in {"/", WORKDIR, posixpath.dirname(HOME)}:
        _add(tar, alias, 0o777, link=WORKDIR)
    layer_union.add_to(tar, spec.layers, owner)


def _add(
    tar: tarfile.TarFile,
    path: str,
    mode: int,
    data: bytes | None = None,
    *,
    owner: tuple[int, int] = (0, 0),
    link: str = "",
) -> None:
    """Adds a file; without data a folder, or a symbolic link."""
    entry = tarfile.TarInfo(posixpath.normpath(path).strip("/"))
    entry.mode, entry.linkname = mode, link
    entry.uid, entry.gid = owner
    if data is None:
        entry.type = tarfile.SYMTYPE if link else tarfile.DIRTYPE
    entry.size = len(data or b"")
    tar.addfile(entry, io.BytesIO(data or b""))


def _create_options(engine: Engine, image: Image, spec: SandboxSpec) -> dict[str, Any]:
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
            for m in (*spec.mounts, *socket_mounts(spec))
        ],
    }
    network = host_network.settings().env if spec.network else {}
    variables = environment(spec, image_env=image.env, user=image.user.name)
    return {
        "entrypoint": [_FIRST_BASH, "-c", _LOOP, "bash"],
        "command": [],
        "environment": network | mounted_packages(spec) | variables,
        "user": f"{image.user.uid}:{image.user.gid}",
        "hostname": "sandbox",
        "working_dir": "/",
        "stdin_open": True,
        "healthcheck": {"test": ["NONE"]},  # an image's own would run beside the commands
        "host_config": engine.api.create_host_config(**host_config),
    }


class DockerSandbox(CheckedSandbox, OwnerHandle):
    """A container, or after a restore its successor; the daemon removes it when it ends.

    After the first failure of the stream every call raises SandboxError with the same reason.

    Args:
        engine: The daemon.
        image: The container's image.
        spec: The sandbox's spec.
        snapshot: Files that the sandbox has from the start.

    Raises:
        SandboxError: The daemon refused a step, or the snapshot cannot be put there.
    """

    def __init__(
        self, engine: Engine, image: Image, spec: SandboxSpec, snapshot: Snapshot | None
    ) -> None:
        super().__init__()
        self._engine, self._image, self._spec = engine, image, spec
        self._shell = spec.shell
        self._start()
        if snapshot is not None:
            self._put(snapshot)

    def snapshot(self) -> Snapshot:
        """Returns the files that differ; see `coding_gym.sandbox.protocol.Sandbox.snapshot`.

        Sockets, and files that their owner may not read, are no part of it.
        """
        limit = max_snapshot_bytes(self._spec.limits)
        code, listing = self._run_script(_LIST.encode(), b"", limit)
        if code:
            raise SandboxError("cannot take a snapshot: the image needs GNU find, tar and xargs")
        base = (f".{WORKDIR}/{name}" for name in layer_union.united(self._spec.layers))
        names = frozenset(listing.split(b"\0"))
        gone = [name for name in map(os.fsencode, base) if name not in names]
        code, archive = self._run_script(
            _PACK.format(started=self._started_at).encode(), b"", limit
        )
        if code > 1:  # 1 is for files that could not be read
            raise SandboxError(f"cannot take a snapshot: tar ended with {code}")
        head = b"".join(name + b"\0" for name in gone)
        data = len(head).to_bytes(8, "big") + head + archive
        return Snapshot(backend="docker", spec=self._spec, data=data)

    def restore(self, snapshot: Snapshot) -> None:
        """Puts every file back; see `coding_gym.sandbox.protocol.Sandbox.restore`."""
        check_snapshot(snapshot, backend="docker", spec=self._spec)
        self.require_open()
        with self._lock:
            try:
                self._end(_CLOSE_TIMEOUT_S)
                self._start()
            except BaseException:
                self._is_closed = True
                raise
        self._put(snapshot)

    def close(self) -> None:
        """Ends every process and drops every file of the sandbox; idempotent.

        In a fork of the owner the container is left as it is, and ends with its owner.
        """
        if self._is_closed:
            return
        self._is_closed = True
        if os.getpid() != self._owner:
            self._stream.close()
            return
        self._end_input()
        # A call in another thread sees the end of the output first.
        is_mine = self._lock.acquire(timeout=_CLOSE_TIMEOUT_S)
        self._end(_CLOSE_TIMEOUT_S if is_mine else 0.0)
        if is_mine:
            self._lock.release()

    def _start(self) -> None:
        """Starts a container in which nothing has run."""
        engine = self._engine
        self._frames = bytearray()
        self._num_out_of_memory = 0
        with engine.errors_as("start a container"), contextlib.ExitStack() as undo:
            options = _create_options(engine, self._image, self._spec)
            self._id = engine.create(self._image.name, **options)
            undo.callback(engine.remove, self._id)
            with engine.put_files(self._id) as tar:
                _fill(tar, self._image, self._spec)
            self._stream = undo.enter_context(engine.attach(self._id))
            engine.api.start(self._id)
            facts = engine.api.inspect_container(self._id)
            started = datetime.fromisoformat(facts["State"]["StartedAt"])
            self._started_at = started.timestamp()
            undo.pop_all()

    def _end(self, timeout_s: float) -> None:
        """Ends the container and waits until its processes are dead; kills it after a time."""
        self._end_input()
        deadline = time.monotonic() + timeout_s
        has_ended = False
        with contextlib.suppress(OSError):
            while not has_ended and (left_s := deadline - time.monotonic()) > 0:
                has_ended = not self._receive(left_s)
        self._stream.close()
        if not has_ended:
            with self._engine.errors_as("remove a container"):
                self._engine.remove(self._id)

    def _end_input(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_WR)

    def _put(self, snapshot: Snapshot) -> None:
        """Restores the changed files in a fresh container."""
        data = snapshot.data
        end = 8 + int.from_bytes(data[:8], "big")
        try:
            for script, stdin in ((_REMOVE, data[8:end]), (_UNPACK, data[end:])):
                code, output = self._run_script(script.encode(), stdin)
                if code:
                    reason = last_line(output.decode("utf-8", "replace"))
                    raise SandboxError(f"cannot restore a snapshot: {reason}")
        except BaseException:
            self.close()
            raise

    def _run(self, run: Run) -> ExecResult:
        kept = BoundedOutput(run.max_output_bytes)
        result = self._exchange(run, kept)
        output, truncated = render_output(*kept.parts(), kept.num_bytes)
        return replace(result, output=output, truncated=truncated)

    def _read(self, path: str, max_bytes: int) -> bytes:
        script = _CHECKED_PATH.format(path=shlex.quote(path)) + _READ.format(limit=max_bytes + 1)
        code, data = self._run_script(os.fsencode(script), b"", max_bytes + _MESSAGE_BYTES)
        _raise_error(code, data, path)
        if len(data) > max_bytes:
            raise OSError(errno.EFBIG, f"larger than {max_bytes} bytes", path)
        return data

    def _write(self, path: str, data: bytes) -> None:
        script = _CHECKED_PATH.format(path=shlex.quote(path)) + _WRITE
        code, message = self._run_script(os.fsencode(script), data)
        _raise_error(code, message, path)

    def _run_script(
        self, script: bytes, stdin: bytes, max_output_bytes: int = _MESSAGE_BYTES
    ) -> tuple[int, bytes]:
        """Runs a command of this package and returns its exit code and output.

        Raises:
            SandboxError: The container died, or there is more output, or it takes too long.
        """
        # Kept as head and tail, which join to the whole.
        kept = BoundedOutput(2 * max_output_bytes)
        run = Run(script, None, {}, stdin, _SCRIPT_TIMEOUT_S, max_output_bytes)
        result = self._exchange(run, kept)
        if result.timed_out:
            raise self.give_up("the sandbox's files do not answer")
        if kept.num_bytes > max_output_bytes:
            raise SandboxError(f"more than {max_output_bytes} bytes came out of the sandbox")
        return result.exit_code, b"".join(kept.parts())

    def _exchange(self, run: Run, output: BoundedOutput) -> ExecResult:
        """Has `loop.sh` run a command; its output goes to ``output``, not into the result.

        Raises:
            SandboxError: The container ended, or its reply is late or malformed.
        """
        nonce = secrets.token_hex(16).encode()
        with self._in_use():
            self._send(_request(nonce, run))
            return self._await_answer(_Answer(nonce, output), run.timeout_s)

    def _await_answer(self, answer: "_Answer", timeout_s: float) -> ExecResult:
        """Reads until the answer is complete; pokes `loop.sh`, and has a late command killed."""
        started = time.monotonic()
        deadline = started + timeout_s
        pause_s, num_kills = _FIRST_POKE_S, 0
        speak_at = min(started + pause_s, deadline)
        while not answer.numbers:
            now = time.monotonic()
            if now < speak_at:
                with contextlib.suppress(TimeoutError):
                    data = self._receive(speak_at - now)
                    if not data:
                        raise EOFError("the container ended")
                    answer.add(data)
            elif now < deadline:
                self._send(b"\n")
                pause_s = min(2 * pause_s, _LAST_POKE_S)
                speak_at = min(now + pause_s, deadline)
            else:
                self._kill(answer.nonce, num_kills)
                num_kills += 1
                speak_at = now + _KILL_AGAIN_S
        exit_code, num_leftovers, num_out_of_memory = answer.numbers
        before, self._num_out_of_memory = self._num_out_of_memory, num_out_of_memory
        return ExecResult(
            exit_code=_TIMEOUT_EXIT_CODE if num_kills else exit_code,
            output="",
            timed_out=num_kills > 0,
            duration_s=time.monotonic() - started,
            num_leftovers=0 if num_kills else num_leftovers,
            # The kernel killed the shell, or a process that it waited for.
            out_of_memory=num_out_of_memory > before and exit_code == 128 + signal.SIGKILL,
        )

    def _receive(self, timeout_s: float) -> bytes:
        """Returns bytes of standard output, ``b""`` at its end; raises TimeoutError, OSError."""
        self._stream.settimeout(timeout_s)
        while data := self._stream.recv(_READ_BYTES):
            self._frames += data
            if payload := b"".join(_take_payloads(self._frames)):
                return payload
        return b""

    def _send(self, data: bytes) -> None:
        self._stream.settimeout(_SEND_TIMEOUT_S + len(data) / _SLOWEST_BYTES_PER_S)
        # Without a reader of the input, the end of the output says why.
        with contextlib.suppress(BrokenPipeError):
            self._stream.sendall(data)

    def _kill(self, nonce: bytes, num_kills: int) -> None:
        """Has the running command killed; after some attempts by a signal too."""
        if num_kills > _MAX_KILLS:
            raise EOFError("a command outlived its time limit")
        self._send(b"\n%b\n" % nonce)
        if num_kills > _NUM_KILLS_BY_REQUEST:
            try:
                self._engine.api.kill(self._id, "SIGUSR1")
            except docker.errors.DockerException as error:
                raise EOFError(f"a command cannot be killed: {error}") from error


def _take_payloads(stream: bytearray) -> Iterator[bytes]:
    """Takes the whole frames off the front of an attached stream, and yields their payloads."""
    while (end := _HEADER_BYTES + int.from_bytes(stream[4:_HEADER_BYTES], "big")) <= len(stream):
        yield bytes(stream[_HEADER_BYTES:end])
        del stream[:end]


def _request(nonce: bytes, run: Run) -> bytes:
    """Returns the bytes that ask `loop.sh` to run a command."""
    starts = range(0, len(run.stdin), _CHUNK_BYTES)
    chunks = [_escaped(run.stdin[start : start + _CHUNK_BYTES]) for start in starts]
    folder = os.fsencode(posixpath.join(WORKDIR, run.cwd or WORKDIR))
    variables = (os.fsencode(f"{name}={value}") for name, value in run.env.items())
    texts = [_escaped(text) for text in (folder, run.command, *variables)]
    sizes = b" ".join(b"%d" % len(part) for part in (*chunks, *texts))
    # The first line feed ends what `loop.sh` may still hold of a poke.
    return b"".join((b"\nrun %b %d %b\n" % (nonce, len(chunks), sizes), *chunks, *texts))


def _escaped(data: bytes) -> bytes:
    for byte, escape in _ESCAPES.items():
        data = data.replace(byte, escape)
    return data


@dataclass(slots=True)
class _Answer:
    """An answer of `loop.sh` that is still coming in.

    Attributes:
        nonce: Of the request. Nothing before the line that it begins is taken for output, so what
            an earlier command forged is dropped.
        output: Takes what the command prints.
        numbers: Exit code, processes left running, and processes that the kernel killed in this
            container, so far, for want of memory; empty until the answer is complete.
    """

    nonce: bytes
    output: BoundedOutput
    numbers: tuple[int, ...] = ()
    _pending: bytes = b""
    _has_begun: bool = False

    def add(self, data: bytes) -> None:
        """Takes the next bytes; raises ValueError where the last line is malformed."""
        text = self._pending + data
        if not self._has_begun:
            before, mark, rest = text.partition(b"%b begin\n" % self.nonce)
            self._has_begun = bool(mark)
            self._pending = text = rest if mark else before[-_MAX_LINE_BYTES:]
        if self._has_begun:
            before, _, rest = text.partition(b"%b end " % self.nonce)
            line, is_whole, _ = rest.partition(b"\n")
            if is_whole:
                self.numbers = tuple(map(int, line.split()))
            else:
                before = text[:-_MAX_LINE_BYTES]
            self.output.add(before)
            self._pending = text[len(before) :]


def _raise_error(exit_code: int, output: bytes, path: str) -> None:
    """Raises the OSError that a script met and named in its last line."""
    if exit_code == 0:
        return
    reason = last_line(output.decode("utf-8", "replace")).rpartition(": ")[2]
    number = getattr(errno, reason, None) if reason.isupper() else _ERRNO_BY_TEXT.get(reason)
    number = number or errno.EIO
    raise OSError(number, os.strerror(number), path)
