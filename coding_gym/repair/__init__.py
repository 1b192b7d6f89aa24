"""Fault localisation and repair candidates, for agents and action spaces that need no model."""
