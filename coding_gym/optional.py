"""Imports of optional packages."""

from importlib import import_module
from typing import Any

from coding_gym.errors import MissingDependencyError


def import_extra(module: str, extra: str, hint: str = "") -> Any:
    """Returns a module that one of this package's extras installs.

    Args:
        module: The name of the module.
        extra: The extra.
        hint: The end of the ``pip install`` line in the error, such as another package.

    Raises:
        MissingDependencyError: It is not installed; the message says how to install it.
    """
    try:
        return import_module(module)
    except ImportError as problem:
        name = module.partition(".")[0]
        raise MissingDependencyError(
            f"{name} is not installed; run: pip install {requirement(extra)}{hint}"
        ) from problem


def missing_extra(name: str, extra: str, needs: str = "") -> MissingDependencyError:
    """Returns the error that says how to install an extra.

    Args:
        name: The package that is missing.
        extra: The extra that installs it.
        needs: A prerequisite of the extra, for the message.
    """
    message = f"{name} is not installed" + (f" (it needs {needs})" if needs else "")
    return MissingDependencyError(f"{message}; run: pip install {requirement(extra)}")


def requirement(extra: str) -> str:
    """Returns the argument of ``pip install`` that adds an extra to this package."""
    return f"'coding-gym[{extra}]'"
