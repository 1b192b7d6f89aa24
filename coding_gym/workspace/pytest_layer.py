"""Pytest and its dependencies, as a folder for any interpreter in a sandbox."""

import os
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from coding_gym.errors import MissingDependencyError, TemplateError, last_line
from coding_gym.sandbox.folder_cache import FolderCache, content_key
from coding_gym.sandbox.host_program import run_program
from coding_gym.sandbox.protocol import SandboxBackend
from coding_gym.sandbox.spec import Interpreter, Mount, SandboxSpec
from coding_gym.workspace.stamping import stamp
from coding_gym.workspace.template import PYTEST_BIN

# Part of every key; increase it whenever the result of a build changes.
_SCHEMA = 2
_DATE = datetime(2024, 1, 1, tzinfo=UTC)
_COMPILE_TIMEOUT_S = 300.0

_COMMANDS = ("pytest", "py.test")
_SCRIPT = """\
#!/usr/bin/env python
import sys

from pytest import console_main

sys.exit(console_main())
"""
# A module of the layer: an interpreter that has imported it can run tests at once.
PRELOAD = "_preload_pytest"
_PRELOAD_SOURCE = """\
import pytest
from _pytest.config import default_plugins

for name in default_plugins:
    __import__("_pytest." + name)
"""


def preloads(environment: Mapping[str, str], *, has_own_pytest: bool) -> tuple[str, ...]:
    """Returns the modules that an interpreter for tests may preload; none for a cold start.

    The pytest of an environment may import the project itself, and some variables change the start
    of an interpreter.

    Args:
        environment: Variables of the sandbox.
        has_own_pytest: Whether pytest and its plug-ins are those of the environment.
    """
    variables = {name for name in environment if name.startswith("PYTHON")}
    return () if has_own_pytest or not variables <= {"PYTHONPATH"} else (PRELOAD,)


def pytest_distributions(python_version: str) -> tuple[Distribution, ...]:
    """Returns pytest and its dependencies on an interpreter, as installed for this process.

    Args:
        python_version: The version of the interpreter, such as ``3.12.1``.

    Raises:
        TemplateError: The installed pytest does not run on that version, or a dependency there is
            not installed here.
        MissingDependencyError: Pytest is not installed.
    """
    # A dependency of pytest itself.
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

    short = ".".join(python_version.split(".")[:2])
    marks = {"python_version": short, "python_full_version": python_version, "extra": ""}
    distributions: dict[str, Distribution] = {}
    pending = ["pytest"]
    while pending:
        name = pending.pop().lower().replace("_", "-")
        if name in distributions:
            continue
        distributions[name] = dist = _distribution(name, python_version)
        runs_on = SpecifierSet(str(dist.metadata.json.get("requires_python", "")))
        if not runs_on.contains(python_version, prereleases=True):
            raise TemplateError(
                f"the installed {name} {dist.version} does not run on Python {python_version}; "
                "give the task install commands that install a pytest that does"
            )
        needs = [Requirement(text) for text in dist.requires or ()]
        pending += [n.name for n in needs if n.marker is None or n.marker.evaluate(marks)]
    return tuple(distributions[name] for name in sorted(distributions))


class PytestLayers:
    """Builds pytest layers and caches them.

    Args:
        cache: Keeps them.
        backend: Its sandboxes use them.
    """

    def __init__(self, cache: FolderCache, backend: SandboxBackend) -> None:
        self._cache = cache
        self._backend = backend
        self._known: dict[Interpreter, tuple[str, SandboxSpec]] = {}

    def get(self, interpreter: Interpreter) -> tuple[str, SandboxSpec]:
        """Returns the key of an interpreter's layer, and a spec that mounts both.

        The layer is compiled for the interpreter, so that imports write nothing.

        Raises:
            TemplateError: Pytest does not run on the interpreter, or cannot be compiled.
        """
        if interpreter not in self._known:
            self._known[interpreter] = self._look_up(interpreter)
        return self._known[interpreter]

    def _look_up(self, interpreter: Interpreter) -> tuple[str, SandboxSpec]:
        dists = pytest_distributions(interpreter.version)
        python = (str(interpreter.executable), interpreter.version, str(interpreter.site_packages))
        names = [f"{dist.name} {dist.version}" for dist in dists]
        key = content_key(_SCHEMA, names, python, self._backend.owner(), _PRELOAD_SOURCE, _SCRIPT)

        def build(folder: Path) -> None:
            site, scripts = folder / "site", folder / "bin"
            for dist in dists:
                _copy(dist, site)
            (site / f"{PRELOAD}.py").write_text(_PRELOAD_SOURCE, encoding="utf-8")
            scripts.mkdir()
            for name in _COMMANDS:
                (scripts / name).write_text(_SCRIPT)
                (scripts / name).chmod(0o755)
            _compile(site, interpreter)
            stamp(folder, _DATE, self._backend.owner())

        folder = self._cache.get(key, build)
        mounts = (
            Mount(source=folder / "site", target=str(interpreter.site_packages)),
            Mount(source=folder / "bin", target=PYTEST_BIN),
        )
        return key, SandboxSpec(mounts=mounts, python=interpreter, path=(PYTEST_BIN,))


def _distribution(name: str, python_version: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError as error:
        if name == "pytest":
            raise MissingDependencyError(
                "pytest is not installed; run: pip install pytest"
            ) from error
        raise TemplateError(
            f"pytest on Python {python_version} needs {name}, which is not installed here; "
            "give the task install commands that install pytest"
        ) from error


def _copy(dist: Distribution, site: Path) -> None:
    """Copies a distribution's files, except its commands and compiled files."""
    if not dist.files:
        raise TemplateError(f"{dist.name} has no list of its files; reinstall it with pip")
    for file in dist.files:
        if ".." in file.parts or "__pycache__" in file.parts or file.is_absolute():
            continue
        target = site / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(str(file.locate())), target)


def _compile(site: Path, interpreter: Interpreter) -> None:
    """Compiles pytest, which is trusted, for an interpreter."""
    target = str(interpreter.site_packages)
    options = ["-q", "-d", target, "--invalidation-mode", "unchecked-hash", str(site)]
    command = [str(interpreter.executable), "-I", "-S", "-m", "compileall", *options]
    # A Python that is not installed system-wide may need the variable in order to start at all.
    env = {"PATH": os.defpath} | {k: v for k, v in os.environ.items() if k == "LD_LIBRARY_PATH"}
    try:
        ended = run_program(command, cwd=Path("/"), env=env, timeout_s=_COMPILE_TIMEOUT_S)
    except OSError as error:
        raise TemplateError(f"cannot compile pytest for {target}: {error}") from error
    if ended.returncode:
        reason = last_line((ended.stdout + ended.stderr).decode("utf-8", "replace"))
        raise TemplateError(f"cannot compile pytest for {target}: {reason}")
