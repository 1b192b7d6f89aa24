"""A sandbox of the ``landlock`` backend, as its owner holds it."""

from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from coding_gym.calls import ExecResult
from coding_gym.errors import SandboxError
from coding_gym.sandbox.landlock.guarded import Guarded
from coding_gym.sandbox.namespace_sandbox import NamespaceSandbox
from coding_gym.sandbox.protocol import DEFAULT_MAX_OUTPUT_BYTES, DEFAULT_TIMEOUT_S, Snapshot
from coding_gym.sandbox.snapshots import check_snapshot
from coding_gym.sandbox.spec import WORKDIR, SandboxSpec
from coding_gym.sandbox.zygote import wire

if TYPE_CHECKING:
    from coding_gym.sandbox.incarnation import Incarnation

NAME = "landlock"
_RESTORE_TIMEOUT_S = 60.0


class LandlockSandbox:
    """The owner's handle: a channel, as that of a ``namespace`` sandbox, and where things are.

    Args:
        spec: What it was opened with.
        life: Its processes, which are ready.
        places: Folders and files of the host, by the path at which the spec wants them.
    """

    def __init__(self, spec: SandboxSpec, life: Guarded, places: dict[str, Path]) -> None:
        self._spec = spec
        self._life = life
        self._places = places
        # All that it asks of a life this one has too, but for another one: it restores in place.
        self._session = NamespaceSandbox(spec, cast("Incarnation", life), _no_other_life)

    @property
    def workdir(self) -> str:
        """Absolute path of the workspace, a folder of the host."""
        return str(self._places[WORKDIR])

    def path(self, target: str) -> str:
        """Returns the host path of what the spec mounts at ``target``."""
        return translated(target, self._places)

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
        return self._session.run(
            command,
            timeout_s=timeout_s,
            max_output_bytes=max_output_bytes,
            cwd=self._absolute(cwd) if cwd else self.workdir if env or stdin else None,
            env=env,
            stdin=stdin,
        )

    def prepare(self, command: str, *, stdin: bytes = b"") -> None:
        """Leaves the command to `run`; see `coding_gym.sandbox.protocol.Sandbox.prepare`."""

    def read_file(self, path: str, *, max_bytes: int = 64 << 20) -> bytes:
        """Returns a file's bytes; see `coding_gym.sandbox.protocol.Sandbox.read_file`."""
        return self._session.read_file(self._absolute(path), max_bytes=max_bytes)

    def write_file(self, path: str, data: bytes) -> None:
        """Writes a file; see `coding_gym.sandbox.protocol.Sandbox.write_file`."""
        self._session.write_file(self._absolute(path), data)

    def snapshot(self) -> Snapshot:
        """Returns all files that commands may write; see `protocol.Sandbox.snapshot`.

        Takes time and memory for all that there is: nothing tells what a command has changed.
        """
        return replace(self._session.snapshot(), backend=NAME)

    def restore(self, snapshot: Snapshot) -> None:
        """Puts all files back; see `coding_gym.sandbox.protocol.Sandbox.restore`."""
        check_snapshot(snapshot, backend=NAME, spec=self._spec)
        channel = self._life.channel
        try:
            channel.call(
                wire.pack({"op": "restore"}), timeout_s=_RESTORE_TIMEOUT_S, max_body_bytes=0
            )
            channel.upload(snapshot.data, timeout_s=_RESTORE_TIMEOUT_S)
            header, _ = channel.call(b"", timeout_s=_RESTORE_TIMEOUT_S, max_body_bytes=0)
            if "error" in header:
                raise SandboxError(header["error"])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends every process and drops every file of the sandbox; idempotent."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _absolute(self, path: str) -> str:
        if not path:  # refused further down
            return path
        return translated(path, self._places) if path.startswith("/") else f"{self.workdir}/{path}"


def translated(path: str, places: dict[str, Path]) -> str:
    """Returns the host path of a path that would be at or below one of the places."""
    given = PurePosixPath(path)
    for place in sorted(places, key=len, reverse=True):
        if given.is_relative_to(place):
            # As text: what is below may hold `..`, which must resolve where it is used.
            return str(places[place]) + path[len(place) :] if path.startswith(place) else path
    return path


def _no_other_life(_: Snapshot) -> "Incarnation":
    raise SandboxError("a landlock sandbox restores in place")
