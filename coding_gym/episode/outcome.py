"""The result of an action."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from coding_gym.trajectory import Message, StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one action, or of the start of an episode.

    Attributes:
        messages: The new chat messages, the policy's own included.
        text: The text of the new messages that the policy has not written.
        reward: 1.0 when this action ended the episode and the patch is resolved, else 0.0.
        reward_parts: The parts of the reward, by name.
        stop_reason: Why the episode ended with this action, or None.
    """

    messages: tuple[Message, ...]
    text: str
    reward: float = 0.0
    reward_parts: Mapping[str, float] = field(default_factory=dict)
    stop_reason: StopReason | None = None
