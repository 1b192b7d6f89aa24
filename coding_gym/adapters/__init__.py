"""Adapters for trainers: one file for each trainer, imported only on use."""
