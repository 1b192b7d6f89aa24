"""The ``docker`` backend: sandboxes in containers of a Docker daemon, or of Podman's service.

`DockerBackend.open` puts the workspace into a new container. Its first process, ``loop.sh``, runs
the commands. `read_file` and `write_file` run commands too, because commands see every mount and
have only the rights of the sandbox's user. The server of the other backends needs Python, which an
image may lack. There are no snapshots.
"""

import contextlib
import errno
import io
import os
import posixpath
import secrets
import shlex
import tarfile
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from coding_gym.calls import ExecResult
from coding_gym.errors import InvalidArgumentError, SandboxUnavailableError
from coding_gym.program_output import last_line
from coding_gym.sandbox import layer_union
from coding_gym.sandbox.backend_checks import check_spec, checked_probe, render_output
from coding_gym.sandbox.docker_engine import LABELS, DaemonImage, Engine, connect, inspect
from coding_gym.sandbox.inside.commands import BoundedOutput
from coding_gym.sandbox.inside.fixed import BASH, HOSTNAME, KILLED_CODE, TIMEOUT_CODE, USER
from coding_gym.sandbox.ownership import UNPRIVILEGED, unprivileged_owner
from coding_gym.sandbox.protocol import NO_SNAPSHOTS, Probe, Sandbox, Snapshot
from coding_gym.sandbox.run_arguments import Run
from coding_gym.sandbox.served_sandbox import Channel
from coding_gym.sandbox.spec import HOME, TMP, WORKDIR, SandboxSpec, environment, mounted_packages

DEFAULT_IMAGE = "python:3.11"
# The bash that runs loop.sh. No user may read this file, so the kernel hides the process's memory,
# descriptors and environment even from commands of the same user (`would_dump`, fs/exec.c).
_BASH = "/.coding_gym/bash"
_LOOP = (_BASH, "-c", Path(__file__).with_name("loop.sh").read_text(encoding="utf-8"), "bash")
_NUM_LOOP_PROCESSES = 2  # process 1 and the runner of loop.sh
_KILL, _KILLED = b"\n", b" killed\n"
_SCRIPT_TIMEOUT_S = 120.0
_SEND_TIMEOUT_S, _SLOWEST_BYTES_PER_S = 20.0, 2 << 20
_MAX_USER_PROCESSES = 1 << 15  # per user of the machine; `pids_limit` is per container
_IN_MEMORY_BYTES, _READ_BYTES, _CHUNK_BYTES, _MESSAGE_BYTES = 32 << 20, 1 << 18, 1 << 18, 1 << 16
# A frame starts with type, three zeros, size: https://docs.docker.com/reference/api/engine/,
# "Stream format".
_HEADER_BYTES = 8
# For `printf %b`: bash variables cannot hold a NUL, and bash marks quotes with bytes 1 and 127.
_ESCAPES = {b"\\": b"\\\\", b"\0": b"\\0000", b"\1": b"\\0001", b"\x7f": b"\\0177"}

_CHECKED_PATH = """LC_ALL=C; path={path}
[[ -e $path && ! -f $path && ! -d $path ]] && {{ echo "not a file: Invalid argument"; exit 1; }}
"""
_READ = 'exec 5<"$path" && exec head -c {limit} <&5\nexit 1'
_WRITE = """[[ ! -e $path && $path = */* ]] && mkdir -p -- "${path%/*}"
exec 5>"$path" && exec cat >&5
exit 1
"""
_ERRNO_BY_TEXT = {os.strerror(number): number for number in errno.errorcode}


