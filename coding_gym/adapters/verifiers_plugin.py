"""Installed as the module ``coding_gym_verifiers``: verifiers imports plug-ins by one name."""

from coding_gym.adapters.verifiers import RepairHarness, RepairTaskset

__all__ = ["RepairHarness", "RepairTaskset"]
