"""The ``process`` backend: plain processes in a temporary copy. No isolation; for debugging."""

import errno
import os
import shutil
import tempfile
import warnings
from pathlib import Path
from types import TracebackType
from typing import Self

from coding_gym.calls import ExecResult
from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox import copies
from coding_gym.sandbox.environment import environment, mounted_packages
from coding_gym.sandbox.process_group import ProcessGroup
from coding_gym.sandbox.promises import Promise
from coding_gym.sandbox.protocol import DEFAULT_MAX_OUTPUT_BYTES, DEFAULT_TIMEOUT_S, Probe, Snapshot
from coding_gym.sandbox.removal import remove_folder
from coding_gym.sandbox.results import (
    check_data,
    check_env,
    check_max_bytes,
    check_path,
    check_shell,
    prepare_run,
)
from coding_gym.sandbox.snapshots import check_snapshot
from coding_gym.sandbox.spec import HOME, WORKDIR, SandboxSpec
from coding_gym.sandbox.temporary import make_folder
from coding_gym.sandbox.zygote import files

_KEPT = frozenset({Promise.FOLDER_RENAMES})
_MISSING = tuple(promise for promise in Promise if promise not in _KEPT)


class NoIsolationWarning(UserWarning):
    """Commands run with the rights of this process."""


class ProcessBackend:
    """Runs commands as ordinary child processes in a temporary copy of the layers."""

    @property
    def name(self) -> str:
        """``"process"``."""
        return "process"

    @property
    def prepares(self) -> bool:
        """False: each command starts when it is run."""
        return False

    def owner(self) -> tuple[int, int]:
        """Returns the uid and gid of this process."""
        return os.geteuid(), os.getegid()

    def probe(self) -> Probe:
        """Says what is missing, which is nearly everything."""
        if shutil.which("bash") is None:
            return Probe(available=False, detail="there is no bash", remedy="install bash")
        detail = "commands run as this user, with no isolation; only when named"
        return Probe(available=True, detail=detail, missing=_MISSING)

    def open(self, spec: SandboxSpec, *, snapshot: Snapshot | None = None) -> "ProcessSandbox":
        """Opens a sandbox that isolates nothing, and warns about that.

        Raises:
            InvalidArgumentError: A layer or mount that does not exist; a snapshot of another
                backend or spec; a persistent shell; an image.
            SandboxError: The temporary copy could not be made.
        """
        warnings.warn(
            "the 'process' sandbox isolates nothing: commands run with your rights",
            NoIsolationWarning,
            stacklevel=2,
        )
        check_env(spec.env)
        if check_shell(spec.shell) == "persistent":
            raise InvalidArgumentError(
                "the 'process' sandbox has no shell='persistent'; use 'fresh', or 'namespace'"
            )
        if spec.image:
            raise InvalidArgumentError(
                f"the 'process' sandbox cannot run the image {spec.image!r}; use 'namespace' or "
                "'docker'"
            )
        if snapshot is not None:
            check_snapshot(snapshot, backend=self.name, spec=spec)
        for path in (*spec.layers, *(mount.source for mount in spec.mounts)):
            if not path.exists():
                raise InvalidArgumentError(f"the sandbox's layer or mount {path} does not exist")
        return ProcessSandbox(spec, snapshot)