class DockerBackend:
    """Sandboxes in containers, in each of which ``loop.sh`` runs the commands.

    Covered: files, processes, the network, capabilities, system calls (the daemon's filter),
    memory, the number of processes. Not covered: the size of files in the workspace and in home
    (`Probe.missing`), and vulnerabilities of the kernel or the daemon. Limits on files also bound
    standard input, which is stored in a file.

    Commands run as the image's user; if this user is root, they run as an ordinary user. Mounts
    need a daemon that shares this process's files.

    Args:
        image: The image for specs that name no image. The image must have bash and the programs
            that commands use. Other values than the default are for tests.
        host: The daemon, such as ``unix:///run/docker.sock``, for tests; "" for the value of
            ``DOCKER_HOST``.
    """

    name = "docker"

    def __init__(self, image: str = DEFAULT_IMAGE, *, host: str = "") -> None:
        self._image = image
        self._host = host

    def owner(self) -> tuple[int, int]:
        """Returns the uid and gid of layers, and of commands if the image's user is root."""
        return unprivileged_owner()

    def probe(self) -> Probe:
        """Opens a temporary sandbox, runs a command in it and closes it; never raises."""
        return checked_probe(self.open, self._describe)

    def _describe(self) -> Probe:
        engine = connect(self._host)
        detail = (
            f"ran a command in a container of {self._image} (Docker "
            f"{engine.info['ServerVersion']}, {engine.info['Driver']})"
        )
        return Probe(available=True, detail=detail, missing=engine.missing())

    def image_id(self, image: str) -> str:
        """Returns an image's id; see `coding_gym.sandbox.protocol.SandboxBackend.image_id`."""
        engine = connect(self._host)
        with _image_errors(image), engine.errors_as("look for an image"):
            return str(engine.describe_image(image)["Id"])

    def open(self, spec: SandboxSpec, *, snapshot: Snapshot | None = None) -> "DockerSandbox":
        """Opens a sandbox; see `coding_gym.sandbox.protocol.SandboxBackend.open`."""
        check_spec(spec, self.name, lacks=("network", "forwards"))
        if snapshot is not None:
            raise InvalidArgumentError(NO_SNAPSHOTS)
        engine = connect(self._host)
        with _image_errors(spec.image), engine.errors_as("find the user of commands"):
            # Root of a user namespace without other users owns the layers, but runs no commands.
            uid, gid = self.owner()
            user = (uid, gid) if uid else (UNPRIVILEGED, UNPRIVILEGED)
            image = inspect(engine, spec.image or self._image, user)
        return DockerSandbox(_Container(engine, image, spec), spec)


@contextlib.contextmanager
def _image_errors(image: str) -> Iterator[None]:
    """Converts SandboxUnavailableError to InvalidArgumentError if a caller named the image."""
    try:
        yield
    except SandboxUnavailableError as error:
        if image:
            raise InvalidArgumentError(str(error)) from error
        raise


@contextlib.contextmanager
def _files(image: DaemonImage, spec: SandboxSpec) -> Iterator[Any]:
    """Yields a tar of the files that a container gets in addition to its image."""
    user, owner = image.user, (image.user.uid, image.user.gid)
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as file:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            _add(tar, posixpath.dirname(_BASH), 0o755)
            _add(tar, _BASH, 0o111, image.bash)
            _add(tar, posixpath.dirname(HOME), 0o755)
            for folder in (HOME, WORKDIR):
                _add(tar, folder, 0o755, owner=owner)
            if user.name == USER:
                for name, line in {
                    "passwd": f"{user.name}:x:{user.uid}:{user.gid}::{HOME}:{BASH}\n",
                    "group": f"{user.name}:x:{user.gid}:\n",
                }.items():
                    content = image.etc[name].rstrip() + b"\n" + line.encode()
                    _add(tar, f"/etc/{name}", 0o644, content)
                # Commands must be able to use the image's tools and the mounts below this folder.
                _add(tar, "/root", 0o755)
            alias = posixpath.normpath(spec.workspace_alias or "/")
            # The alias must not replace the workspace or the parent of home.
            if alias not in {"/", WORKDIR, posixpath.dirname(HOME)}:
                _add(tar, alias, 0o777, link=WORKDIR)
            layer_union.add_to(tar, spec.layers, owner)
        # Podman fails if padding follows the end of the archive.
        file.truncate(tar.offset)
        file.seek(0)
        yield file


def _add(
    tar: tarfile.TarFile,
    path: str,
    mode: int,
    data: bytes | None = None,
    *,
    owner: tuple[int, int] = (0, 0),
    link: str = "",
) -> None:
    """Adds to a tar: a file with ``data``, else a symbolic link to ``link``, else a folder."""
    entry = tarfile.TarInfo(posixpath.normpath(path).strip("/"))
    entry.mode, entry.linkname = mode, link
    entry.uid, entry.gid = owner
    if data is None:
        entry.type = tarfile.SYMTYPE if link else tarfile.DIRTYPE
    entry.size = len(data or b"")
    tar.addfile(entry, io.BytesIO(data or b""))


