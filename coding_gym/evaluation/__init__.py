"""Evaluation of agents: runs, reports, comparisons and exports."""

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
