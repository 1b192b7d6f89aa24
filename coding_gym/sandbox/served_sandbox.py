"""The owner's handle of a sandbox with an inner server."""

import logging
import posixpath
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any, Self

from coding_gym.calls import ExecResult
from coding_gym.errors import SandboxError
from coding_gym.sandbox.backend_checks import (
    check_data,
    check_max_bytes,
    check_path,
    prepare_run,
    render_output,
)
from coding_gym.sandbox.channel import Channel
from coding_gym.sandbox.protocol import DEFAULT_MAX_OUTPUT_BYTES, DEFAULT_TIMEOUT_S, Snapshot
from coding_gym.sandbox.python_source import python_command
from coding_gym.sandbox.snapshots import check_fits, check_snapshot, max_snapshot_bytes
from coding_gym.sandbox.spec import WORKDIR, SandboxSpec
from coding_gym.sandbox.zygote import wire

_log = logging.getLogger(__name__)
# Time for a reply beyond the command's own time limit.
_ANSWER_TIMEOUT_S = 30.0
_RESTORE_TIMEOUT_S = 60.0
# Around a cut in the output: no more than the request asked for, and a little.
_SLACK_BYTES = 1 << 12


class ServedSandbox:
    """A sandbox of the ``namespace``, ``landlock`` or ``process`` backend.

    The sandbox ends when the channel closes, for whatever reason.

    Args:
        backend: Name of the backend.
        spec: The spec that it was opened with.
        channel: To its first process, which is ready.
        places: Host paths by the paths that the spec gives them.
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
        places: Mapping[str, str] | None = None,
        start: Callable[[Snapshot], Channel] | None = None,
    ) -> None:
        self._backend = backend
        self._spec = spec
        self._channel = channel
        self._places = places or {}
        self.workdir = self._places.get(WORKDIR, WORKDIR)
        self._start = start
        self._is_closed = False

    def path(self, target: str) -> str:
        """Returns the path at which commands see the mount at ``target``."""
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
        return self._run(command, timeout_s, max_output_bytes, cwd, env, stdin)

    def run_python(
        self,
        source: str,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES,
        stdin: bytes = b"",
        env: dict[str, str] | None = None,
    ) -> ExecResult:
        """Runs Python source; see `coding_gym.sandbox.protocol.Sandbox.run_python`."""
        command = python_command(source)
        return self._run(command, timeout_s, max_output_bytes, WORKDIR, env, stdin, source)

    def _run(
        self,
        command: str,
        timeout_s: float,
        max_output_bytes: int,
        cwd: str | None,
        env: dict[str, str] | None,
        stdin: bytes,
        source: str | None = None,
    ) -> ExecResult:
        """Runs a command; a preloaded interpreter may run its Python ``source`` instead."""
        text, _, variables = prepare_run(command, timeout_s, max_output_bytes, cwd, env, stdin)
        here = self.workdir
        request = {
            "op": "run",
            "timeout_s": float(timeout_s),
            "max_output_bytes": int(max_output_bytes),
            "cwd": here if cwd is None else posixpath.join(here, self.path(cwd)),
            "env": variables,
            "stdin_bytes": len(stdin),
            "is_plain": cwd is None and not env and not stdin,
        }
        if source is not None and self._spec.preload:
            request["source"] = source
        header, body = self._call(
            request,
            text + stdin,
            timeout_s=float(timeout_s) + _ANSWER_TIMEOUT_S,
            max_body_bytes=max_output_bytes + _SLACK_BYTES,
        )
        if header.get("is_cold"):
            _log.debug("a Python run started cold, without %s", ", ".join(self._spec.preload))
        try:
            return _result(header, body)
        except (KeyError, TypeError) as error:
            raise self._channel.give_up(f"the sandbox's reply is malformed: {error!r}") from error

    def read_file(self, path: str, *, max_bytes: int = 64 << 20) -> bytes:
        """Returns a file's bytes; see `coding_gym.sandbox.protocol.Sandbox.read_file`."""
        check_path(path)
        check_max_bytes(max_bytes)
        request = {"op": "read", "path": self.path(path), "max_bytes": max_bytes}
        header, body = self._call(request, max_body_bytes=max_bytes)
        _raise_file_error(header, path)
        return body

    def write_file(self, path: str, data: bytes) -> None:
        """Writes a file; see `coding_gym.sandbox.protocol.Sandbox.write_file`."""
        check_path(path)
        check_data(data)
        header, _ = self._call({"op": "write", "path": self.path(path)}, data)
        _raise_file_error(header, path)

    def snapshot(self) -> Snapshot:
        """Returns its changed files; see `coding_gym.sandbox.protocol.Sandbox.snapshot`."""
        data = self._channel.download(
            wire.pack({"op": "snapshot"}),
            timeout_s=_ANSWER_TIMEOUT_S,
            max_bytes=max_snapshot_bytes(self._spec.limits, backend=self._backend),
        )
        return Snapshot(backend=self._backend, spec=self._spec, data=data)

    def restore(self, snapshot: Snapshot) -> None:
        """Puts all files back; see `coding_gym.sandbox.protocol.Sandbox.restore`."""
        check_snapshot(snapshot, backend=self._backend, spec=self._spec)
        check_fits(snapshot)
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
        self._call({"op": "restore"}, timeout_s=_RESTORE_TIMEOUT_S)
        self._channel.upload(snapshot.data, timeout_s=_RESTORE_TIMEOUT_S)
        header, _ = self._channel.call(b"", timeout_s=_RESTORE_TIMEOUT_S, max_body_bytes=0)
        if "error" in header:
            raise SandboxError(header["error"])

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(
        self,
        request: dict[str, Any],
        body: bytes = b"",
        *,
        timeout_s: float = _ANSWER_TIMEOUT_S,
        max_body_bytes: int = 0,
    ) -> tuple[dict[str, Any], bytes]:
        header, answer = self._channel.call(
            wire.pack(request, body), timeout_s=timeout_s, max_body_bytes=max_body_bytes
        )
        if "error" in header:
            raise self._channel.give_up(f"the sandbox failed: {header['error']}")
        return header, answer


def translated(path: str, places: Mapping[str, str]) -> str:
    """Returns the host path of a path at or below one of the places."""
    given = PurePosixPath(path)
    for place in sorted(places, key=len, reverse=True):
        if given.is_relative_to(place):
            # As text: what is below may hold `..`, which must resolve where it is used.
            return places[place] + path[len(place) :] if path.startswith(place) else path
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
        shell_lost=header.get("shell_lost", False),
    )


def _raise_file_error(header: dict[str, Any], path: str) -> None:
    if "errno" in header:
        raise OSError(header["errno"], header["reason"], path)