def _create_options(engine: Engine, image: DaemonImage, spec: SandboxSpec) -> dict[str, Any]:
    """Returns the keyword arguments of docker-py's ``create_container``, except the image."""
    limits = spec.limits
    # By default Podman sets `nproc` to 2**20, which fails if Podman's root may not raise limits.
    ulimits = {"core": 0, "fsize": limits.file_bytes, "nofile": limits.num_open_files}
    ulimits["nproc"] = _MAX_USER_PROCESSES
    host_config: dict[str, Any] = {
        "network_mode": "none",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "pids_limit": limits.num_processes + _NUM_LOOP_PROCESSES,
        "mem_limit": limits.memory_bytes,
        "memswap_limit": limits.memory_bytes,
        "shm_size": limits.disk_bytes,
        "tmpfs": {TMP: f"rw,exec,nosuid,nodev,mode=1777,size={limits.disk_bytes}"},
        "ulimits": [{"Name": name, "Soft": n, "Hard": n} for name, n in ulimits.items()],
        # All output goes through the streams; a log would fill the host's disk.
        "log_config": {"Type": "none"},
        "auto_remove": True,
        "mounts": [
            {"Type": "bind", "Source": str(mount.source.resolve()), "Target": mount.target}
            | {"ReadOnly": not mount.writable}
            for mount in spec.mounts
        ],
    }
    variables = environment(spec, image_env=image.env, user=image.user.name)
    return {
        "entrypoint": [*_LOOP],
        "command": [],
        "environment": mounted_packages(spec) | variables,
        "user": f"{image.user.uid}:{image.user.gid}",
        "labels": LABELS,
        "hostname": HOSTNAME,
        "working_dir": "/",
        "stdin_open": True,
        "healthcheck": {"test": ["NONE"]},  # an image's health check would run during commands
        "host_config": engine.api.create_host_config(**host_config),
    }


class _Container(Channel):
    """The channel to a container, whose first process, ``loop.sh``, runs the commands.

    Args:
        engine: The daemon.
        image: The container's image.
        spec: The sandbox's spec.

    Raises:
        SandboxError: The daemon refused a step, or did not answer.
    """

    def __init__(self, engine: Engine, image: DaemonImage, spec: SandboxSpec) -> None:
        with engine.errors_as("start a container"), contextlib.ExitStack() as cleanup:
            options = _create_options(engine, image, spec)
            self._id = engine.api.create_container(image.image_id, **options)["Id"]
            cleanup.callback(engine.remove, self._id)
            with _files(image, spec) as archive:
                engine.api.put_archive(self._id, "/", archive)
            stream = cleanup.enter_context(engine.attach(self._id))
            engine.api.start(self._id)
            cleanup.pop_all()
        # Closing needs no request to the daemon: the container ends with its first process, which
        # ends at the end of its input.
        super().__init__(stream, cleanup)
        self._frames, self._payload = bytearray(), b""
        self._num_out_of_memory = 0

    def run(self, run: Run, output: BoundedOutput) -> ExecResult:
        """Runs a command; collects its output in ``output``, not in the result.

        Raises:
            SandboxError: The container ended, or its reply is late or malformed.
        """
        nonce, timed_out = secrets.token_hex(16), False
        with self._in_use():
            start_time = time.monotonic()
            self._send(_request(nonce, run))
            try:
                counts = self._read_reply(nonce, output, start_time + run.timeout_s)
            except TimeoutError:
                timed_out = True
                self._send(_KILL)
                deadline = time.monotonic() + _SEND_TIMEOUT_S
                counts = self._read_reply(nonce, output, deadline, end=_KILLED)
        exit_code, num_leftovers, num_out_of_memory = counts
        is_out_of_memory = num_out_of_memory > self._num_out_of_memory
        self._num_out_of_memory = num_out_of_memory
        was_killed = exit_code == KILLED_CODE and not timed_out
        return ExecResult(
            exit_code=TIMEOUT_CODE if timed_out else exit_code,
            output="",
            timed_out=timed_out,
            duration_s=time.monotonic() - start_time,
            num_leftovers=num_leftovers,
            # The kernel killed the shell, or a process for which the shell waited.
            out_of_memory=is_out_of_memory and was_killed,
        )

    def _send(self, data: bytes) -> None:
        self._stream.settimeout(_SEND_TIMEOUT_S + len(data) / _SLOWEST_BYTES_PER_S)
        self._stream.sendall(data)

    def _read_reply(
        self, nonce: str, output: BoundedOutput, deadline: float, *, end: bytes = b"\n"
    ) -> tuple[int, int, int]:
        """Reads a reply: exit code, number of leftover processes, number of out-of-memory kills.

        Raises:
            TimeoutError: There is no reply yet; the next call continues to read.
            OSError, EOFError: The container ended.
        """
        mark = f"{nonce} ".encode()
        while True:
            chunk, separator, line = self._payload.partition(mark)
            # After a kill, `line` may hold two replies: the runner's, then process 1's.
            if separator and line.endswith(end):
                output.add(chunk)
                self._payload = b""
                exit_code, num_leftovers, num_out_of_memory = map(int, line.split()[:3])
                return exit_code, num_leftovers, num_out_of_memory
            if not separator:  # the payload may end with the beginning of the mark
                output.add(self._payload[: -len(mark)])
                self._payload = self._payload[-len(mark) :]
            self._payload += self._receive(deadline)

    def _receive(self, deadline: float) -> bytes:
        """Returns the payload of the next frame; raises as `_read_reply`."""
        frames = self._frames
        while (end := _HEADER_BYTES + int.from_bytes(frames[4:8], "big")) > len(frames):
            if (remaining_s := deadline - time.monotonic()) <= 0:  # even if data are available
                raise TimeoutError
            self._stream.settimeout(remaining_s)
            if not (data := self._stream.recv(_READ_BYTES)):
                raise EOFError("the container ended")
            frames += data
        payload = bytes(frames[_HEADER_BYTES:end])
        del frames[:end]
        return payload


