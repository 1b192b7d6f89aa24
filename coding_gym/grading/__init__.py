"""Hidden tests in a second, clean sandbox: what a patch is worth, and whether it cheated."""

from coding_gym.grading.grader import grade

__all__ = ["grade"]
