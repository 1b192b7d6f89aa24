"""The environment variables that commands see: fixed ones, so that runs repeat byte for byte."""

from coding_gym.sandbox.spec import HOME, SandboxSpec

SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
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
}


def environment(spec: SandboxSpec, *, first: tuple[str, ...] = ()) -> dict[str, str]:
    """Returns the variables of a sandbox's commands.

    Args:
        spec: Gives ``path`` and ``env``, which win.
        first: Folders that go behind ``spec.path`` and before the system's.
    """
    path = ":".join((*spec.path, *first, *SYSTEM_PATH))
    return {**FIXED, "PATH": path, **spec.env}
