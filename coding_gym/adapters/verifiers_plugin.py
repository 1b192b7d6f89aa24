"""This file is installed as the module ``coding_gym_verifiers``, which verifiers imports."""

from coding_gym.adapters.verifiers import RepairHarness, RepairTaskset

__all__ = ["RepairHarness", "RepairTaskset"]
