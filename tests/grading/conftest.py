"""The fixtures with which changed trees are graded."""

from grading_fixtures import grade_tree, store

__all__ = ["grade_tree", "store"]
