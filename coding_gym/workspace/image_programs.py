"""What this package runs in a sandbox, and an image may lack."""

from coding_gym.sandbox.protocol import Sandbox
from coding_gym.workspace.scripts import ENV

_TIMEOUT_S = 120.0
# What the scripts that compute and apply patches run.
_PROGRAMS = "base64 chmod cmp comm cp find git mkdir rm sed sort tr"
_LOOK = f'for name in {_PROGRAMS}; do command -v "$name" > /dev/null || echo "$name"; done'


def missing_programs(sandbox: Sandbox) -> str:
    """Returns what a sandbox's image lacks, and what to do; "" where it has everything.

    Raises:
        SandboxError: The sandbox is closed or died.
    """
    result = sandbox.run(_LOOK, timeout_s=_TIMEOUT_S, cwd="/", env=ENV)
    if not result.ok:
        return f"has no bash that runs: {result.output.strip()}"
    if not result.output.strip():
        return ""
    names = ", ".join(result.output.split())
    return f"lacks {names}; install git, findutils, diffutils, coreutils and sed in it"
