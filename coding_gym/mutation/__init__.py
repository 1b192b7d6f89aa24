"""Mutation operators on Python source, for bugs to make and repairs to try."""
