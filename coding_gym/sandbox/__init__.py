"""Isolated places to run commands: one protocol, interchangeable backends."""
