"""A bound on the time of an episode."""

from dataclasses import replace

import gymnasium as gym
from gymnasium.core import ActType, ObsType

from coding_gym.arguments import positive_seconds
from coding_gym.wrappers.chain import check_order


class TimeBudget(gym.Wrapper[ObsType, ActType, ObsType, ActType], gym.utils.RecordConstructorArgs):
    """Truncates an episode when its time is spent; a command gets no more than what is left.

    Two clocks:

    - ``"commands"``: the time inside tool calls. How long the policy thinks, a trainer updates
      weights or other slots of a vector env work does not count, so that a policy's return does not
      depend on the speed of what trains it.
    - ``"wall"``: all time since `reset` returned, as nano-agent counts it. For evaluation against a
      deadline. An action that comes too late is not played.

    The episode ends with ``max_time`` after the call that spends the time, within an action too.
    What is left is ``seconds`` in ``info["budget"]``, rounded up to whole seconds: the one number
    there that may differ between equal runs. A snapshot keeps the time used so far.

    The wrapper only sets `CodingRepairEnv.limits`, which the next `reset` reads.

    Args:
        env: The environment, which may be wrapped.
        max_seconds: Seconds per episode. The default is ten times a command's own bound.
        clock: ``"commands"`` or ``"wall"``.

    Raises:
        InvalidArgumentError: The number cannot be used, or ``env`` cannot be wrapped.
        UnknownNameError: There is no such clock.
    """

    def __init__(
        self, env: gym.Env[ObsType, ActType], max_seconds: float = 1200.0, clock: str = "commands"
    ) -> None:
        core = check_order(TimeBudget, env)
        bound = positive_seconds("max_seconds", max_seconds)
        limits = replace(core.limits, max_seconds=bound, clock=clock)
        gym.utils.RecordConstructorArgs.__init__(self, max_seconds=bound, clock=limits.clock)
        gym.Wrapper.__init__(self, env)
        core.limits = limits
