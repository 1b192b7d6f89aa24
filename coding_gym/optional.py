"""Packages that are not installed with this one."""

from importlib import import_module
from typing import Any

from coding_gym.errors import MissingDependencyError


def import_optional(module: str, install: str) -> Any:
    """Returns a module of an optional package.

    Args:
        module: Its name.
        install: What ``pip install`` takes to install it.

    Raises:
        MissingDependencyError: It is not installed; the message says how to install it.
    """
    try:
        return import_module(module)
    except ImportError as problem:
        name = module.partition(".")[0]
        raise MissingDependencyError(
            f"{name} is not installed; run: pip install {install}"
        ) from problem
