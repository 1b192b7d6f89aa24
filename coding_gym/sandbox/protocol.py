"""The interface that every sandbox backend implements. The module does not use git or tasks."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, Self

from coding_gym.arguments import at_least
from coding_gym.calls import ExecResult
from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.inside.fixed import MAX_DATA_BYTES
from coding_gym.sandbox.run_arguments import (
    MAX_ARGUMENT_BYTES,
    STATE,
    Run,
    check_data,
    check_path,
    checked_run,
    command_with_state,
    from_stdin,
    python_command,
)
from coding_gym.sandbox.spec import WORKDIR, SandboxSpec, Shell

DEFAULT_TIMEOUT_S = 120.0
DEFAULT_MAX_OUTPUT_BYTES = 1 << 20
NO_SNAPSHOTS = "this sandbox backend has no snapshots; use 'namespace', which also runs images"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All changes of a sandbox at one time; processes are not part of it.

    A snapshot is in memory, does not need its sandbox, which may be closed, and can be restored any
    number of times.

    Attributes:
        backend: Name of the backend that took it; only this backend can restore it.
        spec: The spec of the sandbox.
        data: The changed files, in a format of the backend.
    """

    backend: str
    spec: SandboxSpec
    data: bytes = field(repr=False)


class Sandbox:
    """An isolated workspace in which shell commands run.

    A failing command is a result, not an exception: `run` returns an `ExecResult` if the command
    does not exist, exits non-zero, prints too much or does not end. An infrastructure failure (the
    sandbox was killed, its channel broke) raises `SandboxError`, in bounded time, and every later
    call raises it again.

    Calls may come from any thread, one at a time. This class checks the arguments; a backend's
    subclass implements the calls.

    Attributes:
        workdir: Absolute path of the workspace as commands see it.
    """

    workdir = WORKDIR
    _shell: Shell = "fresh"

    def path(self, target: str) -> str:
        """Returns the path at which commands see the mount of the spec at ``target``.

        Backends that mount return ``target`` itself; ``landlock``, which cannot mount, returns a
        host path.
        """
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
        """Runs ``command`` with ``bash -c``; kills its remaining processes when the shell exits.

        Args:
            command: Shell text, at most 1 MiB in UTF-8. With ``stdin``, a command of more than
                131,071 bytes does not start; the exit code is 126.
            timeout_s: Time limit, after which all processes of the command are killed.
            max_output_bytes: Size limit of the merged standard output and error; the middle of
                longer output is omitted.
            cwd: Working folder, relative to the workspace or absolute; the workspace by default.
            env: Additional environment variables for this command.
            stdin: The command's standard input; at most 64 MiB.

        Raises:
            SandboxError: The sandbox is closed or died.
            InvalidArgumentError: An argument is out of range, or ``command`` has a NUL byte.
        """
        run = checked_run(command, timeout_s, max_output_bytes, cwd, env, stdin)
        if self._shell == "persistent" and cwd is None and not env and not stdin:
            run = run._replace(command=command_with_state(run.command, self.path(STATE)))
        is_long = len(run.command) > MAX_ARGUMENT_BYTES
        return self._run(from_stdin(run) if is_long and not stdin else run)

    def run_python(
        self,
        source: str,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES,
        stdin: bytes = b"",
    ) -> ExecResult:
        """Runs Python source in the workspace as ``python -I -S -c`` would; otherwise like `run`.

        The backend may run the source in a fork of an interpreter that has already imported the
        modules of `SandboxSpec.preload`, unless the workspace or another folder of ``PYTHONPATH``
        has a module with one of their names. The source must still put the folder of the preloaded
        modules on ``sys.path`` and import them. In a fork the hash seed is fixed, and
        ``sys.flags.isolated`` is 0.

        Args:
            source: At most 131,000 bytes in UTF-8; each ``'`` counts as five bytes.
            timeout_s: As for `run`.
            max_output_bytes: As for `run`.
            stdin: As for `run`.

        Raises:
            SandboxError: The sandbox is closed or died.
            InvalidArgumentError: An argument is out of range, or ``source`` has a NUL byte.
        """
        command = python_command(source)
        run = checked_run(command, timeout_s, max_output_bytes, WORKDIR, None, stdin)
        return self._run(run._replace(source=source))

    def read_file(self, path: str, *, max_bytes: int = MAX_DATA_BYTES) -> bytes:
        """Returns a file's bytes; symlinks resolve inside the sandbox.

        Args:
            path: Relative to the workspace, or absolute.
            max_bytes: Size limit of the file.

        Raises:
            OSError: As ``open`` would: FileNotFoundError, IsADirectoryError, PermissionError; EFBIG
                above ``max_bytes``; EINVAL if the path is neither a file nor a folder.
            SandboxError: The sandbox is closed or died.
            InvalidArgumentError: ``path`` is not a valid path, or ``max_bytes`` is below 0.
        """
        check_path(path)
        return self._read(path, at_least(0, "max_bytes", max_bytes))

    def write_file(self, path: str, data: bytes) -> None:
        """Writes a file, creating missing folders and keeping an existing file's mode.

        Raises:
            OSError: As ``open`` would; ENOSPC or EDQUOT when the sandbox is full.
            SandboxError: The sandbox is closed or died.
            InvalidArgumentError: ``path`` is not a valid path, or ``data`` is more than 64 MiB.
        """
        check_path(path)
        check_data(data)
        self._write(path, data)

    def snapshot(self) -> Snapshot:
        """Returns the files that differ from the layers, in workspace, home, /tmp and /dev/shm.

        With an image, the changes of the whole root are included. Time and memory grow with the
        size of the changes; with ``landlock``, they grow with all files of the workspace.

        Raises:
            InvalidArgumentError: The backend has no snapshots.
            SandboxError: The sandbox is closed or died, or a path is too long for a snapshot; after
                a path that is too long, the sandbox stays usable.
        """
        raise InvalidArgumentError(NO_SNAPSHOTS)

    def restore(self, snapshot: Snapshot) -> None:
        """Restores every file to its state in the snapshot, and ends all processes.

        Raises:
            InvalidArgumentError: The snapshot is of another backend or spec, or the backend has no
                snapshots; the sandbox is unchanged.
            SandboxError: The sandbox is closed or died, or the restore failed and closed it.
        """
        del snapshot
        raise InvalidArgumentError(NO_SNAPSHOTS)

    def close(self) -> None:
        """Ends all processes and deletes all files of the sandbox; idempotent."""
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


