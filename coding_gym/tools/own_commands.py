"""Commands that tools run for themselves, in the time that an episode has left."""

from collections.abc import Mapping

from coding_gym.calls import ExecResult
from coding_gym.tools.protocol import ToolContext

_BOUND_S = 30.0
_MAX_OUTPUT_BYTES = 1 << 20


def run_own(
    context: ToolContext,
    command: str,
    *,
    bound_s: float = _BOUND_S,
    max_output_bytes: int = _MAX_OUTPUT_BYTES,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> ExecResult:
    """Runs a tool's own command, no longer than one of the policy may take now.

    Args:
        context: The episode.
        command: What is run; what a policy gave comes in ``env`` or ``stdin``.
        bound_s: Seconds that it may take where the episode has more.
        max_output_bytes: What is kept of its output.
        env: Its variables.
        stdin: Its input.

    Raises:
        SandboxError: The sandbox is closed or died.
    """
    return context.sandbox.run(
        command,
        timeout_s=min(bound_s, context.command_timeout_s),
        max_output_bytes=max_output_bytes,
        env=dict(env or {}),
        stdin=stdin,
    )
