"""The owner's handle of a sandbox in a container, whatever runs the container."""

import contextlib
import errno
import os
import posixpath
import secrets
import signal
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from coding_gym.calls import ExecResult
from coding_gym.errors import SandboxError
from coding_gym.host import network as host_network
from coding_gym.sandbox import backend_checks, layer_union
from coding_gym.sandbox.backend_checks import (
    CheckedSandbox,
    Run,
    check_snapshot,
    max_snapshot_bytes,
    render_output,
)
from coding_gym.sandbox.channel import OwnerHandle
from coding_gym.sandbox.containers import container_files
from coding_gym.sandbox.containers.loop_protocol import Answer, Transport, request
from coding_gym.sandbox.inside.output import BoundedOutput
from coding_gym.sandbox.protocol import Snapshot
from coding_gym.sandbox.spec import WORKDIR, SandboxSpec, environment, mounted_packages

_TIMEOUT_EXIT_CODE = 124
_CLOSE_TIMEOUT_S = 5.0
_SCRIPT_TIMEOUT_S = 120.0
_SEND_TIMEOUT_S = 20.0
_SLOWEST_BYTES_PER_S = 2 << 20
# bash may sleep through the end of a command, very rarely; a poke wakes it. See loop.sh.
_FIRST_POKE_S, _LAST_POKE_S = 0.05, 4.0
_KILL_AGAIN_S = 0.5
_NUM_KILLS_BY_REQUEST, _MAX_KILLS = 4, 40
_MAX_MESSAGE_BYTES = 1 << 20


