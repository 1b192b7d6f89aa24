"""A bound on replies in a row that cannot be read."""

from dataclasses import replace

import gymnasium as gym
from gymnasium.core import ActType, ObsType

from coding_gym.arguments import at_least_one
from coding_gym.wrappers.chain import check_order


class FormatErrorLimit(
    gym.Wrapper[ObsType, ActType, ObsType, ActType], gym.utils.RecordConstructorArgs
):
    """Truncates an episode after so many replies in a row that could not be read.

    Counted are replies that seem to hold a call of which nothing could be read, replies whose calls
    all have malformed arguments, and replies without a call where the toolset says that this is an
    error (`coding_gym.tools.NoCall.is_format_error`). A reply with a call that can be read starts
    the count again, whether the tool exists or not; mini-swe-agent's default is three as well.

    The episode ends with ``format_errors``. How many more will end it is ``format_errors`` in
    ``info["budget"]``.

    The wrapper only sets `CodingRepairEnv.limits`, which the next `reset` reads.

    Args:
        env: The environment, which may be wrapped.
        max_errors: Replies in a row.

    Raises:
        InvalidArgumentError: The number cannot be used, or ``env`` cannot be wrapped.
    """

    def __init__(self, env: gym.Env[ObsType, ActType], max_errors: int = 3) -> None:
        core = check_order(FormatErrorLimit, env)
        limits = replace(core.limits, max_format_errors=at_least_one("max_errors", max_errors))
        gym.utils.RecordConstructorArgs.__init__(self, max_errors=limits.max_format_errors)
        gym.Wrapper.__init__(self, env)
        core.limits = limits
