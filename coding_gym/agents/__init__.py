"""Policies that need no training: for checking, for comparison, for load."""
