"""Evaluation of agents: one call from a model to a report that can be trusted."""
