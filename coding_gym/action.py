"""What a caller hands to ``step``: plain text, text with its tokens, or a request to stop."""

from collections.abc import Sequence
from typing import Self


class Completion(str):
    """A policy's reply with the tokens that were really sampled.

    A plain ``str`` works everywhere a `Completion` does; its tokens are then counted by encoding
    it, and trajectories mark that count as inexact.

    Attributes:
        token_ids: The sampled ids, in order.
        logprobs: One log-probability per id (natural logarithm), or None.
    """

    __slots__ = ("logprobs", "token_ids")

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...] | None

    def __new__(
        cls, text: str, token_ids: Sequence[int], logprobs: Sequence[float] | None = None
    ) -> Self:
        """Makes the text.

        Args:
            text: The reply.
            token_ids: The sampled ids, in order; none only where the text is empty too.
            logprobs: One log-probability per id (natural logarithm), or None.

        Raises:
            ValueError: Ids and log-probabilities differ in number, or a text has no ids.
        """
        if logprobs is not None and len(logprobs) != len(token_ids):
            raise ValueError(
                f"logprobs must have one entry per token id ({len(token_ids)}), got {len(logprobs)}"
            )
        self = super().__new__(cls, text)
        self.token_ids = tuple(int(i) for i in token_ids)
        if text and not self.token_ids:  # no token budget would ever be charged for it
            raise ValueError(
                f"token_ids must be the ids of the text, got none for {len(text)} characters; "
                "hand over the plain text where its ids are not known"
            )
        self.logprobs = None if logprobs is None else tuple(float(p) for p in logprobs)
        return self

    def __getnewargs__(self) -> tuple[str, tuple[int, ...], tuple[float, ...] | None]:  # type: ignore[override]
        return str(self), self.token_ids, self.logprobs


class Stop(str):
    """An action that ends the episode from outside: the tree is graded as it stands."""

    __slots__ = ()

    def __new__(cls, reason: str = "stopped by the caller") -> Self:
        """Makes the action.

        Args:
            reason: Why, for the record; also the text of the action.
        """
        return super().__new__(cls, reason)
