"""Evaluation of agents: one call from a model to a report that can be trusted."""

from coding_gym.evaluation.comparison import Comparison, compare, leaderboard
from coding_gym.evaluation.evaluate import evaluate
from coding_gym.evaluation.exports import EXPORTS, export
from coding_gym.evaluation.report import Report, report

__all__ = [
    "EXPORTS",
    "Comparison",
    "Report",
    "compare",
    "evaluate",
    "export",
    "leaderboard",
    "report",
]
