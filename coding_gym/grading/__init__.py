"""Hidden tests in a second, clean sandbox: what a patch is worth, and whether it cheated."""

from coding_gym.grading.grader import CHALLENGES, grade, new_plan
from coding_gym.grading.plan import Plan, plan_key

__all__ = ["CHALLENGES", "Plan", "grade", "new_plan", "plan_key"]
