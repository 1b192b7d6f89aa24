"""Checks that every toolset keeps the contract of a toolset."""

from checks.toolset_checks import ToolsetCheck, toolset_checks

__all__ = ["ToolsetCheck", "toolset_checks"]
