"""Builds layers of pytest and its dependencies, for interpreters in sandboxes."""

import os
import platform
import py_compile
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from coding_gym.errors import MissingDependencyError, TemplateError
from coding_gym.sandbox.folder_cache import FolderCache, content_key
from coding_gym.sandbox.layer_union import copy
from coding_gym.sandbox.protocol import SandboxBackend
from coding_gym.sandbox.spec import Interpreter, Mount, SandboxSpec
from coding_gym.workspace.stamping import DEFAULT_DATE, stamp
from coding_gym.workspace.template import PYTEST_BIN

# Part of every key; increase it whenever the result of a build changes.
_SCHEMA = 2

_COMMANDS = ("pytest", "py.test")
_SCRIPT = """\
#!/usr/bin/env python
import sys

from pytest import console_main

sys.exit(console_main())
"""
# A module of the layer that imports pytest, so that a pre-started interpreter runs tests sooner.
PRELOAD = "_preload_pytest"
_PRELOAD_SOURCE = """\
import pytest
from _pytest.config import default_plugins

for name in default_plugins:
    __import__("_pytest." + name)
"""


def preloads(environment: Mapping[str, str], *, has_own_pytest: bool) -> tuple[str, ...]:
    """Returns the modules that an interpreter for tests can preload; empty if it must not preload.

    A preload is unsafe if pytest comes from the task's environment, where its plug-ins can import
    the project, or if variables such as ``PYTHONHOME`` change the start of the interpreter.

    Args:
        environment: Variables of the sandbox.
        has_own_pytest: Whether pytest and its plug-ins come from the task's environment.
    """
    variables = {name for name in environment if name.startswith("PYTHON")}
    return () if has_own_pytest or not variables <= {"PYTHONPATH"} else (PRELOAD,)


@cache
def pytest_distributions() -> dict[str, Distribution]:
    """Returns this process's distributions of pytest and its dependencies, by ``name version``.

    Raises:
        MissingDependencyError: A distribution is not installed.
    """
    from packaging.requirements import Requirement  # a dependency of pytest

    distributions: dict[str, Distribution] = {}
    names = ["pytest"]
    while names:
        name = names.pop().lower().replace("_", "-")
        if name in distributions:
            continue
        try:
            distributions[name] = dist = distribution(name)
        except PackageNotFoundError as error:
            raise MissingDependencyError(
                f"{name} is not installed; run: pip install pytest"
            ) from error
        required = [Requirement(text) for text in dist.requires or ()]
        names += [r.name for r in required if not r.marker or r.marker.evaluate({"extra": ""})]
    return {f"{dist.name} {dist.version}": dist for _, dist in sorted(distributions.items())}


@dataclass(frozen=True, slots=True)
class PytestLayers:
    """Builds pytest layers and caches them.

    Attributes:
        cache: Stores the layers.
        backend: The backend of the sandboxes that mount the layers.
    """

    cache: FolderCache
    backend: SandboxBackend

    def get(self, interpreter: Interpreter) -> tuple[str, SandboxSpec]:
        """Returns the key of an interpreter's layer, and a spec with the interpreter and the layer.

        The layer includes byte code for the interpreter, because imports cannot write byte code
        into a read-only mount.

        Raises:
            TemplateError: The interpreter's minor version differs from the version of this process,
                for which pytest is installed.
        """
        if interpreter.minor != sys.version_info[:2]:
            raise TemplateError(
                f"pytest is installed for Python {platform.python_version()}, but the task uses "
                f"Python {interpreter.version}; use sandbox='namespace' and add an install command "
                "to the task: `pip install pytest`, or `true` if the tests do not use pytest"
            )
        dists = pytest_distributions()
        python = (str(interpreter.executable), interpreter.version, str(interpreter.site_packages))
        key = content_key(_SCHEMA, [*dists], python, self.backend.owner(), _PRELOAD_SOURCE, _SCRIPT)
        folder = self.cache.get(key, lambda folder: self._build(interpreter, folder))
        mounts = (
            Mount(source=folder / "site", target=str(interpreter.site_packages)),
            Mount(source=folder / "bin", target=PYTEST_BIN),
        )
        return key, SandboxSpec(mounts=mounts, python=interpreter, path=(PYTEST_BIN,))

    def _build(self, interpreter: Interpreter, folder: Path) -> None:
        site, scripts = folder / "site", folder / "bin"
        for dist in pytest_distributions().values():
            _copy(dist, site)
        (site / f"{PRELOAD}.py").write_text(_PRELOAD_SOURCE, encoding="utf-8")
        scripts.mkdir()
        for name in _COMMANDS:
            (scripts / name).write_text(_SCRIPT)
            (scripts / name).chmod(0o755)
        # This process's byte code fits the interpreter, which has the same minor version. The
        # target is explicit, because PYTHONPYCACHEPREFIX changes the default.
        for path in site.rglob("*.py"):
            py_compile.compile(
                str(path),
                f"{path.parent}/__pycache__/{path.stem}.{sys.implementation.cache_tag}.pyc",
                str(interpreter.site_packages / path.relative_to(site)),
                optimize=0,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
                quiet=2,
            )
        stamp(folder, DEFAULT_DATE, self.backend.owner())


def _copy(dist: Distribution, site: Path) -> None:
    """Copies a distribution's files, except commands and byte code."""
    if not dist.files:
        raise TemplateError(
            f"{dist.name} has no list of its files; run: pip install --ignore-installed {dist.name}"
        )
    files = {
        str(file): Path(str(file.locate())).resolve()  # some installers make links
        for file in dist.files
        if not {"..", "__pycache__"} & {*file.parts} and not file.is_absolute()
    }
    copy(files, site, (os.geteuid(), os.getegid()))
