"""A bound on what the tokens of an episode cost."""

from dataclasses import replace

import gymnasium as gym
from gymnasium.core import ActType, ObsType

from coding_gym.errors import InvalidArgumentError
from coding_gym.text.chat import get_chat
from coding_gym.wrappers.chain import check_order


class CostBudget(gym.Wrapper[ObsType, ActType, ObsType, ActType], gym.utils.RecordConstructorArgs):
    """Truncates an episode when its money is spent.

    Every reply is charged as an API bills it: the whole chat before it as input, the reply as
    output, at a price for a million tokens each. With ``cached_input_price``, what was in the
    prompt of the reply before is charged at that, as by a server that caches every prefix. Tokens
    are counted by the env's tokenizer, in the chat as a model is sent it, or as a `TokenBudget` in
    the same chain counts them.

    The episode ends with ``max_cost`` after the tool call, or the reply without one, with which
    nothing is left. That is ``cost`` in ``info["budget"]``, in the currency of the prices.

    The wrapper only sets `CodingRepairEnv.limits`, which the next `reset` reads.

    Args:
        env: The environment, which may be wrapped.
        max_cost: What an episode may cost, in any currency.
        input_price: Of a million tokens of input, in that currency.
        output_price: Of a million tokens of output.
        cached_input_price: Of a million tokens of input that were in the last prompt; None where
            they cost as much as others.

    Raises:
        InvalidArgumentError: A number cannot be used, ``env`` cannot be wrapped, or its tokenizer
            has no chat template to count by.
    """

    def __init__(
        self,
        env: gym.Env[ObsType, ActType],
        max_cost: float,
        input_price: float,
        output_price: float,
        cached_input_price: float | None = None,
    ) -> None:
        core = check_order(CostBudget, env)
        for name, value in (("max_cost", max_cost), ("input_price", input_price)):
            if value is None:
                raise InvalidArgumentError(f"{name} must be a number, got None")
        limits = replace(
            core.limits,
            max_cost=max_cost,
            input_price=input_price,
            output_price=output_price,
            cached_input_price=cached_input_price,
        )
        if limits.count == "chat":  # refused here rather than at the first reset
            get_chat(core.tokenizer, core.toolset.schemas, core.tool_format)
        gym.utils.RecordConstructorArgs.__init__(
            self,
            max_cost=limits.max_cost,
            input_price=limits.input_price,
            output_price=limits.output_price,
            cached_input_price=limits.cached_input_price,
        )
        gym.Wrapper.__init__(self, env)
        core.limits = limits