class DockerSandbox(Sandbox):
    """A sandbox in a container; the daemon removes the container when its first process ends.

    After a failure of the stream every call raises SandboxError with the same reason.
    """

    def __init__(self, container: _Container, spec: SandboxSpec) -> None:
        self._container = container
        self._shell = spec.shell

    def close(self) -> None:
        """Ends all processes and deletes all files of the sandbox; idempotent.

        A call in a fork of the owner leaves the container running.
        """
        self._container.close()

    def _run(self, run: Run) -> ExecResult:
        collected = BoundedOutput(run.max_output_bytes)
        result = self._container.run(run, collected)
        output, truncated = render_output(*collected.parts(), collected.num_bytes)
        return replace(result, output=output, truncated=truncated)

    def _read(self, path: str, max_bytes: int) -> bytes:
        script = _READ.format(limit=max_bytes + 1)
        code, data = self._run_script(script, path, b"", max_bytes + _MESSAGE_BYTES)
        _raise_error(code, data, path)
        if len(data) > max_bytes:
            raise OSError(errno.EFBIG, f"the file is larger than {max_bytes} bytes", path)
        return data

    def _write(self, path: str, data: bytes) -> None:
        code, message = self._run_script(_WRITE, path, data)
        _raise_error(code, message, path)

    def _run_script(
        self, script: str, path: str, stdin: bytes, max_output_bytes: int = _MESSAGE_BYTES
    ) -> tuple[int, bytes]:
        """Runs a script of this module on a path; returns its exit code and output.

        Raises:
            SandboxError: The container ended, or the script took too long.
        """
        # Twice the limit, because the head and the tail each get half.
        collected = BoundedOutput(2 * max_output_bytes)
        # The script runs in `/`, because a policy can remove the permissions of the workspace.
        prologue = _CHECKED_PATH.format(path=shlex.quote(posixpath.join(WORKDIR, path)))
        command = os.fsencode(prologue + script)
        run = Run(command, "/", {}, stdin, _SCRIPT_TIMEOUT_S, max_output_bytes)
        result = self._container.run(run, collected)
        if result.timed_out:
            raise self._container.give_up("the sandbox died: a file access timed out")
        return result.exit_code, b"".join(collected.parts())


def _request(nonce: str, run: Run) -> bytes:
    """Returns the request to `loop.sh` for a command."""
    starts = range(0, len(run.stdin), _CHUNK_BYTES)
    chunks = [_escape(run.stdin[start : start + _CHUNK_BYTES]) for start in starts]
    folder = os.fsencode(posixpath.join(WORKDIR, run.cwd or WORKDIR))
    variables = (os.fsencode(f"{name}={value}") for name, value in run.env.items())
    texts = [_escape(text) for text in (folder, run.command, *variables)]
    sizes = " ".join(str(len(part)) for part in (*chunks, *texts))
    line = f"{nonce} {secrets.token_hex(16)} {len(chunks)} {sizes}\n"
    return b"".join((line.encode(), *chunks, *texts))


def _escape(data: bytes) -> bytes:
    for byte, escape in _ESCAPES.items():
        data = data.replace(byte, escape)
    return data


def _raise_error(exit_code: int, output: bytes, path: str) -> None:
    """Raises the OSError that the last line of the output describes, unless the exit code is 0."""
    if exit_code == 0:
        return
    reason = last_line(output.decode("utf-8", "replace")).rpartition(": ")[2]
    number = _ERRNO_BY_TEXT.get(reason, errno.EIO)
    raise OSError(number, os.strerror(number), path)
