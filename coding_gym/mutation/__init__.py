"""Edits of Python source: one engine and one catalogue, for bugs to make and repairs to try."""
