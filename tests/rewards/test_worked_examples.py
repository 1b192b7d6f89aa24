"""Every formula has worked examples, and they hold."""

import doctest
import importlib
import pkgutil

from coding_gym import rewards

MODULES = [found.name for found in pkgutil.iter_modules(rewards.__path__)]


def test_the_examples_in_the_documentation_hold() -> None:
    for name in MODULES:
        module = importlib.import_module(f"coding_gym.rewards.{name}")
        assert doctest.testmod(module).failed == 0, name
