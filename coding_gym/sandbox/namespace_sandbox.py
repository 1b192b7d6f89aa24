"""A sandbox of the ``namespace`` backend, as its owner holds it."""

import socket
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from coding_gym.calls import ExecResult
from coding_gym.sandbox import disk_uppers
from coding_gym.sandbox.channel import Channel
from coding_gym.sandbox.protocol import DEFAULT_MAX_OUTPUT_BYTES, DEFAULT_TIMEOUT_S
from coding_gym.sandbox.results import (
    check_data,
    check_max_bytes,
    check_path,
    prepare_run,
    render_output,
)
from coding_gym.sandbox.spec import WORKDIR
from coding_gym.sandbox.zygote import wire
from coding_gym.sandbox.zygote.steps import SetupError

_READY_TIMEOUT_S = 30.0
# What an answer may take beyond the command's own time limit.
_ANSWER_TIMEOUT_S = 30.0
# Around a cut in the output: no more than the request asked for, and a little.
_SLACK_BYTES = 1 << 12


class NamespaceSandbox:
    """The owner's handle: a channel to the sandbox's first process.

    The channel is all there is. When it closes, for whatever reason, the sandbox ends.

    Args:
        channel: Connects to the first process, which is still setting the sandbox up.
        upper: The folder on disk that holds the sandbox's changes, which goes with it.
    """

    def __init__(self, channel: socket.socket, upper: Path | None = None) -> None:
        self._channel = Channel(channel)
        self._upper = upper

    def wait_until_ready(self) -> None:
        """Waits for the end of the set-up.

        Raises:
            SetupError: A step of it failed.
            SandboxError: The first process died, or does not answer.
        """
        try:
            header, _ = self._channel.call(b"", timeout_s=_READY_TIMEOUT_S, max_body_bytes=0)
            if "error" in header:
                raise SetupError.from_json(header["error"])
        except BaseException:
            self.close()
            raise

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
        header, body = self._call(
            {
                "op": "run",
                "timeout_s": float(timeout_s),
                "max_output_bytes": int(max_output_bytes),
                "cwd": _absolute(folder),
                "env": variables,
                "command_bytes": len(text),
            },
            text + stdin,
            timeout_s=float(timeout_s) + _ANSWER_TIMEOUT_S,
            max_body_bytes=max_output_bytes + _SLACK_BYTES,
        )
        try:
            return _result(header, body)
        except (KeyError, TypeError) as error:
            raise self._channel.give_up(f"the sandbox answered nonsense: {error!r}") from error

    def read_file(self, path: str, *, max_bytes: int = 64 << 20) -> bytes:
        """Returns a file's bytes; see `coding_gym.sandbox.protocol.Sandbox.read_file`."""
        check_path(path)
        check_max_bytes(max_bytes)
        request = {"op": "read", "path": path, "max_bytes": max_bytes}
        header, body = self._call(request, max_body_bytes=max_bytes)
        _raise_file_error(header, path)
        return body

    def write_file(self, path: str, data: bytes) -> None:
        """Writes a file; see `coding_gym.sandbox.protocol.Sandbox.write_file`."""
        check_path(path)
        check_data(data)
        header, _ = self._call({"op": "write", "path": path}, data)
        _raise_file_error(header, path)

    def close(self) -> None:
        """Ends every process and drops every file of the sandbox; idempotent."""
        if self._channel.close() and self._upper is not None:
            disk_uppers.remove(self._upper)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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


def _absolute(path: str) -> str:
    return path if path.startswith("/") else f"{WORKDIR}/{path}"


def _result(header: dict[str, Any], body: bytes) -> ExecResult:
    head, tail = body[: header["head_bytes"]], body[header["head_bytes"] :]
    output, truncated = render_output(head, tail, header["num_bytes"])
    return ExecResult(
        exit_code=header["exit_code"],
        output=output,
        timed_out=header["timed_out"],
        truncated=truncated,
        duration_s=header["duration_s"],
        num_leftovers=header["num_leftovers"],
    )


def _raise_file_error(header: dict[str, Any], path: str) -> None:
    if "errno" in header:
        raise OSError(header["errno"], header["reason"], path)
