"""A patch that repairs nothing, for grading a task's base."""

from coding_gym.patch import Patch

# Grading takes a shortcut for a patch that changes nothing; the base's tests have to be run.
NO_REPAIR = Patch.between({}, {"coding_gym_validation.txt": "Nothing reads this file.\n"})
