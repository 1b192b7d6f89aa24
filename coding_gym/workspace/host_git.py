"""Runs git on the host, without any of the host's configuration.

Git runs here only in repositories that this package made. From other repositories it only fetches
objects, which are data: it runs no hook, filter or helper of theirs, and reads no setting of theirs
or of the host.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from coding_gym.errors import MissingDependencyError, last_line
from coding_gym.host.network import network_variables
from coding_gym.sandbox.host_program import run_program

_COMPLAINTS = ("fatal:", "error:", "remote:")

# They lead to the keys and passwords of the host that a fetch over the network may need.
_KEY_VARIABLES = ("HOME", "SSH_AUTH_SOCK")

GIT_TIMEOUT_S = 3600.0

GIT_SETTINGS = Path(__file__).with_name("host_git.ini")


class HostGitError(Exception):
    """A git command on the host failed; the message is that of git.

    Internal: the template store converts it to a `TemplateError` with the task's id.
    """


def run_git(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    network: bool = False,
    timeout_s: float = GIT_TIMEOUT_S,
) -> str:
    """Runs ``git <arguments>`` and returns its standard output without the last line feed.

    Bytes that are not UTF-8 become surrogate escapes.

    Args:
        arguments: The arguments after ``git``.
        cwd: The working folder, in a repository that this package made.
        env: More environment variables.
        network: Whether git may use protocols other than local ones.
        timeout_s: Time limit in seconds.

    Raises:
        HostGitError: Git exited with a nonzero status, or took too long.
        MissingDependencyError: There is no git on this machine.
    """
    if shutil.which("git") is None:
        raise MissingDependencyError("git is not installed; run: apt-get install git")
    # Not the host's variables: if this process runs under git, GIT_DIR or GIT_CONFIG_COUNT must
    # not affect this command.
    variables = _environment(network) | dict(env or {})
    try:
        ended = run_program(["git", *arguments], cwd=cwd, env=variables, timeout_s=timeout_s)
    except TimeoutError as error:
        raise HostGitError(f"git {arguments[0]}: {error}") from error
    if ended.returncode:
        otherwise = f"git {arguments[0]} exited with {ended.returncode}"
        raise HostGitError(git_complaint(_decoded(ended.stderr), otherwise))
    return _decoded(ended.stdout).removesuffix("\n")


def _environment(network: bool) -> dict[str, str]:
    variables = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "TZ": "UTC",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(GIT_SETTINGS),
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "file:https:http:ssh:git" if network else "file",
    }
    if network:
        variables |= network_variables()
        variables |= {k: v for k in _KEY_VARIABLES if (v := os.environ.get(k))}
    return variables


def git_complaint(output: str, otherwise: str = "no output") -> str:
    """Returns git's last error message in ``output``; without one, the last line.

    Several lines of advice may follow an error message.
    """
    lines = [line for line in output.splitlines() if line.lstrip().startswith(_COMPLAINTS)]
    return last_line("\n".join(lines) or output, otherwise)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