class Promise(StrEnum):
    """A guarantee that a backend may lack on some machines; the value describes it in reports.

    `Probe.missing` names the promises that a backend lacks on this machine. The conformance suite
    tests all promises: the tests of a missing promise must fail, except tests that can also pass
    because of the host, for example because its kernel refuses the system calls.
    """

    PRIVATE_ROOT = "fixed paths, a private /tmp and /dev/shm"
    OWN_IMAGE = "images"
    OWN_PYTHON = "the spec's interpreter, also in an image"
    SYSTEM_CALLS = "dangerous system calls are refused"
    DISK_LIMIT = "disk limit"
    INODE_LIMIT = "limit on the number of files"
    PROCESS_LIMIT = "process limit"
    MEMORY_LIMIT = "memory limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Whether a backend works on this machine, and which promises it lacks.

    Attributes:
        available: Whether a sandbox was opened, ran a command and was closed without failures.
        detail: One line about the attempt and its result.
        remedy: The command or option that makes the backend work; "" if it works.
        missing: Promises that the backend does not keep on this machine.
    """

    available: bool
    detail: str
    remedy: str = ""
    missing: tuple[Promise, ...] = ()


class SandboxBackend(Protocol):
    """Opens sandboxes with one kind of isolation."""

    @property
    def name(self) -> str:
        """The value of ``sandbox=`` that selects this backend."""
        ...

    def probe(self) -> Probe:
        """Opens a temporary sandbox, runs a command in it and reports the result; never raises."""
        ...

    def owner(self) -> tuple[int, int]:
        """Returns the host uid and gid that must own the layers."""
        ...

    def image_id(self, image: str) -> str:
        """Returns the digest of the content of an image, named as in `SandboxSpec.image`.

        Raises:
            InvalidArgumentError: There is no such image, or the backend runs no images.
            SandboxError: The image cannot be read, or a daemon does not reply.
        """
        ...

    def open(self, spec: SandboxSpec, *, snapshot: Snapshot | None = None) -> Sandbox:
        """Opens a sandbox.

        Args:
            spec: Folders, interpreter and limits of the sandbox.
            snapshot: Initial files, from a sandbox of an equal spec.

        Raises:
            InvalidArgumentError: A layer, mount or image does not exist; a target, environment
                variable or image is invalid; the backend does not support an option; the snapshot
                is of another backend or spec.
            SandboxUnavailableError: The machine cannot run sandboxes; the message has the remedy.
            SandboxError: The set-up failed for a transient reason.
        """
        ...
