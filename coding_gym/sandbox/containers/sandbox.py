"""A sandbox of the ``docker`` backend, as its owner holds it."""

import signal
from collections.abc import Callable
from types import TracebackType
from typing import Self

from coding_gym.calls import ExecResult
from coding_gym.sandbox.containers import files, layers, snapshots
from coding_gym.sandbox.containers.container import Container
from coding_gym.sandbox.protocol import DEFAULT_MAX_OUTPUT_BYTES, DEFAULT_TIMEOUT_S, Snapshot
from coding_gym.sandbox.results import (
    check_data,
    check_max_bytes,
    check_path,
    prepare_run,
    render_output,
)
from coding_gym.sandbox.snapshots import check_snapshot, max_snapshot_bytes
from coding_gym.sandbox.spec import WORKDIR, SandboxSpec
from coding_gym.sandbox.zygote.output import BoundedOutput
from coding_gym.sandbox.zygote.replies import shell_exit_code

NAME = "docker"


class DockerSandbox:
    """The owner's handle of a container, or after a restore of its successor.

    Args:
        spec: What it is.
        start: Gives a container of that spec in which nothing has run.
        snapshot: Files that it has from the start.
    """

    def __init__(
        self,
        spec: SandboxSpec,
        start: Callable[[], Container],
        snapshot: Snapshot | None = None,
    ) -> None:
        self._spec = spec
        self._start = start
        self._container = start()
        if snapshot is not None:
            self._put(snapshot)

    @property
    def workdir(self) -> str:
        """Absolute path of the workspace as commands see it."""
        return WORKDIR

    def path(self, target: str) -> str:
        """Returns ``target``: what the spec mounts there is there."""
        return target

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
        text, folder, variables = prepare_run(
            command,
            timeout_s=timeout_s,
            max_output_bytes=max_output_bytes,
            cwd=cwd,
            env=env,
            stdin=stdin,
        )
        kept = BoundedOutput(max_output_bytes)
        ending = self._container.channel.run(
            text,
            folder=folder if folder.startswith("/") else f"{WORKDIR}/{folder}",
            variables=variables,
            stdin=stdin,
            timeout_s=float(timeout_s),
            output=kept,
        )
        output, truncated = render_output(*kept.parts(), kept.num_bytes)
        return ExecResult(
            exit_code=shell_exit_code(ending.exit_code, finished=not ending.timed_out),
            output=output,
            timed_out=ending.timed_out,
            truncated=truncated,
            duration_s=ending.duration_s,
            num_leftovers=0 if ending.timed_out else ending.num_leftovers,
            # What the kernel killed may have been the shell, or something that it waited for.
            out_of_memory=ending.ran_out_of_memory and ending.exit_code == 128 + signal.SIGKILL,
        )

    def prepare(self, command: str, *, stdin: bytes = b"") -> None:
        """Leaves the command to `run`; see `coding_gym.sandbox.protocol.Sandbox.prepare`."""

    def read_file(self, path: str, *, max_bytes: int = 64 << 20) -> bytes:
        """Returns a file's bytes; see `coding_gym.sandbox.protocol.Sandbox.read_file`."""
        check_path(path)
        check_max_bytes(max_bytes)
        script = files.read_script(path, max_bytes)
        limit = max_bytes + files.MESSAGE_BYTES
        code, data = self._container.channel.run_script(script, max_output_bytes=limit)
        files.raise_error(code, data, path, max_bytes=max_bytes)
        return data

    def write_file(self, path: str, data: bytes) -> None:
        """Writes a file; see `coding_gym.sandbox.protocol.Sandbox.write_file`."""
        check_path(path)
        check_data(data)
        code, message = self._container.channel.run_script(files.write_script(path), data)
        files.raise_error(code, message, path)

    def snapshot(self) -> Snapshot:
        """Returns the files that differ; see `coding_gym.sandbox.protocol.Sandbox.snapshot`."""
        limit = max_snapshot_bytes(self._spec.limits)
        data = snapshots.take(
            lambda script, stdin: self._container.channel.run_script(
                script, stdin, max_output_bytes=limit
            ),
            layers.names(self._spec.layers),
            self._container.started_at(),
        )
        return Snapshot(backend=NAME, spec=self._spec, data=data)

    def restore(self, snapshot: Snapshot) -> None:
        """Puts every file back; see `coding_gym.sandbox.protocol.Sandbox.restore`."""
        check_snapshot(snapshot, backend=NAME, spec=self._spec)
        self._container.channel.require_open()
        self._container.close()
        self._container = self._start()
        self._put(snapshot)

    def close(self) -> None:
        """Ends every process and drops every file of the sandbox; idempotent."""
        self._container.close()

    def _put(self, snapshot: Snapshot) -> None:
        try:
            snapshots.put(self._container.channel.run_script, snapshot.data)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
