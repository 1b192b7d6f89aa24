"""The sandbox object of ``namespace`` and ``landlock``, and its channel to the first process."""

import contextlib
import fcntl
import os
import posixpath
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from coding_gym.calls import ExecResult
from coding_gym.errors import SandboxError
from coding_gym.sandbox.backend_checks import check_snapshot, render_output
from coding_gym.sandbox.forwarding import Forwarder
from coding_gym.sandbox.inside import wire
from coding_gym.sandbox.inside.syscalls import SetupError
from coding_gym.sandbox.protocol import Sandbox, Snapshot
from coding_gym.sandbox.run_arguments import Run
from coding_gym.sandbox.setup_errors import NO_DESCRIPTOR
from coding_gym.sandbox.spec import WORKDIR, SandboxSpec

_REDUNDANT = re.compile(r"/(?:\.?/)+")
_READY_TIMEOUT_S = 30.0
_CLOSE_TIMEOUT_S = 5.0
_SNAPSHOT_TIMEOUT_S = 300.0
# Upper bounds in a snapshot: one entry without its data, and all other overhead.
_ENTRY_BYTES, _SLACK_BYTES = 4 << 10, 1 << 20
# Time for a reply in addition to the command's time limit.
_REPLY_TIMEOUT_S = 30.0


class Channel:
    """The channel to the first process of a sandbox, and the clean-up after that process.

    Only the process that opened the sandbox can use the channel, for one call at a time. A failed
    call ends the sandbox, and every later call raises the same error; if the first process refused
    only this request, the sandbox stays usable.

    Args:
        stream: Connected to the first process, which is still being set up.
        cleanup: Callbacks for the time after the sandbox's end; the channel takes them over.
        forks_python: Whether the first process runs Python in forks of itself.

    Attributes:
        forks_python: As the argument.
    """

    def __init__(
        self, stream: socket.socket, cleanup: contextlib.ExitStack, *, forks_python: bool = False
    ) -> None:
        self.forks_python = forks_python
        self._stream = stream
        self._cleanup = cleanup.pop_all()
        self._lock = threading.Lock()
        self._closing = threading.RLock()
        self._owner = os.getpid()
        self._is_closed = False
        self._failure = ""

    def require_open(self) -> None:
        """Raises SandboxError in a fork, or if the sandbox is closed or has died."""
        if os.getpid() != self._owner:
            raise SandboxError("a sandbox works only in the process that opened it; open a new one")
        if self._is_closed or self._failure:
            raise SandboxError(self._failure or "the sandbox is closed")

    def give_up(self, reason: str) -> SandboxError:
        """Marks the sandbox as dead; returns the error that this and every later call raises."""
        self._failure = reason
        return SandboxError(reason)

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        """Locks the channel for one call.

        Raises:
            SandboxError: The sandbox is closed or died, or its reply is malformed.
        """
        self.require_open()
        with self._lock:
            self.require_open()
            try:
                yield
            except (OSError, EOFError, ValueError) as error:
                is_closed = self._is_closed
                reason = "the sandbox is closed" if is_closed else f"the sandbox died: {error}"
                raise self.give_up(reason) from error
            except BaseException:
                # The reply may still arrive, and would be read as the next call's reply.
                self._failure = "the sandbox died: a call was interrupted"
                raise

    def wait_until_ready(
        self, snapshot: Snapshot | None = None, forwards: Mapping[int, Path] | None = None
    ) -> None:
        """Waits for the end of the set-up and forwards ports; closes the channel after a failure.

        Args:
            snapshot: The files to restore.
            forwards: UNIX sockets of the host by port of the sandbox.

        Raises:
            SetupError: A step of the set-up failed.
            SandboxError: The first process died or does not reply, or a port is in use.
        """
        try:
            if snapshot is None:
                self.call(None, timeout_s=_READY_TIMEOUT_S)
            else:
                with memory_file(snapshot.data) as file:
                    self.call({}, timeout_s=_SNAPSHOT_TIMEOUT_S, file=file)
            for port, path in (forwards or {}).items():
                listener = self._cleanup.enter_context(self._listener(port))
                self._cleanup.callback(Forwarder(listener, path).close)
        except BaseException:
            self.close()
            raise

    def call(
        self,
        header: dict[str, Any] | None,
        body: bytes = b"",
        *,
        timeout_s: float,
        max_body_bytes: int = 0,
        file: BinaryIO | None = None,
    ) -> tuple[dict[str, Any], bytes]:
        """Sends a message, if any, and returns the header and body of the reply.

        Args:
            header: Header of the message; None to send no message.
            body: Body of the message.
            timeout_s: Seconds to wait for the reply.
            max_body_bytes: Limit on the reply's body.
            file: File whose descriptor is passed with the message.

        Raises:
            SetupError: The reply is an error; kind ``request`` leaves the sandbox open.
            SandboxError: The first process ended, or its reply is late or malformed.
        """
        with self._in_use():
            deadline = time.monotonic() + timeout_s
            self._stream.settimeout(timeout_s)
            if header is not None:
                self._send_message(wire.pack(header, body), file)
            reply, data = wire.receive(
                self._stream, max_body_bytes=max_body_bytes, deadline=deadline
            )
            if "error" not in reply:
                return reply, data
            error = SetupError.from_json(reply["error"])
        if error.kind != "request":
            self.give_up(str(error))
        raise error

    def _send_message(self, message: bytes, file: BinaryIO | None) -> None:
        if file is None:
            self._stream.sendall(message)
            return
        with contextlib.suppress(BrokenPipeError):  # a message with the reason is waiting
            num_sent = socket.send_fds(self._stream, [message], [file.fileno()])
            self._stream.sendall(message[num_sent:])

    def _listener(self, port: int) -> socket.socket:
        with self._in_use():
            self._stream.settimeout(_READY_TIMEOUT_S)
            reply, descriptors = wire.receive_descriptors(self._stream, 1, 1)
            if descriptors:
                return socket.socket(fileno=descriptors[0])
            if reply == b"+":
                raise SandboxError(NO_DESCRIPTOR)
            raise EOFError(f"it cannot listen on port {port}")

    def shut(self) -> None:
        """Tells the first process to end the sandbox, and does not wait."""
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Ends the sandbox, waits until its processes are dead, and cleans up; idempotent."""
        if os.getpid() != self._owner:
            # A fork must not end the parent's sandbox.
            self._is_closed = True
            self._stream.close()
            return
        with self._closing:  # a second thread must also wait for the end
            if not self._is_closed:
                self._is_closed = True
                self._end()

    def _end(self) -> None:
        self.shut()
        # A call in another thread sees the end of the stream first.
        is_locked = self._lock.acquire(timeout=_CLOSE_TIMEOUT_S)
        with contextlib.suppress(OSError):
            self._stream.settimeout(_CLOSE_TIMEOUT_S)
            while is_locked and self._stream.recv(1 << 16):
                pass
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)
        # This ends a call of another thread, which must return before the descriptor is reused.
        is_locked = is_locked or self._lock.acquire(timeout=_CLOSE_TIMEOUT_S)
        if is_locked:
            self._lock.release()
        self._stream.close()
        self._cleanup.close()


@contextlib.contextmanager
def memory_file(data: bytes = b"", *, size: int = 0) -> Iterator[BinaryIO]:
    """Yields a sealed file in memory to pass to a sandbox.

    Args:
        data: Content of the file, which is read-only if ``size`` is 0.
        size: Size in bytes of a file to which the sandbox writes; 0 for a read-only file.

    Raises:
        SandboxError: No descriptor or no memory is free.
    """
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
    with contextlib.ExitStack() as cleanup:
        try:
            descriptor = os.memfd_create("coding_gym", flags)
            file = cleanup.enter_context(os.fdopen(descriptor, "r+b"))
            file.write(data)
            file.flush()
            if size:
                file.truncate(size)
            else:
                seals |= fcntl.F_SEAL_WRITE
            fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
            file.seek(0)
        except OSError as error:
            raise SandboxError(f"cannot make a memory file for the sandbox: {error}") from error
        yield file


class ServedSandbox(Sandbox):
    """A sandbox of the ``namespace`` or ``landlock`` backend.

    The sandbox ends when the channel closes, even if the process that opened it is killed.

    Args:
        backend: Name of the backend.
        spec: The spec of the sandbox.
        channel: Channel to the first process, which is ready.
        host_paths: Host paths by the paths in the spec.
        start: Starts another first process with the files of a snapshot; None if the same process
            restores them.

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
        """Returns the path at which commands see a mount; see `Sandbox.path`."""
        return host_path_of(target, self._host_paths)

    def _absolute(self, path: str) -> str:
        """Returns the absolute path that the first process opens."""
        return posixpath.join(self.workdir, self.path(path))

    def _run(self, run: Run) -> ExecResult:
        request = {
            "op": "run",
            "timeout_s": run.timeout_s,
            "max_output_bytes": run.max_output_bytes,
            "cwd": self._absolute(run.cwd or WORKDIR),
            "env": run.env,
        }
        body, stdin = run.command, run.stdin
        if run.source and self._channel.forks_python:  # only the fork reads the file
            source = run.source.encode("utf-8", "surrogatepass")
            request["op"], body, stdin = "python", b"", b"%010d" % len(source) + source + stdin
        with memory_file(stdin) if stdin else contextlib.nullcontext() as file:
            reply = self._call(
                request,
                body,
                timeout_s=run.timeout_s + _REPLY_TIMEOUT_S,
                max_body_bytes=run.max_output_bytes,
                file=file,
            )
        try:
            return _result(*reply)
        except (KeyError, TypeError) as error:
            raise self._channel.give_up(f"the sandbox's reply is malformed: {error!r}") from error

    def _read(self, path: str, max_bytes: int) -> bytes:
        request = {"op": "read", "path": self._absolute(path), "max_bytes": max_bytes}
        header, body = self._call(request, max_body_bytes=max_bytes)
        _raise_file_error(header, path)
        return body

    def _write(self, path: str, data: bytes) -> None:
        header, _ = self._call({"op": "write", "path": self._absolute(path)}, data)
        _raise_file_error(header, path)

    def snapshot(self) -> Snapshot:
        """Returns the changed files; see `Sandbox.snapshot`."""
        limits = self._spec.limits
        # Twice the disk limit, because changes may be in memory and on disk.
        limit = 2 * limits.disk_bytes + limits.num_inodes * _ENTRY_BYTES + _SLACK_BYTES
        with memory_file(size=limit) as file:
            header, _ = self._call({"op": "snapshot"}, timeout_s=_SNAPSHOT_TIMEOUT_S, file=file)
            size = header.get("size")
            if type(size) is not int or not 0 <= size <= limit:
                raise self._channel.give_up(f"the sandbox's reply is malformed: {header!r}")
            data = file.read(size)
        return Snapshot(backend=self._backend, spec=self._spec, data=data)

    def restore(self, snapshot: Snapshot) -> None:
        """Restores all files; see `Sandbox.restore`."""
        check_snapshot(snapshot, backend=self._backend, spec=self._spec)
        self._channel.require_open()
        try:
            if self._start is None:  # the first process replaces all files
                with memory_file(snapshot.data) as file:
                    self._call({"op": "restore"}, timeout_s=_SNAPSHOT_TIMEOUT_S, file=file)
            else:
                self._start_again(snapshot, self._start)
        except BaseException:
            self.close()
            raise

    def _start_again(self, snapshot: Snapshot, start: Callable[[Snapshot], Channel]) -> None:
        """Starts a new first process, because a mounted overlay's upper folder must not change."""
        previous = self._channel
        previous.shut()  # the previous process ends while the new process starts
        self._channel = start(snapshot)
        previous.close()
        if self._is_closed:
            self._channel.close()

    def close(self) -> None:
        """Ends all processes and deletes all files of the sandbox; idempotent."""
        # Set first: a restore in another thread reads this flag after it has replaced the channel.
        self._is_closed = True
        self._channel.close()

    def _call(
        self,
        request: dict[str, Any],
        body: bytes = b"",
        *,
        timeout_s: float = _REPLY_TIMEOUT_S,
        max_body_bytes: int = 0,
        file: BinaryIO | None = None,
    ) -> tuple[dict[str, Any], bytes]:
        try:
            return self._channel.call(
                request, body, timeout_s=timeout_s, max_body_bytes=max_body_bytes, file=file
            )
        except SetupError as error:
            raise SandboxError(str(error)) from error


def host_path_of(path: str, host_paths: Mapping[str, str]) -> str:
    """Returns the host path of a path at or below a key of ``host_paths``; else ``path``."""
    # Without empty parts and `.`; the kernel must resolve `..`.
    plain_path = _REDUNDANT.sub("/", path)
    for target in sorted(host_paths, key=len, reverse=True):
        prefix = _REDUNDANT.sub("/", target).rstrip("/")
        if f"{plain_path}/".startswith(f"{prefix}/"):
            return host_paths[target] + plain_path[len(prefix) :]
    return path


def _result(header: dict[str, Any], body: bytes) -> ExecResult:
    head_bytes, num_bytes = header.pop("head_bytes"), header.pop("num_bytes")
    output, truncated = render_output(body[:head_bytes], body[head_bytes:], num_bytes)
    return ExecResult(output=output, truncated=truncated, **header)


def _raise_file_error(header: dict[str, Any], path: str) -> None:
    if "errno" in header:
        raise OSError(header["errno"], header["reason"], path)
