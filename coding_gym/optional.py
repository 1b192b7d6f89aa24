"""Imports of optional packages."""

from importlib import import_module
from typing import Any

from coding_gym.errors import MissingDependencyError


def import_extra(module: str, extra: str, hint: str = "") -> Any:
    """Returns a module that one of this package's extras installs.

    Args:
        module: The name of the module.
        extra: The extra that installs the module.
        hint: The end of the ``pip install`` line in the error, such as another package.

    Raises:
        MissingDependencyError: The module is not installed; the message says how to install it.
    """
    try:
        return import_module(module)
    except ImportError as problem:
        raise missing_extra(module.partition(".")[0], extra, hint) from problem


def missing_extra(name: str, extra: str, hint: str = "") -> MissingDependencyError:
    """Returns the error that `import_extra` raises for a package with this name."""
    return MissingDependencyError(
        f"{name} is not installed; run: pip install 'coding-gym[{extra}]'{hint}"
    )
