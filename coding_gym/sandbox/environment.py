"""The environment variables that commands see: fixed ones, so that runs repeat byte for byte."""

from collections.abc import Mapping

from coding_gym.host.toolchains import SYSTEM_PATH
from coding_gym.sandbox.spec import HOME, SandboxSpec

_IDENTITY = ("agent", "agent@example.org")

FIXED = {
    "HOME": HOME,
    "USER": "agent",
    "LOGNAME": "agent",
    "SHELL": "/bin/bash",
    # LC_CTYPE alone: LANG makes every start of bash a fifth of a millisecond slower.
    "LC_CTYPE": "C.UTF-8",
    "TZ": "UTC",
    "TERM": "dumb",
    "COLUMNS": "80",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": _IDENTITY[0],
    "GIT_AUTHOR_EMAIL": _IDENTITY[1],
    "GIT_COMMITTER_NAME": _IDENTITY[0],
    "GIT_COMMITTER_EMAIL": _IDENTITY[1],
    "PYTHONHASHSEED": "0",
    # No bytecode in the workspace: it would show up in `git status` and `ls`.
    "PYTHONDONTWRITEBYTECODE": "1",
    # Else Rust's tests are listed in the order in which their threads end.
    "RUST_TEST_THREADS": "1",
}


def environment(
    spec: SandboxSpec,
    *,
    first: tuple[str, ...] = (),
    image_env: Mapping[str, str] | None = None,
    user: str = "",
) -> dict[str, str]:
    """Returns the variables of a sandbox's commands.

    Args:
        spec: Gives ``path`` and ``env``, which win.
        first: Folders that go behind ``spec.path`` and before the system's.
        image_env: Variables of the image, which win over the fixed ones; its ``PATH`` takes the
            place of the system's.
        user: The image's user; "" without one.
    """
    own = dict(image_env or {})
    if user:
        own = {"USER": user, "LOGNAME": user} | own
    system = own.pop("PATH", "") or SYSTEM_PATH
    path = ":".join((*spec.path, *first, system))
    return {**FIXED, **own, "PATH": path, **spec.env}


def mounted_packages(spec: SandboxSpec) -> dict[str, str]:
    """Returns the variable by which another Python finds the packages of the spec's.

    For backends that do not show the spec's interpreter with what is mounted in it.
    """
    if spec.python is None:
        return {}
    site = str(spec.python.site_packages)
    return {"PYTHONPATH": site} if any(mount.target == site for mount in spec.mounts) else {}
