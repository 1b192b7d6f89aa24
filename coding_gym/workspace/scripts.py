"""Reads the shell scripts of this folder, and runs ``base_git.sh`` in sandboxes."""

from pathlib import Path

from coding_gym.calls import ExecResult
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.workspace.template import BASE_GIT

BASE_GIT_SCRIPT = Path(__file__).with_name("base_git.sh").read_text(encoding="utf-8")
IMAGE_TREE_SCRIPT = Path(__file__).with_name("image_tree.sh").read_text(encoding="utf-8")

ENV = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/dev/null",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
}
TIMEOUT_S = 600.0  # of a script that reads a whole tree


def run_base_git(
    sandbox: Sandbox,
    action: str,
    *,
    timeout_s: float = TIMEOUT_S,
    max_output_bytes: int = 1 << 16,
    stdin: bytes = b"",
    **variables: str,
) -> ExecResult:
    """Runs ``base_git.sh`` in a sandbox of a template.

    Args:
        sandbox: Opened from the spec of the template.
        action: The function of the script to run.
        timeout_s: As for `Sandbox.run`.
        max_output_bytes: As for `Sandbox.run`.
        stdin: As for `Sandbox.run`.
        variables: Further variables of the script.

    Raises:
        SandboxError: The sandbox is closed or died.
    """
    git = {"GIT_DIR": sandbox.path(BASE_GIT), "GIT_WORK_TREE": sandbox.workdir}
    return sandbox.run(
        BASE_GIT_SCRIPT,
        timeout_s=timeout_s,
        max_output_bytes=max_output_bytes,
        cwd="/",
        env=ENV | git | variables | {"CG_ACTION": action},
        stdin=stdin,
    )
