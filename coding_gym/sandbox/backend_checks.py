"""The probe of a backend and the check of a spec, the same for all backends."""

from collections.abc import Callable, Collection

from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.sandbox.promises import Promise
from coding_gym.sandbox.protocol import Probe, Sandbox
from coding_gym.sandbox.results import check_env, check_shell
from coding_gym.sandbox.spec import SandboxSpec

_TIMEOUT_S = 10.0
_UNKNOWN_REMEDY = "run it again; if it keeps failing, report it with this message"


def failed_probe(open_sandbox: Callable[[SandboxSpec], Sandbox]) -> Probe | None:
    """Opens a throw-away sandbox, runs a command in it and closes it.

    Args:
        open_sandbox: The backend's own ``open``.

    Returns:
        The failure with its remedy; None where all went well.
    """
    try:
        with open_sandbox(SandboxSpec()) as sandbox:
            result = sandbox.run("echo works", timeout_s=_TIMEOUT_S)
        if result.output != "works\n":
            raise SandboxError(f"a first command printed {result.output!r}")
    except SandboxUnavailableError as error:
        remedy = error.remedy or _UNKNOWN_REMEDY
        return Probe(available=False, detail=error.problem, remedy=remedy)
    except SandboxError as error:
        return Probe(available=False, detail=str(error), remedy=_UNKNOWN_REMEDY)
    return None


def check_spec(spec: SandboxSpec, *, backend: str, missing: Collection[Promise]) -> None:
    """Checks what can be checked of a spec before a sandbox is opened.

    Args:
        spec: The spec.
        backend: The backend's name, for the message.
        missing: The promises that the backend never keeps.

    Raises:
        InvalidArgumentError: A layer or mount does not exist, a variable cannot be passed to a
            process, or the spec needs one of the missing promises.
    """
    check_env(spec.env)
    for path in (*spec.layers, *(mount.source for mount in spec.mounts)):
        if not path.exists():
            raise InvalidArgumentError(f"the sandbox's layer or mount {path} does not exist")
    if spec.image and Promise.OWN_IMAGE in missing:
        raise InvalidArgumentError(
            f"the {backend!r} sandbox cannot run the image {spec.image!r}; use 'namespace' or "
            "'docker'"
        )
    if check_shell(spec.shell) == "persistent" and Promise.PERSISTENT_SHELL in missing:
        raise InvalidArgumentError(
            f"the {backend!r} sandbox has no persistent shells; use shell='fresh', or 'namespace'"
        )
