"""Agents that play episodes: with a model, with a command-line agent, or without a model."""
