"""The ``landlock`` backend: sandboxes for machines that forbid user namespaces."""

from coding_gym.sandbox.landlock.backend import LandlockBackend

__all__ = ["LandlockBackend"]