class ContainerSandbox(CheckedSandbox, OwnerHandle):
    """A container, or after a restore its successor.

    After the first failure of the transport every call raises SandboxError with the same reason.

    Args:
        backend: Name of the backend.
        spec: The sandbox's spec.
        start: Returns a container of that spec in which nothing has run.
        snapshot: Files that the sandbox has from the start.
    """

    def __init__(
        self,
        backend: str,
        spec: SandboxSpec,
        start: Callable[[], Transport],
        snapshot: Snapshot | None = None,
    ) -> None:
        super().__init__()
        self._backend = backend
        self._spec = spec
        self._shell = spec.shell
        self._start = start
        self._transport = start()
        self._num_out_of_memory = 0
        if snapshot is not None:
            self._put(snapshot)

    def _run(self, run: Run) -> ExecResult:
        kept = BoundedOutput(run.max_output_bytes)
        result = self._exchange(run, kept)
        output, truncated = render_output(*kept.parts(), kept.num_bytes)
        return replace(result, output=output, truncated=truncated)

    def _read(self, path: str, max_bytes: int) -> bytes:
        script = container_files.read_script(path, max_bytes)
        code, data = self._run_script(script, b"", max_bytes + container_files.MESSAGE_BYTES)
        container_files.raise_error(code, data, path)
        if len(data) > max_bytes:
            raise OSError(errno.EFBIG, f"larger than {max_bytes} bytes", path)
        return data

    def _write(self, path: str, data: bytes) -> None:
        code, message = self._run_script(container_files.write_script(path), data)
        container_files.raise_error(code, message, path)

    def snapshot(self) -> Snapshot:
        """Returns the files that differ; see `coding_gym.sandbox.protocol.Sandbox.snapshot`."""
        self.require_open()
        limit = max_snapshot_bytes(self._spec.limits)
        data = container_files.take_snapshot(
            lambda script, stdin: self._run_script(script, stdin, limit),
            layer_union.united(self._spec.layers),
            self._transport.started_at(),
        )
        return Snapshot(backend=self._backend, spec=self._spec, data=data)

    def restore(self, snapshot: Snapshot) -> None:
        """Puts every file back; see `coding_gym.sandbox.protocol.Sandbox.restore`."""
        check_snapshot(snapshot, backend=self._backend, spec=self._spec)
        self.require_open()
        with self._lock:
            try:
                _end_container(self._transport)
                self._transport = self._start()
            except BaseException:
                self._is_closed = True
                raise
            self._num_out_of_memory = 0
        self._put(snapshot)

    def close(self) -> None:
        """Ends every process and drops every file of the sandbox; idempotent.

        In a fork of the owner the container is left as it is, and ends with its owner.
        """
        if self._is_closed:
            return
        self._is_closed = True
        if os.getpid() != self._owner:
            self._transport.input.close()
            return
        _end_input(self._transport)
        # A call in another thread sees the end of the output first.
        is_mine = self._lock.acquire(timeout=_CLOSE_TIMEOUT_S)
        _end_container(self._transport, timeout_s=_CLOSE_TIMEOUT_S if is_mine else 0.0)
        if is_mine:
            self._lock.release()

    def _put(self, snapshot: Snapshot) -> None:
        try:
            container_files.put_snapshot(self._run_script, snapshot.data)
        except BaseException:
            self.close()
            raise

    def _run_script(
        self, script: bytes, stdin: bytes, max_output_bytes: int = _MAX_MESSAGE_BYTES
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
        self.require_open()
        nonce = secrets.token_hex(16).encode()
        folder = posixpath.join(WORKDIR, run.cwd or WORKDIR)
        data = request(nonce, run.command, folder, run.env, run.stdin)
        with self._in_use():
            self._send(data)
            return self._await_answer(Answer(nonce, output), run.timeout_s)

    def _await_answer(self, answer: Answer, timeout_s: float) -> ExecResult:
        """Reads until the answer is complete; pokes `loop.sh`, and has a late command killed."""
        started = time.monotonic()
        deadline = started + timeout_s
        pause_s, num_kills = _FIRST_POKE_S, 0
        speak_at = min(started + pause_s, deadline)
        while not answer.numbers:
            now = time.monotonic()
            if now < speak_at:
                with contextlib.suppress(TimeoutError):
                    data = self._transport.receive(speak_at - now)
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
            # The kernel may have killed the shell, or something that it waited for.
            out_of_memory=num_out_of_memory > before and exit_code == 128 + signal.SIGKILL,
        )

    def _send(self, data: bytes) -> None:
        stream = self._transport.input
        stream.settimeout(_SEND_TIMEOUT_S + len(data) / _SLOWEST_BYTES_PER_S)
        # Without a reader of the input, the end of the output says why.
        with contextlib.suppress(BrokenPipeError):
            stream.sendall(data)

    def _kill(self, nonce: bytes, num_kills: int) -> None:
        """Has the running command killed; after some attempts by a signal too."""
        if num_kills > _MAX_KILLS:
            raise EOFError("a command outlived its time limit")
        self._send(b"\n%b\n" % nonce)
        if num_kills > _NUM_KILLS_BY_REQUEST:
            self._transport.interrupt()


def _end_container(transport: Transport, *, timeout_s: float = _CLOSE_TIMEOUT_S) -> None:
    """Ends a container and waits until its processes are dead; kills it after a time."""
    _end_input(transport)
    deadline = time.monotonic() + timeout_s
    has_ended = False
    with contextlib.suppress(OSError):
        while not has_ended and (left_s := deadline - time.monotonic()) > 0:
            has_ended = not transport.receive(left_s)
    transport.clean_up(has_ended=has_ended)


def _end_input(transport: Transport) -> None:
    with contextlib.suppress(OSError):
        transport.input.shutdown(socket.SHUT_WR)


def check_spec(spec: SandboxSpec, backend: str, snapshot: Snapshot | None) -> None:
    """Raises InvalidArgumentError for a spec that no container supports."""
    backend_checks.check_spec(spec, backend=backend)
    for mount in spec.mounts:
        backend_checks.checked_target(mount.target)
    backend_checks.checked_target(spec.workspace_alias or WORKDIR, "workspace_alias")
    if snapshot is not None:
        check_snapshot(snapshot, backend=backend, spec=spec)


def spec_env(
    spec: SandboxSpec, image_env: Mapping[str, str] | None = None, user: str = ""
) -> dict[str, str]:
    """Returns the variables of a container's commands; the arguments are `environment`'s."""
    network = host_network.settings().env if spec.network else {}
    return network | mounted_packages(spec) | environment(spec, image_env=image_env, user=user)
