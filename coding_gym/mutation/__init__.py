"""Mutation operators on Python source, which make bugs and propose repairs."""
