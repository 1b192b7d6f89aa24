"""Fault localisation and repair candidates, for agents and action spaces without a model."""
