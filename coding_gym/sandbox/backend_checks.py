"""Shared by all backends: the probe, checks of arguments, decoding of output."""

import os
import shlex
from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import PurePosixPath
from typing import NamedTuple, Self

from coding_gym.arguments import at_least_one, positive_seconds
from coding_gym.calls import ExecResult
from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.sandbox.protocol import (
    DEFAULT_MAX_OUTPUT_BYTES,
    DEFAULT_TIMEOUT_S,
    Probe,
    Sandbox,
    Snapshot,
)
from coding_gym.sandbox.shell_state import STATE, keeping_state
from coding_gym.sandbox.spec import SHELLS, WORKDIR, SandboxLimits, SandboxSpec, Shell

_TIMEOUT_S = 10.0
_PORTS = range(1024, 1 << 16)
# Size of one entry of a snapshot without its data.
_SNAPSHOT_ENTRY_BYTES = 4 << 10
_SNAPSHOT_SLACK_BYTES = 1 << 20
RUN_AGAIN = "run it again; if it keeps failing, report it with this message"
_MAX_COMMAND_BYTES = 1 << 20
MAX_DATA_BYTES = 64 << 20
# The longest argument of exec (MAX_ARG_STRLEN) without its NUL.
_MAX_ARGUMENT_BYTES = (128 << 10) - 1
# Reads a longer command from standard input, and runs it with an empty one.
_FROM_STDIN = (
    b"IFS= read -r -d '' BASH_EXECUTION_STRING; exec < /dev/null; "
    b'eval -- "$BASH_EXECUTION_STRING"'
)
_CONTINUATION_BITS, _CONTINUATION = 0xC0, 0x80


def failed_probe(open_sandbox: Callable[[SandboxSpec], Sandbox]) -> Probe | None:
    """Opens a throw-away sandbox, runs a command in it, closes it; returns the failure, if any."""
    try:
        with open_sandbox(SandboxSpec()) as sandbox:
            result = sandbox.run("echo works", timeout_s=_TIMEOUT_S)
        if result.output != "works\n":
            raise SandboxError(f"a first command printed {result.output!r}")
    except SandboxUnavailableError as error:
        remedy = error.remedy or RUN_AGAIN
        return Probe(available=False, detail=error.problem, remedy=remedy)
    except SandboxError as error:
        return Probe(available=False, detail=str(error), remedy=RUN_AGAIN)
    return None


def check_spec(spec: SandboxSpec, *, forwards_ports: bool = False) -> None:
    """Checks a spec before a sandbox is opened.

    Args:
        spec: The spec.
        forwards_ports: Whether the backend can; ``namespace`` alone does.

    Raises:
        InvalidArgumentError: A layer, mount or socket does not exist, a variable cannot be passed
            to a process, a port cannot be forwarded, or the kind of shell is unknown.
    """
    check_env(spec.env)
    if spec.forwards and not forwards_ports:
        raise InvalidArgumentError(
            f"forwards need the 'namespace' sandbox, got the ports {sorted(spec.forwards)}"
        )
    for path in (*spec.layers, *(mount.source for mount in spec.mounts)):
        if not path.exists():
            raise InvalidArgumentError(f"the sandbox's layer or mount {path} does not exist")
    for path in (*spec.sockets.values(), *spec.forwards.values()):
        if not path.is_socket():
            raise InvalidArgumentError(f"the sandbox's socket {path} is not a UNIX socket")
    for port in spec.forwards:
        if port not in _PORTS:
            raise InvalidArgumentError(f"a forwarded port must be 1024 to 65535, got {port!r}")
    if spec.forwards and spec.network:
        raise InvalidArgumentError("forwards need a sandbox without the host's network")
    if spec.shell not in SHELLS:
        raise InvalidArgumentError(f"shell must be one of {', '.join(SHELLS)}, got {spec.shell!r}")


