"""A sandbox of the ``namespace`` backend, as its owner holds it."""

from collections.abc import Callable
from functools import lru_cache
from types import TracebackType
from typing import Any, Self

from coding_gym.calls import ExecResult
from coding_gym.sandbox.incarnation import Incarnation
from coding_gym.sandbox.protocol import DEFAULT_MAX_OUTPUT_BYTES, DEFAULT_TIMEOUT_S, Snapshot
from coding_gym.sandbox.results import (
    check_data,
    check_max_bytes,
    check_path,
    prepare_run,
    render_output,
)
from coding_gym.sandbox.snapshots import check_fits, check_snapshot, max_snapshot_bytes
from coding_gym.sandbox.spec import WORKDIR, SandboxSpec
from coding_gym.sandbox.zygote import wire

# What an answer may take beyond the command's own time limit.
_ANSWER_TIMEOUT_S = 30.0
# Around a cut in the output: no more than the request asked for, and a little.
_SLACK_BYTES = 1 << 12
_NUM_REQUESTS = 64


class NamespaceSandbox:
    """The owner's handle: a channel to the sandbox's first process.

    The channel is all there is. When it closes, for whatever reason, the sandbox ends.

    Args:
        spec: What it was opened with.
        life: Its first process, which is ready.
        start: Starts another one with the files of a snapshot.
    """

    def __init__(
        self, spec: SandboxSpec, life: Incarnation, start: Callable[[Snapshot], Incarnation]
    ) -> None:
        self._spec = spec
        self._life = life
        self._start = start
        self._is_closed = False

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
        bounds = float(timeout_s), int(max_output_bytes)
        if cwd is None and not env and not stdin:
            request = _plain_request(*bounds)
        else:
            request = _own_request(*bounds, _absolute(folder), variables, len(stdin))
        header, body = self._call(
            request,
            text + stdin,
            timeout_s=float(timeout_s) + _ANSWER_TIMEOUT_S,
            max_body_bytes=max_output_bytes + _SLACK_BYTES,
        )
        try:
            return _result(header, body)
        except (KeyError, TypeError) as error:
            raise self._life.channel.give_up(f"the sandbox answered nonsense: {error!r}") from error

    def prepare(self, command: str, *, stdin: bytes = b"") -> None:
        """Starts a command ahead; see `coding_gym.sandbox.protocol.Sandbox.prepare`."""
        text, _, _ = prepare_run(
            command,
            timeout_s=DEFAULT_TIMEOUT_S,
            max_output_bytes=DEFAULT_MAX_OUTPUT_BYTES,
            cwd=None,
            env=None,
            stdin=stdin,
        )
        self._call(wire.header_text({"op": "prepare", "stdin_bytes": len(stdin)}), text + stdin)

    def read_file(self, path: str, *, max_bytes: int = 64 << 20) -> bytes:
        """Returns a file's bytes; see `coding_gym.sandbox.protocol.Sandbox.read_file`."""
        check_path(path)
        check_max_bytes(max_bytes)
        request = wire.header_text({"op": "read", "path": path, "max_bytes": max_bytes})
        header, body = self._call(request, max_body_bytes=max_bytes)
        _raise_file_error(header, path)
        return body

    def write_file(self, path: str, data: bytes) -> None:
        """Writes a file; see `coding_gym.sandbox.protocol.Sandbox.write_file`."""
        check_path(path)
        check_data(data)
        header, _ = self._call(wire.header_text({"op": "write", "path": path}), data)
        _raise_file_error(header, path)

    def snapshot(self) -> Snapshot:
        """Returns its changed files; see `coding_gym.sandbox.protocol.Sandbox.snapshot`."""
        data = self._life.channel.download(
            wire.pack({"op": "snapshot"}),
            timeout_s=_ANSWER_TIMEOUT_S,
            max_bytes=max_snapshot_bytes(self._spec.limits),
        )
        return Snapshot(backend="namespace", spec=self._spec, data=data)

    def restore(self, snapshot: Snapshot) -> None:
        """Puts all files back; see `coding_gym.sandbox.protocol.Sandbox.restore`.

        Nothing is changed under the feet of the overlay: a new first process takes the place of
        this one, and is what `NamespaceBackend.open` starts for a fork too.
        """
        check_snapshot(snapshot, backend="namespace", spec=self._spec)
        check_fits(snapshot)
        old = self._life
        old.channel.require_open()
        old.channel.shut()  # it ends while the other starts
        try:
            self._life = self._start(snapshot)
        except BaseException:
            self.close()
            raise
        old.close()
        if self._is_closed:
            self._life.close()

    def close(self) -> None:
        """Ends every process and drops every file of the sandbox; idempotent."""
        # In this order: a restore in another thread looks after it has changed the life.
        self._is_closed = True
        self._life.close()

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
        request: bytes,
        body: bytes = b"",
        *,
        timeout_s: float = _ANSWER_TIMEOUT_S,
        max_body_bytes: int = 0,
    ) -> tuple[dict[str, Any], bytes]:
        header, answer = self._life.channel.call(
            wire.pack_text(request, body), timeout_s=timeout_s, max_body_bytes=max_body_bytes
        )
        if "error" in header:
            raise self._life.channel.give_up(f"the sandbox failed: {header['error']}")
        return header, answer


def _own_request(
    timeout_s: float,
    max_output_bytes: int,
    cwd: str,
    env: dict[str, str],
    stdin_bytes: int,
    *,
    is_plain: bool = False,
) -> bytes:
    """Returns the header that asks for a command with its own folder, variables or input."""
    return wire.header_text(
        {
            "op": "run",
            "timeout_s": timeout_s,
            "max_output_bytes": max_output_bytes,
            "cwd": cwd,
            "env": env,
            "stdin_bytes": stdin_bytes,
            "is_plain": is_plain,
        }
    )


@lru_cache(_NUM_REQUESTS)
def _plain_request(timeout_s: float, max_output_bytes: int) -> bytes:
    """Returns the header that asks for any other command, the same bytes every time."""
    return _own_request(timeout_s, max_output_bytes, WORKDIR, {}, 0, is_plain=True)


def _absolute(path: str) -> str:
    return path if path.startswith("/") else f"{WORKDIR}/{path}"


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
