"""Agents that play whole episodes: by a model, by a command-line agent, or without a model."""
