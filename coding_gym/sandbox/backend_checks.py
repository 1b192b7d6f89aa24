"""Functions that all backends use: probes, checks of specs and snapshots, decoding of output."""

import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path, PurePosixPath

from coding_gym.arguments import within
from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.host.toolchains import is_private
from coding_gym.sandbox.protocol import Probe, Sandbox, Snapshot
from coding_gym.sandbox.run_arguments import check_env, is_passable
from coding_gym.sandbox.setup_errors import documented_errors
from coding_gym.sandbox.spec import SHELLS, WORKDIR, SandboxSpec

_TIMEOUT_S = 10.0
_PORTS = range(1024, 65536)
RUN_AGAIN = "run it again; if it keeps failing, report it with this message"


def checked_probe(
    open_sandbox: Callable[[SandboxSpec], Sandbox], describe: Callable[[], Probe]
) -> Probe:
    """Runs a command in a temporary sandbox; returns the probe from ``describe``, or a failure."""
    try:
        with documented_errors():
            with open_sandbox(SandboxSpec()) as sandbox:
                result = sandbox.run("echo works", timeout_s=_TIMEOUT_S)
            if result.output != "works\n":
                raise SandboxError(f"the command 'echo works' printed {result.output!r}")
            return describe()
    except SandboxUnavailableError as error:
        remedy = error.remedy or RUN_AGAIN
        return Probe(available=False, detail=error.problem, remedy=remedy)
    except (SandboxError, InvalidArgumentError) as error:
        return Probe(available=False, detail=str(error), remedy=RUN_AGAIN)


def check_spec(spec: SandboxSpec, backend: str, *, lacks: Collection[str]) -> None:
    """Checks a spec before a sandbox is opened.

    Args:
        spec: The spec.
        backend: Name of the backend.
        lacks: Names of the optional fields that the backend does not support.

    Raises:
        InvalidArgumentError: A layer, interpreter or mount does not exist, a target or port is
            invalid, the interpreter's folder is private, a variable cannot be passed to a process,
            ``shell`` is unknown, ``network`` is set with ``forwards``, or a field is unsupported.
    """
    if spec.shell not in SHELLS:
        raise InvalidArgumentError(f"shell must be one of {SHELLS}, got {spec.shell!r}")
    check_env(spec.env)
    check_env({"PATH": ":".join(spec.path)})
    if field_names := [name for name in lacks if getattr(spec, name)]:
        raise InvalidArgumentError(
            f"the {backend!r} sandbox does not support {', '.join(field_names)}; use 'namespace'"
        )
    _check_targets([*(mount.target for mount in spec.mounts), spec.workspace_alias or WORKDIR])
    _check_sources(spec)
    for port in spec.forwards:
        within(_PORTS, "a port of forwards", port)
    if spec.forwards and spec.network:
        raise InvalidArgumentError("forwards need network=False, got True; set only one of the two")


def _check_targets(targets: Iterable[str]) -> None:
    for text in targets:
        target = PurePosixPath(text)
        is_below_root = target.is_absolute() and target != PurePosixPath("/")
        if not is_below_root or ".." in target.parts or not is_passable(text):
            raise InvalidArgumentError(
                "the target of a mount, and workspace_alias, must be an absolute path "
                f"below / and without '..', got {text!r}"
            )


def _check_sources(spec: SandboxSpec) -> None:
    for folder in (*spec.layers, *([spec.python.prefix] if spec.python else ())):
        if not os.path.isdir(folder):  # noqa: PTH112 - false for every path that cannot be read
            raise InvalidArgumentError(
                f"a layer or interpreter of a sandbox must be a readable folder, got {folder}"
            )
    prefix = spec.python.prefix.resolve() if spec.python else Path("/usr")
    if not prefix.is_relative_to("/usr") and is_private(prefix):
        raise InvalidArgumentError(
            f"the interpreter's folder must hold no private files of the user, got {prefix}; use a "
            "Python in a separate folder, for example from `uv python install`"
        )
    for mount in spec.mounts:
        if not os.path.exists(mount.source):  # noqa: PTH110 - as for `isdir`
            raise InvalidArgumentError(f"the source of a mount must exist, got {mount.source}")


def check_snapshot(snapshot: Snapshot, *, backend: str, spec: SandboxSpec) -> None:
    """Raises InvalidArgumentError if a snapshot is of another backend or spec."""
    if (snapshot.backend, snapshot.spec) != (backend, spec):
        raise InvalidArgumentError(
            f"the snapshot must be of a {backend!r} sandbox with an equal spec, got "
            f"{snapshot.backend!r} with {'an equal' if snapshot.spec == spec else 'another'} spec; "
            "open a sandbox with the snapshot's backend and spec"
        )


def render_output(head: bytes, tail: bytes, num_bytes: int) -> tuple[str, bool]:
    """Returns a command's output as text, and whether its middle was omitted."""
    if len(head) + len(tail) == num_bytes:
        return (head + tail).decode("utf-8", "replace"), False
    first, last = (part.decode("utf-8", "replace") for part in (head, tail))
    num_omitted = num_bytes - len(head) - len(tail)
    return f"{first}\n[... {num_omitted} bytes omitted ...]\n{last}", True
