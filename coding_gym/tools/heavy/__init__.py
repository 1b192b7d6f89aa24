"""Toolset ``heavy``: a repository map, fault localisation, checked edits, notes."""

from coding_gym.tools.heavy.toolset import HEAVY

__all__ = ["HEAVY"]
