"""Hidden tests in a second, clean sandbox: what a patch is worth, and whether it cheated."""

from coding_gym.grading.grader import CHALLENGES, grade, new_plan
from coding_gym.grading.plan import Plan, plan_key
from coding_gym.grading.warm_start import WarmStart, start_ahead

__all__ = ["CHALLENGES", "Plan", "WarmStart", "grade", "new_plan", "plan_key", "start_ahead"]
