"""The arena in which every attack of a module takes place."""

from arena import arena

__all__ = ["arena"]
