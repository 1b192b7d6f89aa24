"""Tokens and text: tokenizers by name, observation encoding, truncation, neutralising."""

from coding_gym.text.neutral import CONTROL_TOKENS, control_tokens, neutralise

__all__ = ["CONTROL_TOKENS", "control_tokens", "neutralise"]
