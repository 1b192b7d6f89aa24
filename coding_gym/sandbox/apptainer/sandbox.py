"""A sandbox of the ``apptainer`` backend, as its owner holds it."""

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from coding_gym.calls import ExecResult
from coding_gym.errors import SandboxError
from coding_gym.sandbox.apptainer.container import ApptainerContainer
from coding_gym.sandbox.containers.sandbox import DockerSandbox
from coding_gym.sandbox.copies import pack_copies, unpack_copies
from coding_gym.sandbox.protocol import Snapshot
from coding_gym.sandbox.removal import remove_folder
from coding_gym.sandbox.snapshots import check_snapshot
from coding_gym.sandbox.spec import SandboxSpec

if TYPE_CHECKING:
    from coding_gym.sandbox.containers.container import Container

NAME = "apptainer"


class ApptainerSandbox:
    """The owner's handle: a container, and the folders of the host that it may write.

    Args:
        spec: What it was opened with.
        folder: Holds all that the sandbox wrote; goes with it.
        folders: Those that it may write, by name.
        start: Starts its container, with these folders.
    """

    def __init__(
        self,
        spec: SandboxSpec,
        folder: Path,
        folders: dict[str, Path],
        start: Callable[[], ApptainerContainer],
    ) -> None:
        self._spec = spec
        self._folder = folder
        self._folders = folders
        self._start = start
        self._enter()

    @property
    def workdir(self) -> str:
        """Absolute path of the workspace as commands see it."""
        return self._session.workdir

    def path(self, target: str) -> str:
        """Returns ``target``: what the spec mounts there is there."""
        return target

    def run(self, command: str, **options: Any) -> ExecResult:
        """Runs a command; see `coding_gym.sandbox.protocol.Sandbox.run`."""
        return self._session.run(command, **options)

    def prepare(self, command: str, *, stdin: bytes = b"") -> None:
        """Leaves the command to `run`; see `coding_gym.sandbox.protocol.Sandbox.prepare`."""

    def read_file(self, path: str, *, max_bytes: int = 64 << 20) -> bytes:
        """Returns a file's bytes; see `coding_gym.sandbox.protocol.Sandbox.read_file`."""
        return self._session.read_file(path, max_bytes=max_bytes)

    def write_file(self, path: str, data: bytes) -> None:
        """Writes a file; see `coding_gym.sandbox.protocol.Sandbox.write_file`."""
        self._session.write_file(path, data)

    def snapshot(self) -> Snapshot:
        """Returns all files that commands may write; see `protocol.Sandbox.snapshot`."""
        self._container.channel.require_open()
        try:
            data = pack_copies(self._folders)
        except OSError as error:
            raise SandboxError(f"no snapshot: {error}") from error
        return Snapshot(backend=NAME, spec=self._spec, data=data)

    def restore(self, snapshot: Snapshot) -> None:
        """Puts all files back, into a new container; see `protocol.Sandbox.restore`."""
        check_snapshot(snapshot, backend=NAME, spec=self._spec)
        self._container.channel.require_open()
        self._container.close()
        try:
            unpack_copies(snapshot.data, self._folders)
            self._enter()
        except (OSError, ValueError) as error:
            self.close()
            raise SandboxError(f"could not restore the snapshot: {error}") from error

    def close(self) -> None:
        """Ends every process and drops every file of the sandbox; idempotent."""
        self._container.close()
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

    def _enter(self) -> None:
        self._container = self._start()
        # All that it asks of a container this one has too, but for snapshots.
        self._session = DockerSandbox(self._spec, lambda: cast("Container", self._container))
