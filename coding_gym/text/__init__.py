"""Tokens and text: tokenizers by name, observation encoding, truncation."""