def checked_target(text: str, name: str = "a mount's target") -> str:
    """Returns a path at which something can be mounted; raises InvalidArgumentError for others."""
    target = PurePosixPath(text)
    if not target.is_absolute() or ".." in target.parts or target == PurePosixPath("/"):
        raise InvalidArgumentError(f"{name} must be an absolute path below /, got {text!r}")
    return str(target)


def check_snapshot(snapshot: Snapshot, *, backend: str, spec: SandboxSpec) -> None:
    """Raises InvalidArgumentError for one of another backend or spec, or too large for its spec."""
    if snapshot.backend != backend:
        raise InvalidArgumentError(
            f"a snapshot of a {snapshot.backend!r} sandbox cannot be restored into a "
            f"{backend!r} one"
        )
    names = (field.name for field in fields(spec))
    if others := [n for n in names if getattr(snapshot.spec, n) != getattr(spec, n)]:
        raise InvalidArgumentError(
            f"the snapshot is of a sandbox whose spec differs in {', '.join(others)}; "
            "open one with the spec of the snapshot"
        )
    if len(snapshot.data) > max_snapshot_bytes(spec.limits):
        raise InvalidArgumentError(
            f"the snapshot's {len(snapshot.data)} bytes are more than a sandbox may hold"
        )


def max_snapshot_bytes(limits: SandboxLimits) -> int:
    """Returns the size limit of a snapshot: twice the disk, as files on disk are counted apart."""
    return 2 * limits.disk_bytes + limits.num_inodes * _SNAPSHOT_ENTRY_BYTES + _SNAPSHOT_SLACK_BYTES


def command_bytes(command: str) -> bytes:
    """Returns a command's text in UTF-8; a lone surrogate, which a policy may emit, is kept.

    Raises:
        InvalidArgumentError: It contains a NUL, or is too long.
    """
    data = command.encode("utf-8", "surrogatepass")
    if b"\0" in data:
        raise InvalidArgumentError("command must not contain a NUL byte")
    if len(data) > _MAX_COMMAND_BYTES:
        raise InvalidArgumentError(
            f"command must be at most {_MAX_COMMAND_BYTES} bytes, got {len(data)}; "
            "write a script with write_file and run that"
        )
    return data


def python_command(source: str) -> str:
    """Returns the command that runs Python source in an isolated interpreter.

    Raises:
        InvalidArgumentError: It is too long.
    """
    command = f"exec python -I -S -c {shlex.quote(source)}"
    size = len(command.encode("utf-8", "surrogatepass"))
    if size > _MAX_ARGUMENT_BYTES:
        raise InvalidArgumentError(
            f"source must be at most {_MAX_ARGUMENT_BYTES} bytes as a command, got {size}; "
            "write a module with write_file and run that"
        )
    return command


class Run(NamedTuple):
    """The arguments of `Sandbox.run` after their check.

    Attributes:
        command: Its text.
        cwd: Where to run, relative to the workspace or absolute; None for the workspace.
        env: More environment variables.
        stdin: Its standard input.
        timeout_s: Its time limit.
        max_output_bytes: Size limit of the kept output.
        source: Its Python source; "" for a shell command.
    """

    command: bytes
    cwd: str | None
    env: dict[str, str]
    stdin: bytes
    timeout_s: float
    max_output_bytes: int
    source: str = ""


