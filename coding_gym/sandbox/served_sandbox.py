"""The owner's handle of a sandbox with an inner server."""

import json
import posixpath
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from coding_gym.calls import ExecResult
from coding_gym.sandbox.backend_checks import (
    CheckedSandbox,
    Run,
    check_snapshot,
    max_snapshot_bytes,
    render_output,
)
from coding_gym.sandbox.channel import SNAPSHOT_TIMEOUT_S, Channel, memory_file
from coding_gym.sandbox.protocol import Snapshot
from coding_gym.sandbox.spec import WORKDIR, SandboxSpec

# Time for a reply beyond the command's own time limit.
_ANSWER_TIMEOUT_S = 30.0
# Around a cut in the output: at most the requested size, and a little.
_SLACK_BYTES = 1 << 12


class ServedSandbox(CheckedSandbox):
    """A sandbox of the ``namespace`` or ``landlock`` backend.

    The sandbox ends when the channel closes, for whatever reason.

    Args:
        backend: Name of the backend.
        spec: The spec that it was opened with.
        channel: To its first process, which is ready.
        host_paths: Host paths by the paths that the spec gives them.
        start: Starts another first process with the files of a snapshot; None where this one puts
            them back itself.

    Attributes:
        workdir: Absolute path of the workspace as commands see it.
    """

    def __init__(
        self,
        backend: str,
        spec: SandboxSpec,
        channel: Channel,
        *,
        host_paths: Mapping[str, str] | None = None,
        start: Callable[[Snapshot], Channel] | None = None,
    ) -> None:
        self._backend = backend
        self._spec = spec
        self._shell = spec.shell
        self._channel = channel
        self._host_paths = host_paths or {}
        self.workdir = self._host_paths.get(WORKDIR, WORKDIR)
        self._start = start
        self._is_closed = False

    def path(self, target: str) -> str:
        """Returns the path at which commands see the mount at ``target``."""
        return translated(target, self._host_paths)

    def _run(self, run: Run) -> ExecResult:
        if run.source and self._channel.forks_python:
            return self._fork(run)
        request = {
            "op": "run",
            "timeout_s": run.timeout_s,
            "max_output_bytes": run.max_output_bytes,
            "cwd": posixpath.join(self.workdir, self.path(run.cwd or WORKDIR)),
            "env": run.env,
            "stdin_bytes": len(run.stdin),
            "is_plain": run.cwd is None and not run.env and not run.stdin,
        }
        return self._result(
            self._call(
                request,
                run.command + run.stdin,
                timeout_s=run.timeout_s + _ANSWER_TIMEOUT_S,
                max_body_bytes=run.max_output_bytes + _SLACK_BYTES,
            )
        )

    def _fork(self, run: Run) -> ExecResult:
        """Runs Python source in a fork of the first process, which passes it on unread."""
        order = json.dumps([run.source, run.env]).encode()
        with memory_file(b"%010d" % len(order) + order + run.stdin) as file:
            return self._result(
                self._call(
                    {
                        "op": "python",
                        "timeout_s": run.timeout_s,
                        "max_output_bytes": run.max_output_bytes,
                    },
                    timeout_s=run.timeout_s + _ANSWER_TIMEOUT_S,
                    max_body_bytes=run.max_output_bytes + _SLACK_BYTES,
                    file=file,
                )
            )

    def _result(self, reply: tuple[dict[str, Any], bytes]) -> ExecResult:
        try:
            return _result(*reply)
        except (KeyError, TypeError) as error:
            raise self._channel.give_up(f"the sandbox's reply is malformed: {error!r}") from error

    def _read(self, path: str, max_bytes: int) -> bytes:
        request = {"op": "read", "path": self.path(path), "max_bytes": max_bytes}
        header, body = self._call(request, max_body_bytes=max_bytes)
        _raise_file_error(header, path)
        return body

    def _write(self, path: str, data: bytes) -> None:
        header, _ = self._call({"op": "write", "path": self.path(path)}, data)
        _raise_file_error(header, path)

    def snapshot(self) -> Snapshot:
        """Returns its changed files; see `coding_gym.sandbox.protocol.Sandbox.snapshot`."""
        limit = max_snapshot_bytes(self._spec.limits)
        with memory_file(size=limit) as file:
            header, _ = self._call({"op": "snapshot"}, timeout_s=SNAPSHOT_TIMEOUT_S, file=file)
            size = header.get("size")
            if type(size) is not int or not 0 <= size <= limit:
                raise self._channel.give_up(f"the sandbox's reply is malformed: {header!r}")
            data = file.read(size)
        return Snapshot(backend=self._backend, spec=self._spec, data=data)

    def restore(self, snapshot: Snapshot) -> None:
        """Puts all files back; see `coding_gym.sandbox.protocol.Sandbox.restore`."""
        check_snapshot(snapshot, backend=self._backend, spec=self._spec)
        self._channel.require_open()
        try:
            if self._start is None:
                self._put_back(snapshot)
            else:
                self._start_again(snapshot, self._start)
        except BaseException:
            self.close()
            raise

    def _put_back(self, snapshot: Snapshot) -> None:
        """Has the inner server replace all files."""
        with memory_file(snapshot.data) as file:
            self._call({"op": "restore"}, timeout_s=SNAPSHOT_TIMEOUT_S, file=file)

    def _start_again(self, snapshot: Snapshot, start: Callable[[Snapshot], Channel]) -> None:
        """Replaces the first process: a mounted overlay's folders must not change."""
        old = self._channel
        old.shut()  # it ends while the other starts
        self._channel = start(snapshot)
        old.close()
        if self._is_closed:
            self._channel.close()

    def close(self) -> None:
        """Ends every process and drops every file of the sandbox; idempotent."""
        # In this order: a restore in another thread looks after it has changed the channel.
        self._is_closed = True
        self._channel.close()

    def _call(
        self,
        request: dict[str, Any],
        body: bytes = b"",
        *,
        timeout_s: float = _ANSWER_TIMEOUT_S,
        max_body_bytes: int = 0,
        file: BinaryIO | None = None,
    ) -> tuple[dict[str, Any], bytes]:
        header, answer = self._channel.call(
            request, body, timeout_s=timeout_s, max_body_bytes=max_body_bytes, file=file
        )
        if "error" in header:
            raise self._channel.give_up(f"the sandbox failed: {header['error']}")
        return header, answer


def translated(path: str, host_paths: Mapping[str, str]) -> str:
    """Returns the host path of a path at or below one of the spec's paths."""
    pure_path = PurePosixPath(path)
    for target in sorted(host_paths, key=len, reverse=True):
        if pure_path.is_relative_to(target):
            # As text: what is below may hold `..`, which must resolve where it is used.
            return host_paths[target] + path[len(target) :] if path.startswith(target) else path
    return path


def _result(header: dict[str, Any], body: bytes) -> ExecResult:
    head, tail = body[: header["head_bytes"]], body[header["head_bytes"] :]
    output, truncated = render_output(head, tail, header["num_bytes"])
    return ExecResult(
        exit_code=header["exit_code"],
        output=output,
        timed_out=header.get("timed_out", False),
        truncated=truncated,
        duration_s=header["duration_s"],
        num_leftovers=header.get("num_leftovers", 0),
        out_of_memory=header.get("out_of_memory", False),
    )


def _raise_file_error(header: dict[str, Any], path: str) -> None:
    if "errno" in header:
        raise OSError(header["errno"], header["reason"], path)
