"""An end to episodes in which a policy makes the same call over and over."""

from dataclasses import replace

import gymnasium as gym
from gymnasium.core import ActType, ObsType

from coding_gym.arguments import at_least
from coding_gym.wrappers.chain import check_order


class CollapseDetector(
    gym.Wrapper[ObsType, ActType, ObsType, ActType], gym.utils.RecordConstructorArgs
):
    """Warns a policy that makes the same call over and over, and then truncates the episode.

    Two calls are the same where their name and arguments are, whatever the order of the keys. They
    count wherever they stand, in one reply or in several, and whatever came before them (NeMo Gym,
    whose warning and default these are, misses repeats that begin after other commands). The reply
    to the last call that is allowed begins with the warning; once more the same, and the episode
    ends with ``collapsed``. Another call starts the count again; a reply without a call does not.

    How many more of the same will end the episode is ``repeats`` in ``info["budget"]``.

    The wrapper only sets `CodingRepairEnv.limits`, which the next `reset` reads.

    Args:
        env: The environment, which may be wrapped.
        repeats: How many times running the same call may be made, at least 2.

    Raises:
        InvalidArgumentError: The number cannot be used, or ``env`` cannot be wrapped.
    """

    def __init__(self, env: gym.Env[ObsType, ActType], repeats: int = 3) -> None:
        core = check_order(CollapseDetector, env)
        limits = replace(core.limits, max_repeats=at_least(2, "repeats", repeats))
        gym.utils.RecordConstructorArgs.__init__(self, repeats=limits.max_repeats)
        gym.Wrapper.__init__(self, env)
        core.limits = limits
