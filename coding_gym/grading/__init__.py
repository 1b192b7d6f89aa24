"""Hidden tests in a second, clean sandbox: what a patch is worth, and whether it cheated."""

from coding_gym.grading.grader import CHALLENGES, grade
from coding_gym.grading.warm_start import WarmStart, start_ahead

__all__ = ["CHALLENGES", "WarmStart", "grade", "start_ahead"]