class ProcessSandbox:
    """A temporary folder and the commands that run in it."""

    def __init__(self, spec: SandboxSpec, snapshot: Snapshot | None) -> None:
        self._spec = spec
        self._closed = False
        self._group: ProcessGroup | None = None
        try:
            self._folder = make_folder("process")
        except OSError as error:
            raise SandboxError(f"no temporary folder could be made: {error}") from error
        self._copies = {"workspace": Path(self.workdir), "home": self._folder / "home"}
        try:
            self._fill(layers=spec.layers if snapshot is None else ())
        except (OSError, shutil.Error) as error:
            self.close()
            raise SandboxError(f"the layers could not be copied: {error}") from error
        if snapshot is not None:
            self._put_back(snapshot)
        self._places = {
            WORKDIR: self.workdir,
            HOME: str(self._folder / "home"),
            **{mount.target: str(mount.source) for mount in spec.mounts},
        }
        self._env = self._environment()

    @property
    def workdir(self) -> str:
        """Absolute path of the workspace, a folder of the host."""
        return str(self._folder / "workspace")

    def path(self, target: str) -> str:
        """Returns the host path of what the spec mounts at ``target``."""
        return self._places.get(target, target)

    def run(
        self,
        command: str,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        stdin: bytes = b"",
    ) -> ExecResult:
        """Runs a command; see `coding_gym.sandbox.protocol.Sandbox.run`."""
        text, place, variables = prepare_run(
            command,
            timeout_s=timeout_s,
            max_output_bytes=max_output_bytes,
            cwd=cwd,
            env=env,
            stdin=stdin,
        )
        self._require_open()
        folder = self._host_path(place)
        if not folder.is_dir():
            return ExecResult(1, f"bash: cd: {place}: No such file or directory\n")
        script = self._folder / "command"
        script.write_bytes(text)
        with tempfile.TemporaryFile() as source:
            source.write(stdin)
            source.seek(0)
            try:
                self._group = ProcessGroup(
                    script,
                    cwd=folder,
                    env={**self._env, **variables},
                    stdin=source.fileno(),
                    limits=self._spec.limits,
                    max_output_bytes=max_output_bytes,
                )
            except OSError as error:
                if error.errno == errno.E2BIG:
                    return ExecResult(126, "bash: Argument list too long\n")
                raise SandboxError(f"bash could not be started: {error}") from error
        if self._closed:  # by another thread, before there was anything to end
            self._group.end()
        result = self._group.wait(timeout_s)
        self._require_open()  # another thread may have closed it, which ended the command
        return result

    def prepare(self, command: str, *, stdin: bytes = b"") -> None:
        """Leaves the command to `run`; see `coding_gym.sandbox.protocol.Sandbox.prepare`."""

    def read_file(self, path: str, *, max_bytes: int = 64 << 20) -> bytes:
        """Returns a file's bytes; see `coding_gym.sandbox.protocol.Sandbox.read_file`."""
        check_path(path)
        check_max_bytes(max_bytes)
        self._require_open()
        return files.read(str(self._host_path(path)), max_bytes)

    def write_file(self, path: str, data: bytes) -> None:
        """Writes a file; see `coding_gym.sandbox.protocol.Sandbox.write_file`."""
        check_path(path)
        check_data(data)
        self._require_open()
        files.write(str(self._host_path(path)), data)

    def snapshot(self) -> Snapshot:
        """Returns the workspace and the home folder, whole: what differs is not known here.

        So it takes time and memory for what there is. /tmp and /dev/shm are the host's.

        Raises:
            SandboxError: The sandbox is closed, or not everything in it may be read.
        """
        self._require_open()
        try:
            data = copies.pack_copies(self._copies)
        except OSError as error:
            self.close()
            raise SandboxError(f"no snapshot: {error}") from error
        return Snapshot(backend="process", spec=self._spec, data=data)

    def restore(self, snapshot: Snapshot) -> None:
        """Puts workspace and home back; see `coding_gym.sandbox.protocol.Sandbox.restore`."""
        check_snapshot(snapshot, backend="process", spec=self._spec)
        self._require_open()
        self._put_back(snapshot)

    def close(self) -> None:
        """Ends a running command and removes the temporary copy; idempotent."""
        if not self._closed:
            self._closed = True
            if self._group is not None:
                self._group.end()
            remove_folder(self._folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _fill(self, layers: tuple[Path, ...]) -> None:
        workspace = Path(self.workdir)
        workspace.mkdir()
        (self._folder / "home").mkdir()
        for layer in reversed(layers):
            shutil.copytree(layer, workspace, symlinks=True, dirs_exist_ok=True)
        python = self._spec.python
        links = self._folder / "bin"
        links.mkdir()
        if python is not None:
            for name in ("python", "python3"):
                (links / name).symlink_to(python.executable)

    def _put_back(self, snapshot: Snapshot) -> None:
        try:
            copies.unpack_copies(snapshot.data, self._copies)
        except (OSError, ValueError) as error:
            self.close()
            raise SandboxError(f"could not restore the snapshot: {error}") from error

    def _environment(self) -> dict[str, str]:
        env = mounted_packages(self._spec)  # their folder is where the mount comes from
        env |= environment(self._spec, first=(str(self._folder / "bin"),))
        env["HOME"] = self._places[HOME]
        # Where bash and git are may differ from Linux.
        env["PATH"] += ":" + os.environ.get("PATH", os.defpath)
        return {name: self._translated(value) for name, value in env.items()}

    def _translated(self, value: str) -> str:
        """Returns a search path with the folders of the spec replaced by those of the host."""
        return ":".join(
            str(self._host_path(part)) if part.startswith("/") else part
            for part in value.split(":")
        )

    def _host_path(self, path: str) -> Path:
        given = Path(path)
        for target, source in self._places.items():
            if given.is_relative_to(target):
                return Path(source) / given.relative_to(target)
        return Path(self.workdir) / given

    def _require_open(self) -> None:
        if self._closed:
            raise SandboxError("the sandbox is closed")
