"""Code of all backends: the probe, checks of specs and snapshots, decoding of output."""

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import fields
from pathlib import Path, PurePosixPath

from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.host.toolchains import is_private
from coding_gym.sandbox.protocol import Probe, Sandbox, Snapshot
from coding_gym.sandbox.run_arguments import check_env
from coding_gym.sandbox.spec import SHELLS, SandboxLimits, SandboxSpec

_TIMEOUT_S = 10.0
_PORTS = range(1024, 1 << 16)
# Upper bound for one entry of a snapshot without its data.
_SNAPSHOT_ENTRY_BYTES = 4 << 10
_SNAPSHOT_SLACK_BYTES = 1 << 20
RUN_AGAIN = "run it again; if it keeps failing, report it with this message"


def failed_probe(open_sandbox: Callable[[SandboxSpec], Sandbox]) -> Probe | None:
    """Opens a temporary sandbox, runs a command in it, closes it; returns the failure, if any."""
    try:
        with open_sandbox(SandboxSpec()) as sandbox:
            result = sandbox.run("echo works", timeout_s=_TIMEOUT_S)
        if result.output != "works\n":
            raise SandboxError(f"the first command printed {result.output!r}")
    except SandboxUnavailableError as error:
        remedy = error.remedy or RUN_AGAIN
        return Probe(available=False, detail=error.problem, remedy=remedy)
    except SandboxError as error:
        return Probe(available=False, detail=str(error), remedy=RUN_AGAIN)
    return None


def check_spec(spec: SandboxSpec, backend: str, *, lacks: Collection[str]) -> None:
    """Checks a spec before a sandbox is opened.

    Args:
        spec: The spec.
        backend: Name of the backend.
        lacks: The optional fields of the spec that the backend cannot use.

    Raises:
        InvalidArgumentError: A layer, interpreter, mount or socket does not exist, a target is
            invalid, the interpreter's folder is private, a variable cannot be passed to a process,
            a port cannot be forwarded, the kind of shell is unknown, or the backend cannot use a
            field.
    """
    check_env(spec.env)
    if spec.shell not in SHELLS:
        raise InvalidArgumentError(f"shell must be one of {', '.join(SHELLS)}, got {spec.shell!r}")
    if unsupported := [name for name in lacks if getattr(spec, name)]:
        raise InvalidArgumentError(
            f"the {backend!r} sandbox cannot use {', '.join(unsupported)}; use 'namespace' "
            "(workspace_alias needs an image)"
        )
    targets = [mount.target for mount in spec.mounts]
    _check_targets([*targets, *spec.sockets, *filter(None, [spec.workspace_alias])])
    _check_sources(spec)
    for port in spec.forwards:
        if port not in _PORTS:
            raise InvalidArgumentError(f"a forwarded port must be 1024 to 65535, got {port!r}")
    if spec.forwards and spec.network:
        raise InvalidArgumentError("forwards need a sandbox without the host's network")


def _check_targets(targets: Iterable[str]) -> None:
    for text in targets:
        target = PurePosixPath(text)
        if not target.is_absolute() or ".." in target.parts or target == PurePosixPath("/"):
            raise InvalidArgumentError(
                "the target of a mount or socket, and workspace_alias, must be an absolute path "
                f"below /, got {text!r}"
            )


def _check_sources(spec: SandboxSpec) -> None:
    for folder in (*spec.layers, *([spec.python.prefix] if spec.python else ())):
        if not os.path.isdir(folder):  # noqa: PTH112 - false for every path that cannot be read
            raise InvalidArgumentError(
                f"the sandbox's layer or interpreter {folder} is not a folder that can be read"
            )
    prefix = spec.python.prefix.resolve() if spec.python else Path("/usr")
    if not prefix.is_relative_to("/usr") and is_private(prefix):
        raise InvalidArgumentError(
            f"the interpreter's folder {prefix} holds private files of the user; use a Python that "
            "is installed in a folder of its own, for example by `uv python install`"
        )
    for mount in spec.mounts:
        if not os.path.exists(mount.source):  # noqa: PTH110 - as above
            raise InvalidArgumentError(f"the sandbox's mount {mount.source} does not exist")
    for path in (*spec.sockets.values(), *spec.forwards.values()):
        if not path.is_socket():
            raise InvalidArgumentError(f"the sandbox's socket {path} is not a UNIX socket")


def check_snapshot(snapshot: Snapshot, *, backend: str, spec: SandboxSpec) -> None:
    """Raises InvalidArgumentError if a snapshot is too large or of another backend or spec."""
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
    """Returns the size limit of a snapshot: the disk limit, once in memory and once on disk."""
    return 2 * limits.disk_bytes + limits.num_inodes * _SNAPSHOT_ENTRY_BYTES + _SNAPSHOT_SLACK_BYTES


def render_output(head: bytes, tail: bytes, num_bytes: int) -> tuple[str, bool]:
    """Returns a command's output as text, and whether its middle was omitted."""
    if len(head) + len(tail) == num_bytes:
        return (head + tail).decode("utf-8", "replace"), False
    first, last = (part.decode("utf-8", "replace") for part in (head, tail))
    num_omitted = num_bytes - len(head) - len(tail)
    return f"{first}\n[... {num_omitted} bytes omitted ...]\n{last}", True
