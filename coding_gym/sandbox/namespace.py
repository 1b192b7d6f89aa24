"""The ``namespace`` backend: user, mount, pid, net, ipc, uts and cgroup namespaces; no daemon."""

import os
from pathlib import Path, PurePosixPath
from typing import Any

from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.sandbox import host_network
from coding_gym.sandbox.environment import environment
from coding_gym.sandbox.namespace_sandbox import NamespaceSandbox
from coding_gym.sandbox.protocol import Probe
from coding_gym.sandbox.remedies import SetupFailure, describe, remedy
from coding_gym.sandbox.results import check_env
from coding_gym.sandbox.spec import Interpreter, Mount, SandboxSpec
from coding_gym.sandbox.zygotes import Zygote, zygote

# As root, what sandboxes run as: no account of any distribution has this number.
_UNPRIVILEGED = 64998
_PYTHON_FOLDER = "/sandbox/bin"
_SYSTEM_FOLDERS = (Path("/usr"), Path("/bin"), Path("/lib"), Path("/lib64"))
# Nothing here bounds them without a delegated cgroup.
_MISSING = ("memory limit", "cpu limit")
_UNKNOWN_REMEDY = "run it again; if it keeps failing, report it with this message"


class NamespaceBackend:
    """Sandboxes made of Linux namespaces and an overlay, opened by a zygote process.

    Covered: files (an allow-listed root, a private copy of the layers), processes, the network,
    the environment, capabilities, system calls, sizes and counts. Not covered: memory and CPU
    time (`Probe.missing`), and holes in the kernel itself.
    """

    @property
    def name(self) -> str:
        """``"namespace"``."""
        return "namespace"

    def owner(self) -> tuple[int, int]:
        """Returns the uid and gid that sandboxes run as, which must own the layers.

        As root a fixed unprivileged one; root of a container that maps few users, and ordinary
        users, run as themselves.
        """
        if os.geteuid() == 0 and _is_mapped("uid") and _is_mapped("gid"):
            return _UNPRIVILEGED, _UNPRIVILEGED
        return os.geteuid(), os.getegid()

    def probe(self) -> Probe:
        """Opens a throw-away sandbox, runs a command in it and closes it; never raises."""
        try:
            with self._open(SandboxSpec()) as sandbox:
                result = sandbox.run("echo works", timeout_s=10)
            if result.output != "works\n":
                raise SandboxError(f"a first command printed {result.output!r}")
        except (SetupFailure, SandboxError) as error:
            failure = error if isinstance(error, SetupFailure) else error.__cause__
            if isinstance(failure, SetupFailure):
                return Probe(available=False, detail=str(failure), remedy=remedy(failure))
            return Probe(available=False, detail=str(error), remedy=_UNKNOWN_REMEDY)
        uid, _ = self.owner()
        detail = f"opened a sandbox as uid {uid} and ran a command"
        return Probe(available=True, detail=detail, missing=_MISSING)

    def open(self, spec: SandboxSpec) -> NamespaceSandbox:
        """Opens a sandbox.

        Raises:
            InvalidArgumentError: A layer or mount that does not exist, or a target that cannot be.
            SandboxUnavailableError: This machine cannot run the backend; says the remedy.
            SandboxError: The machine can, but this time it failed.
        """
        try:
            return self._open(spec)
        except SetupFailure as failure:
            if failure.is_refusal:
                raise SandboxUnavailableError(describe(failure)) from failure
            raise SandboxError(str(failure)) from failure

    def _open(self, spec: SandboxSpec) -> NamespaceSandbox:
        request = _request(spec)
        channel = self._zygote_open(request)
        sandbox = NamespaceSandbox(channel)
        sandbox.wait_until_ready()
        return sandbox

    def _zygote_open(self, request: dict[str, Any]) -> Any:
        handle: Zygote = zygote(*self.owner())
        try:
            return handle.open(request)
        except SandboxError:
            # It died since the last call; a new one is a matter of milliseconds.
            return zygote(*self.owner()).open(request)


def _is_mapped(kind: str) -> bool:
    """Whether the unprivileged id exists in the user namespace that this process is in."""
    try:
        lines = Path(f"/proc/self/{kind}_map").read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    ranges = ([int(number) for number in line.split()] for line in lines)
    return any(first <= _UNPRIVILEGED < first + count for first, _, count in ranges)


def _request(spec: SandboxSpec) -> dict[str, Any]:
    """Returns what the zygote is asked to open."""
    check_env(spec.env)
    shown: list[dict[str, Any]] = []
    layers = [_show(shown, layer, "layer") for layer in spec.layers]
    mounts = []
    if spec.python is not None and not _is_in_system(spec.python.prefix):
        index = _show(shown, spec.python.prefix, "interpreter", covered=True)
        mounts.append((index, str(spec.python.prefix)))
    network = host_network.settings() if spec.network else host_network.NONE
    for mount in (*network.mounts, *spec.mounts):
        index = _show(shown, mount.source, "mount", writable=mount.writable)
        mounts.append((index, _checked_target(mount)))
    return {
        "show": shown,
        "layers": layers,
        "mounts": mounts,
        "links": _links(spec.python),
        "files": network.files,
        "env": network.env | environment(spec, first=(_PYTHON_FOLDER,)),
        "limits": {
            "disk_bytes": spec.limits.disk_bytes,
            "num_inodes": spec.limits.num_inodes,
            "num_processes": spec.limits.num_processes,
            "file_bytes": spec.limits.file_bytes,
            "num_open_files": spec.limits.num_open_files,
        },
        "network": spec.network,
    }


def _show(
    shown: list[dict[str, Any]],
    path: Path,
    kind: str,
    *,
    writable: bool = False,
    covered: bool = False,
) -> int:
    """Adds a host folder or file to those shown and returns its index."""
    real = path.resolve()
    try:
        facts = real.stat()
    except OSError as error:
        raise InvalidArgumentError(
            f"the sandbox's {kind} {path} cannot be used: {error}"
        ) from error
    if kind in {"layer", "interpreter"} and not real.is_dir():
        raise InvalidArgumentError(f"the sandbox's {kind} {path} must be a folder")
    shown.append(
        {
            "path": str(real),
            "id": [facts.st_dev, facts.st_ino],
            "writable": writable,
            "covered": covered,
        }
    )
    return len(shown) - 1


def _checked_target(mount: Mount) -> str:
    target = PurePosixPath(mount.target)
    if not target.is_absolute() or ".." in target.parts or target == PurePosixPath("/"):
        raise InvalidArgumentError(
            f"a mount's target must be an absolute path below /, got {mount.target!r}"
        )
    return str(target)


def _is_in_system(prefix: Path) -> bool:
    return any(prefix.is_relative_to(folder) for folder in _SYSTEM_FOLDERS)


def _links(python: Interpreter | None) -> dict[str, str]:
    if python is None:
        return {}
    minor = ".".join(python.version.split(".")[:2])
    names = ("python", "python3", f"python{minor}")
    return {f"{_PYTHON_FOLDER}/{name}": str(python.executable) for name in dict.fromkeys(names)}
