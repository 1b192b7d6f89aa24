"""Access to internals for the tests of this project."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from coding_gym import tools
from coding_gym.rewards import registry


@contextmanager
def restored_registries() -> Iterator[None]:
    """Removes, at its end, toolsets and rewards that were registered meanwhile."""
    with patch.dict(tools._TOOLSETS), patch.dict(registry._REWARDS):
        yield
