"""Tokenizers by name, chats as token ids, truncation, and control tokens in text."""

from coding_gym.text.families import CONTROL_TOKENS
from coding_gym.text.neutral import control_tokens, neutralise

__all__ = ["CONTROL_TOKENS", "control_tokens", "neutralise"]
