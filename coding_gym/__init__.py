"""A Gymnasium environment for training agents that repair code."""

__version__ = "0.1.0"
