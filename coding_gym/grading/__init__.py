"""Grading: runs hidden tests in a second, clean sandbox, and detects forged results."""

from coding_gym.grading.grader import CHALLENGES, NO_REPAIR, grade, new_plan
from coding_gym.grading.plan import Plan, plan_key

__all__ = ["CHALLENGES", "NO_REPAIR", "Plan", "grade", "new_plan", "plan_key"]
