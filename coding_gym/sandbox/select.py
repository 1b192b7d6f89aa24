"""Finds sandbox backends by name, and imports each on its first use."""

import importlib
import logging
from functools import cache
from typing import cast

from coding_gym.arguments import unknown_name
from coding_gym.errors import SandboxUnavailableError
from coding_gym.sandbox.protocol import Probe, Sandbox, SandboxBackend, Snapshot
from coding_gym.sandbox.spec import SandboxSpec

# In the order in which "auto" tries them.
_BACKENDS = {
    "namespace": "coding_gym.sandbox.namespace:NamespaceBackend",
    "landlock": "coding_gym.sandbox.landlock:LandlockBackend",
    "docker": "coding_gym.sandbox.docker_backend:DockerBackend",
}

_log = logging.getLogger(__name__)


def get_backend(name: str = "auto") -> SandboxBackend:
    """Returns a backend, the same object for the same name.

    ``"auto"`` is the first of ``namespace``, ``landlock`` and ``docker`` in which a sandbox opens.
    The choice is kept for the rest of the process.

    Raises:
        UnknownNameError: No backend has that name.
        SandboxUnavailableError: For ``"auto"``: no backend works; the message has a remedy.
        SandboxError: For ``"auto"``: a backend failed for a transient reason.
    """
    return _backend(_automatic() if name == "auto" else name)


def probe_backends() -> tuple[dict[str, Probe], str]:
    """Tests every backend by opening a temporary sandbox.

    Returns:
        The result of each backend's probe, and the name of the first backend whose probe succeeded;
        "" if none did. ``"auto"`` selects this backend, unless this process chose another before.
    """
    probes = {name: _backend(name).probe() for name in _BACKENDS}
    return probes, next((name for name in _BACKENDS if probes[name].available), "")


def open_sandbox(
    spec: SandboxSpec, *, backend: str = "auto", snapshot: Snapshot | None = None
) -> Sandbox:
    """Opens a sandbox.

    Args:
        spec: Folders, interpreter and limits of the sandbox.
        backend: As for `get_backend`.
        snapshot: Initial files, from a sandbox of an equal spec.

    Raises:
        UnknownNameError: No backend has that name.
        InvalidArgumentError: As `SandboxBackend.open`.
        SandboxUnavailableError: This machine cannot run the backend; the message has the remedy.
        SandboxError: The set-up failed for a transient reason.
    """
    return get_backend(backend).open(spec, snapshot=snapshot)


@cache
def _backend(name: str) -> SandboxBackend:
    if name not in _BACKENDS:
        raise unknown_name("sandbox backend", name, ("auto", *_BACKENDS))
    module, _, kind = _BACKENDS[name].partition(":")
    return cast("SandboxBackend", getattr(importlib.import_module(module), kind)())


@cache
def _automatic() -> str:
    """Returns the name of the first backend that works here."""
    refusals: list[SandboxUnavailableError] = []
    for name in _BACKENDS:
        try:
            _backend(name).open(SandboxSpec()).close()
        except SandboxUnavailableError as error:
            refusals.append(error)
            continue
        if refusals:
            first = next(iter(_BACKENDS))
            _log.warning("using %r because %r is unavailable: %s", name, first, refusals[0])
        return name
    problem = f"no sandbox backend works on this machine: {refusals[0].problem}"
    raise SandboxUnavailableError(problem, refusals[0].remedy) from refusals[0]
