"""Evaluation of agents: one call from a model to a report that can be trusted."""

from coding_gym.evaluation.evaluate import evaluate
from coding_gym.evaluation.exports import EXPORTS, export

__all__ = ["EXPORTS", "evaluate", "export"]
