"""The record of an episode: turns as they were played, tokens as they were sampled."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from coding_gym.action import Completion, Stop
from coding_gym.calls import ToolCall, ToolResult
from coding_gym.episode.outcome import Outcome
from coding_gym.text.tokenizers import Tokenizer
from coding_gym.trajectory import Turn


def record_turn(
    action: str,
    calls: Sequence[ToolCall],
    results: Sequence[ToolResult],
    outcome: Outcome,
    duration_s: float,
) -> Turn:
    """Returns the record of one turn; only a `Completion` has token ids yet.

    A `Stop` is nothing that a policy said: it has no tokens, and that is exact.
    """
    sampled = action if isinstance(action, Completion) else None
    return Turn(
        action=str(action),
        token_ids=sampled.token_ids if sampled is not None else (),
        exact=sampled is not None or isinstance(action, Stop),
        logprobs=sampled.logprobs if sampled is not None else None,
        calls=tuple(calls),
        results=tuple(results),
        observation=outcome.text,
        reward=outcome.reward,
        reward_parts=outcome.reward_parts,
        duration_s=duration_s,
    )


def with_token_ids(turns: Iterable[Turn], tokenizer: Tokenizer) -> tuple[Turn, ...]:
    """Returns the turns with the plain replies encoded; those stay marked as inexact."""
    return tuple(
        turn if turn.exact else replace(turn, token_ids=tuple(tokenizer.encode(turn.action)))
        for turn in turns
    )
