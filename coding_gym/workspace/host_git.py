"""Runs git on the host, without the host's configuration.

Git runs only in repositories that this package made. From other repositories, git only fetches
objects, which are data: git does not run the hooks, filters and helpers of these repositories, and
does not read their settings.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from coding_gym.errors import MissingDependencyError
from coding_gym.host.network import network_variables
from coding_gym.program_output import error_line
from coding_gym.sandbox.host_program import run_program

# With these variables, git and ssh find keys and passwords for a fetch over the network.
_CREDENTIAL_VARIABLES = ("HOME", "SSH_AUTH_SOCK")

GIT_TIMEOUT_S = 3600.0

GIT_SETTINGS = Path(__file__).with_name("host_git.ini")


class HostGitError(Exception):
    """A git command on the host failed; the message is git's error line.

    Internal: the template store converts the error to a `TemplateError` with the task's id.
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
        env: Additional environment variables.
        network: Whether git may use network protocols; otherwise only local paths.
        timeout_s: Time limit in seconds.

    Raises:
        HostGitError: Git exited with a nonzero status, or took too long.
        MissingDependencyError: git is not installed on this machine.
    """
    if shutil.which("git") is None:
        raise MissingDependencyError("git is not installed; run: apt-get install git")
    # The process's own variables are not passed on: this process can run under git, whose GIT_DIR
    # or GIT_CONFIG_COUNT must not affect this command.
    variables = _environment(network) | dict(env or {})
    try:
        process = run_program(["git", *arguments], cwd=cwd, env=variables, timeout_s=timeout_s)
    except TimeoutError as error:
        raise HostGitError(f"git {arguments[0]}: {error}") from error
    if process.returncode:
        message = f"git {arguments[0]} exited with {process.returncode}"
        raise HostGitError(error_line(_decode(process.stderr), message))
    return _decode(process.stdout).removesuffix("\n")


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
        variables |= {k: v for k in _CREDENTIAL_VARIABLES if (v := os.environ.get(k))}
    return variables


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
