"""Installed as the module ``coding_gym_verifiers``, the name that verifiers imports."""

from coding_gym.adapters.verifiers import RepairHarness, RepairTaskset

__all__ = ["RepairHarness", "RepairTaskset"]
