"""Backends by name."""

from collections.abc import Callable

from coding_gym.arguments import unknown_name
from coding_gym.errors import SandboxUnavailableError
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.process import ProcessBackend
from coding_gym.sandbox.protocol import Sandbox, SandboxBackend
from coding_gym.sandbox.spec import SandboxSpec

_BACKENDS: dict[str, Callable[[], SandboxBackend]] = {
    "namespace": NamespaceBackend,
    "process": ProcessBackend,
}
# What "auto" tries, in order. Never one that isolates less than was asked for.
_AUTOMATIC = ("namespace",)


def backend_names() -> tuple[str, ...]:
    """Returns the names that `get_backend` knows."""
    return tuple(sorted(_BACKENDS))


def get_backend(name: str = "auto") -> SandboxBackend:
    """Returns a backend; ``"auto"`` is the best that this kind of machine may have.

    Raises:
        UnknownNameError: No backend has that name.
    """
    if name == "auto":
        name = _AUTOMATIC[0]
    if name not in _BACKENDS:
        raise unknown_name("sandbox backend", name, ("auto", *_BACKENDS))
    return _BACKENDS[name]()


def open_sandbox(spec: SandboxSpec, *, backend: str = "auto") -> Sandbox:
    """Opens a sandbox.

    Args:
        spec: What it is made of.
        backend: A name of `backend_names`, or ``"auto"``, which isolates or fails.

    Raises:
        UnknownNameError: No backend has that name.
        InvalidArgumentError: A layer or mount of the spec does not exist.
        SandboxUnavailableError: This machine cannot run the backend; says the remedy.
        SandboxError: It can, but this time it failed.
    """
    chosen = get_backend(backend)
    try:
        return chosen.open(spec)
    except SandboxUnavailableError as error:
        if backend != "auto":
            raise
        problem = f"no sandbox works on this machine: {error.problem}"
        raise SandboxUnavailableError(problem, error.remedy) from error
