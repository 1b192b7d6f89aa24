"""Packages that are not installed with this one."""

import json
import shlex
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any
from urllib.parse import unquote, urlsplit

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


def import_extra(module: str, extra: str) -> Any:
    """Returns a module that one of this package's extras installs.

    Raises:
        MissingDependencyError: It is not installed; the message says how to install it.
    """
    try:
        return import_module(module)
    except ImportError as problem:
        raise missing_extra(module.partition(".")[0], extra) from problem


def missing_extra(name: str, extra: str, needs: str = "") -> MissingDependencyError:
    """Returns the error that says how to install an extra.

    Args:
        name: The package that is missing.
        extra: The extra that installs it.
        needs: What must be there before.
    """
    said = f"{name} is not installed" + (f" (it needs {needs})" if needs else "")
    return MissingDependencyError(f"{said}; run: pip install {requirement(extra)}")


def requirement(extra: str) -> str:
    """Returns what ``pip install`` takes to add an extra to this installation.

    A package index need not have this package: from a clone, a wheel or a repository the same
    place is named again (``direct_url.json``, PEP 610).
    """
    try:
        text = distribution("coding-gym").read_text("direct_url.json")
    except PackageNotFoundError:  # imported from a folder that is not installed
        text = None
    origin = json.loads(text or "{}")
    url = str(origin.get("url", ""))
    if "dir_info" in origin:
        folder = shlex.quote(f"{unquote(urlsplit(url).path)}[{extra}]")
        return f"-e {folder}" if origin["dir_info"].get("editable") else folder
    if "vcs_info" in origin:
        url = f"{origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}"
    return shlex.quote(f"coding-gym[{extra}] @ {url}" if url else f"coding-gym[{extra}]")
