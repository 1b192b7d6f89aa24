"""A bound on the tokens of an episode, with nano-agent's warnings."""

from dataclasses import replace

import gymnasium as gym
from gymnasium.core import ActType, ObsType

from coding_gym.arguments import at_least_one, true_or_false
from coding_gym.text.chat import get_chat
from coding_gym.wrappers.chain import check_order


class TokenBudget(gym.Wrapper[ObsType, ActType, ObsType, ActType], gym.utils.RecordConstructorArgs):
    """Truncates an episode when its tokens are spent, and says so before.

    Counted are the prompt, the policy's replies, and the observations with their warnings, by the
    env's tokenizer; the ids of a `coding_gym.Completion` count as they are. What is left, the
    reserve included, is ``tokens`` in ``info["budget"]``. There are two ways to count:

    - ``"chat"``: the chat as a model is sent it, with roles, control tokens, the tools' schemas and
      what asks for the next reply. While the episode runs it is the number of ids that
      `TranscriptObservation` observes. nano-agent counts the schemas too, and guesses the rest.
    - ``"content"``: the contents of the messages alone, which any tokenizer can do.

    The episode ends with ``max_tokens`` as soon as no more than the reserve is left, within an
    action too; a reply that is itself too long still has its first call run. Where the prompt
    alone leaves no more than the reserve, the first step ends the episode and its action is not
    played. With warnings, replies of tools begin with a line when fewer than 3,000 and fewer than
    1,500 tokens are left, as in nano-agent 5.0.0, whose defaults these are.

    The wrapper only sets `CodingRepairEnv.limits`, which the next `reset` reads.

    Args:
        env: The environment, which may be wrapped.
        max_tokens: Tokens per episode.
        reserve_tokens: Tokens of these that the episode must not use up.
        warnings: Whether the policy is warned.
        count: ``"chat"`` or ``"content"``.
        response_limit: The most tokens of one reply. Nothing is cut off: ``response_tokens`` in
            ``info["budget"]`` is what nano-agent would ask for next, at most half of what is left
            beyond a tenth of ``max_tokens``, but at least 256.

    Raises:
        InvalidArgumentError: A number cannot be used, ``env`` cannot be wrapped, or its tokenizer
            has no chat template to count by.
        UnknownNameError: There is no such way to count.
    """

    def __init__(
        self,
        env: gym.Env[ObsType, ActType],
        max_tokens: int = 8192,
        reserve_tokens: int = 600,
        warnings: bool = True,
        count: str = "chat",
        response_limit: int | None = None,
    ) -> None:
        core = check_order(TokenBudget, env)
        limits = replace(
            core.limits,
            max_tokens=at_least_one("max_tokens", max_tokens),
            reserve_tokens=reserve_tokens,
            warn_tokens=true_or_false("warnings", warnings),
            count=count,
            response_limit=response_limit,
        )
        if limits.count == "chat":  # refused here rather than at the first reset
            get_chat(core.tokenizer, core.toolset.schemas, core.tool_format)
        gym.utils.RecordConstructorArgs.__init__(
            self,
            max_tokens=limits.max_tokens,
            reserve_tokens=limits.reserve_tokens,
            warnings=limits.warn_tokens,
            count=limits.count,
            response_limit=limits.response_limit,
        )
        gym.Wrapper.__init__(self, env)
        core.limits = limits