class CheckedSandbox:
    """The argument checks of a sandbox's handle.

    A subclass runs commands in `_run`, and reads and writes files in `_read` and `_write`.

    Attributes:
        workdir: Absolute path of the workspace as commands see it.
    """

    workdir = WORKDIR
    _shell: Shell = "fresh"

    def path(self, target: str) -> str:
        """Returns the path at which commands see the mount at ``target``."""
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
        run = checked_run(command, timeout_s, max_output_bytes, cwd, env, stdin)
        if self._shell == "persistent" and cwd is None and not env and not stdin:
            run = run._replace(command=keeping_state(run.command, self.path(STATE)))
        if len(run.command) > _MAX_ARGUMENT_BYTES and not run.stdin:
            run = run._replace(command=_FROM_STDIN, stdin=run.command)
        return self._run(run)

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
        run = checked_run(command, timeout_s, max_output_bytes, WORKDIR, env, stdin)
        return self._run(run._replace(source=source))

    def read_file(self, path: str, *, max_bytes: int = 64 << 20) -> bytes:
        """Returns a file's bytes; see `coding_gym.sandbox.protocol.Sandbox.read_file`."""
        _check_path(path)
        if type(max_bytes) is not int or max_bytes < 0:
            raise InvalidArgumentError(
                f"max_bytes must be an integer of at least 0, got {max_bytes!r}"
            )
        return self._read(path, max_bytes)

    def write_file(self, path: str, data: bytes) -> None:
        """Writes a file; see `coding_gym.sandbox.protocol.Sandbox.write_file`."""
        _check_path(path)
        _check_data(data)
        self._write(path, data)

    def close(self) -> None:
        """Ends every process and drops every file of the sandbox; idempotent."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, run: Run) -> ExecResult:
        raise NotImplementedError

    def _read(self, path: str, max_bytes: int) -> bytes:
        raise NotImplementedError

    def _write(self, path: str, data: bytes) -> None:
        raise NotImplementedError


def checked_run(
    command: str,
    timeout_s: float,
    max_output_bytes: int,
    cwd: str | None,
    env: Mapping[str, str] | None,
    stdin: bytes,
) -> Run:
    """Returns the arguments of `Sandbox.run`.

    Raises:
        InvalidArgumentError: An argument is out of range.
    """
    text = command_bytes(command)
    seconds = positive_seconds("timeout_s", timeout_s)
    at_least_one("max_output_bytes", max_output_bytes)
    if stdin:
        _check_data(stdin)
    if cwd is not None:
        _check_path(cwd)
    if env:
        check_env(env)
    return Run(text, cwd, dict(env or {}), stdin, seconds, int(max_output_bytes))


def _check_path(path: str) -> None:
    """Raises InvalidArgumentError for a path that is invalid in a system call."""
    if not path or not _can_be_passed(path):
        raise InvalidArgumentError(
            f"a path must be non-empty, Unicode and free of NUL bytes, got {path!r}"
        )


def _check_data(data: bytes) -> None:
    """Raises InvalidArgumentError for data that is too long for one call."""
    if len(data) > MAX_DATA_BYTES:
        raise InvalidArgumentError(
            f"data of one call must be at most {MAX_DATA_BYTES} bytes, got {len(data)}"
        )


def check_env(env: Mapping[str, str]) -> None:
    """Raises InvalidArgumentError for invalid environment variables."""
    for name, value in env.items():
        if not name or "=" in name or not _can_be_passed(name + value):
            raise InvalidArgumentError(f"not an environment variable: {name!r}={value!r}")


def _can_be_passed(text: str) -> bool:
    """Whether text can be an argument of a system call; escaped bytes can."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def render_output(head: bytes, tail: bytes, num_bytes: int) -> tuple[str, bool]:
    """Returns a command's output as text, and whether its middle was omitted."""
    if len(head) + len(tail) == num_bytes:
        return (head + tail).decode("utf-8", "replace"), False
    # A character that is split by the truncation is dropped.
    decoder = getincrementaldecoder("utf-8")("replace")
    first = decoder.decode(head)
    pending, _ = decoder.getstate()
    start = 0
    while start < min(3, len(tail)) and tail[start] & _CONTINUATION_BITS == _CONTINUATION:
        start += 1
    last = tail[start:].decode("utf-8", "replace")
    num_dropped = num_bytes - len(head) - len(tail) + len(pending) + start
    return f"{first}\n[... {num_dropped} bytes omitted ...]\n{last}", True
