"""A bound on the tool calls of an episode, with nano-agent's warnings."""

from dataclasses import replace

import gymnasium as gym
from gymnasium.core import ActType, ObsType

from coding_gym.arguments import at_least_one, true_or_false
from coding_gym.wrappers.chain import check_order


class ToolCallBudget(
    gym.Wrapper[ObsType, ActType, ObsType, ActType], gym.utils.RecordConstructorArgs
):
    """Truncates an episode when its tool calls are spent, and says so before.

    Every call of a reply counts, failed ones too, and so does a reply without a call that the
    toolset charges for. The episode ends with ``max_tool_calls`` after the last one, within an
    action too (nano-agent 5.0.0 grants one reply more). With warnings, replies of tools begin with
    a line when the call is one of the last four, as there; the default is nano-agent's as well.
    What is left is ``tool_calls`` in ``info["budget"]``.

    The wrapper only sets `CodingRepairEnv.limits`, which the next `reset` reads.

    Args:
        env: The environment, which may be wrapped.
        max_tool_calls: Tool calls per episode.
        warnings: Whether the policy is warned.

    Raises:
        InvalidArgumentError: The number cannot be used, or ``env`` cannot be wrapped.
    """

    def __init__(
        self,
        env: gym.Env[ObsType, ActType],
        max_tool_calls: int = 30,
        warnings: bool = True,
    ) -> None:
        core = check_order(ToolCallBudget, env)
        limits = replace(
            core.limits,
            max_tool_calls=at_least_one("max_tool_calls", max_tool_calls),
            warn_tool_calls=true_or_false("warnings", warnings),
        )
        gym.utils.RecordConstructorArgs.__init__(
            self, max_tool_calls=limits.max_tool_calls, warnings=limits.warn_tool_calls
        )
        gym.Wrapper.__init__(self, env)
        core.limits = limits
