"""The specification of a sandbox: folders, interpreter, limits and variables, as plain values."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Literal, get_args

from coding_gym.arguments import within
from coding_gym.host.interpreters import Interpreter as Interpreter
from coding_gym.host.toolchains import SYSTEM_PATH
from coding_gym.sandbox.inside.fixed import BASH, USER
from coding_gym.sandbox.inside.fixed import HOME as HOME
from coding_gym.sandbox.inside.fixed import TMP as TMP
from coding_gym.sandbox.inside.fixed import WORKDIR as WORKDIR
from coding_gym.sandbox.layer_union import united

Shell = Literal["fresh", "persistent"]
SHELLS: tuple[Shell, ...] = get_args(Shell)

# The variables of every command, equal on all machines, so that outputs are reproducible.
VARIABLES = {
    "HOME": HOME,
    "USER": USER,
    "LOGNAME": USER,
    "SHELL": BASH,
    # LC_CTYPE alone: LANG makes every start of bash a fifth of a millisecond slower.
    "LC_CTYPE": "C.UTF-8",
    "TZ": "UTC",
    "TERM": "dumb",
    "COLUMNS": "80",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    # A prompt would wait until the time limit. `CI` is not set, because projects then skip tests.
    "EDITOR": "true",
    "GIT_EDITOR": "true",
    "npm_config_yes": "true",
    "GIT_AUTHOR_NAME": "agent",
    "GIT_AUTHOR_EMAIL": "agent@example.org",
    "GIT_COMMITTER_NAME": "agent",
    "GIT_COMMITTER_EMAIL": "agent@example.org",
    "PYTHONHASHSEED": "0",
    # No bytecode in the workspace, where `git status` and `ls` would list it.
    "PYTHONDONTWRITEBYTECODE": "1",
    # With several threads, Rust lists tests in the order in which the threads end.
    "RUST_TEST_THREADS": "1",
}
# Without a network, package managers must fail at once, with short output and no retries.
_OFFLINE = {
    "PIP_INDEX_URL": "file:///no-network-in-this-sandbox",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "UV_OFFLINE": "1",
    "npm_config_offline": "true",
    "CARGO_NET_OFFLINE": "true",
    "GOPROXY": "off",
}
# With larger numbers, the memory file of a snapshot would not fit in the address space.
_MAX_BYTES, _MAX_COUNT = 1 << 44, 1 << 32
_BOUNDS = {
    "disk_bytes": range(1 << 20, _MAX_BYTES + 1),
    "num_inodes": range(256, _MAX_COUNT + 1),
    "num_processes": range(16, _MAX_COUNT + 1),
    "file_bytes": range(1, _MAX_BYTES + 1),
    "num_open_files": range(64, _MAX_COUNT + 1),
    "memory_bytes": range(32 << 20, _MAX_BYTES + 1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A host folder or file that is mounted in the sandbox.

    Commands can connect to a mounted UNIX socket, except with ``landlock``.

    Attributes:
        source: The folder or file on the host.
        target: Absolute path in the sandbox, other than ``/``. Missing parent folders are created,
            except below read-only folders such as ``/usr``.
        writable: Whether commands may write to it. Only builds of layers use this.
    """

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLimits:
    """Upper bounds on the resources of one sandbox: at most 16 TiB, and counts of at most 2**32.

    Attributes:
        disk_bytes: Size of all written files: workspace, /tmp, home and /dev/shm together.
        num_inodes: Number of created files and folders.
        num_processes: Number of concurrent processes and threads.
        file_bytes: Size of one file.
        num_open_files: Open files per process.
        memory_bytes: Memory of all processes together.

    Raises:
        InvalidArgumentError: A limit is too large, or too small for a sandbox to start and to
            report errors.
    """

    disk_bytes: int = 512 << 20
    num_inodes: int = 200_000
    num_processes: int = 256
    file_bytes: int = 1 << 30
    num_open_files: int = 1024
    memory_bytes: int = 4 << 30

    def __post_init__(self) -> None:
        for name, bounds in _BOUNDS.items():
            value = within(bounds, f"sandbox limit {name}", getattr(self, name))
            object.__setattr__(self, name, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """The folders, interpreter, limits and variables of a sandbox.

    Attributes:
        layers: Host folders whose union is the initial workspace, topmost first; empty for an empty
            workspace. Commands never change them.
        mounts: Further host folders and files.
        python: The interpreter that ``python`` and ``python3`` run in the sandbox; None for the
            system's (in an image: the image's). The interpreter's third-party packages are hidden.
        path: Folders at the start of ``PATH``.
        env: Additional environment variables, which override the fixed variables. Values are passed
            unchanged, except that ``landlock`` replaces the paths in ``HOME``, ``PATH``, ``TMPDIR``
            and ``VIRTUAL_ENV`` by those of `Sandbox.path`.
        limits: Upper bounds on resources.
        network: Whether the host's network is reachable. Only for builds, with ``namespace``.
        image: The root: for ``namespace`` an OCI layout folder or the name of a stored image, for
            ``docker`` the name of an image of its daemon; "" for the backend's default.
        workspace_alias: A second path of the workspace, such as the path from which the image
            installed the project; "" for none.
        shell: ``"fresh"`` starts a new bash for each command. ``"persistent"`` does so too, and the
            new bash restores folder, variables, functions and options of the previous bash. A
            call with an argument ``cwd``, ``env`` or ``stdin`` always uses a fresh bash.
        preload: Modules that a backend can import before a run of `Sandbox.run_python`, from a
            read-only mount at the interpreter's ``site_packages``. The import runs outside the
            sandbox, so the modules must be trusted.
        forwards: UNIX sockets of the host, by the port of ``127.0.0.1`` (1024 or above) at which
            commands reach them. Only ``namespace`` supports them.
    """

    layers: tuple[Path, ...] = ()
    mounts: tuple[Mount, ...] = ()
    python: Interpreter | None = None
    path: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    limits: SandboxLimits = SandboxLimits()
    network: bool = False
    image: str = ""
    workspace_alias: str = ""
    shell: Shell = "fresh"
    preload: tuple[str, ...] = ()
    forwards: Mapping[int, Path] = field(default_factory=dict)


def environment(
    spec: SandboxSpec,
    *,
    first: tuple[str, ...] = (),
    image_env: Mapping[str, str] | None = None,
    user: str = "",
) -> dict[str, str]:
    """Returns the variables of a sandbox's commands.

    Args:
        spec: The spec, whose ``path`` and ``env`` take precedence.
        first: Folders of ``PATH`` between ``spec.path`` and the system's folders.
        image_env: Variables of the image, which override the fixed variables; its ``PATH`` replaces
            the system's folders.
        user: Name of the image's user; "" without an image.
    """
    variables = dict(image_env or {})
    if user:
        variables = {"USER": user, "LOGNAME": user} | variables
    system = variables.pop("PATH", "") or SYSTEM_PATH
    path = ":".join((*spec.path, *first, system))
    offline = {} if spec.network else _OFFLINE
    return {**VARIABLES, **offline, **variables, "PATH": path, **spec.env}


def mounted_packages(spec: SandboxSpec) -> dict[str, str]:
    """Returns ``PYTHONPATH`` with the packages that the spec mounts; empty if it mounts none.

    A backend that does not mount the spec's interpreter needs this value to run another Python.
    """
    if spec.python is None:
        return {}
    site = str(spec.python.site_packages)
    return {"PYTHONPATH": site} if any(mount.target == site for mount in spec.mounts) else {}


def spec_digest(spec: SandboxSpec) -> str:
    """Returns a digest of the files and variables of a spec, independent of host paths.

    The digest covers paths, modes and content of the files in the layers, targets of mounts, and
    the fields ``python`` (the version), ``path``, ``env``, ``image`` and ``workspace_alias``.
    """
    layers = [
        (path, entry.stat(follow_symlinks=False).st_mode, _content_id(entry))
        for path, entry in sorted(united(spec.layers).items())
    ]
    targets = [mount.target for mount in spec.mounts]
    python = spec.python and spec.python.version
    variables = sorted(spec.env.items())
    content = (layers, targets, python, spec.path, variables, spec.image, spec.workspace_alias)
    return sha256(json.dumps(content).encode()).hexdigest()


def _content_id(entry: os.DirEntry[str]) -> str:
    """Returns the digest of a file, the target of a symbolic link, or "" for other kinds."""
    if entry.is_symlink():
        return str(Path(entry.path).readlink())
    if not entry.is_file():
        return ""
    with Path(entry.path).open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
