"""Runs of many episodes."""

from coding_gym.rollout.runner import Runner

__all__ = ["Runner"]
