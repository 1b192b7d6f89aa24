"""Finds Python installations on this machine."""

import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.host.toolchains import home_folder

_TIMEOUT_S = 30.0
# Runs under every Python from 2.7 on. In Debian's Python `purelib` may not exist yet, so the script
# prints the first existing folder of packages.
_DESCRIBE_SOURCE = """
import json, os, site, sys, sysconfig
folders = [sysconfig.get_path("purelib")] + site.getsitepackages()
existing = [p for p in folders if os.path.isdir(p)] or folders
kind = getattr(getattr(sys, "implementation", None), "name", "cpython")
kind += "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
print(json.dumps([os.path.realpath(sys.executable), getattr(sys, "base_prefix", sys.prefix),
                  "%d.%d.%d" % sys.version_info[:3], existing[0], kind]))
"""
# Packages of tasks work only in CPython with a GIL, not in PyPy or free-threaded builds.
_IMPLEMENTATION = "cpython"
_FAILURES = (OSError, subprocess.SubprocessError, ValueError)  # of a binary that does not run
_VERSION = re.compile(r"(\d+\.\d+)(\.\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python installation on the host that a sandbox can mount.

    Attributes:
        executable: The real path of its ``python3.X`` binary.
        prefix: Its ``sys.base_prefix``; ``/usr`` for a system Python.
        version: Its version, such as ``"3.11.7"``.
        site_packages: The folder into which its pip installs (``sysconfig`` path ``purelib``).
        implementation: ``"cpython"``, ``"cpythont"`` without a GIL, ``"pypy"`` …
    """

    executable: Path
    prefix: Path
    version: str
    site_packages: Path
    implementation: str

    @property
    def minor(self) -> tuple[int, int]:
        """The first two numbers of its version."""
        major, minor, *_ = map(int, self.version.split("."))
        return major, minor

    @property
    def names(self) -> tuple[str, str, str]:
        """The names of its binary; the last has the version, such as ``python3.11``."""
        return "python", "python3", "python{}.{}".format(*self.minor)


def loader_variables() -> dict[str, str]:
    """Returns the variables that a Python of this machine may need to find its libraries."""
    return {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}


@cache
def default_interpreter() -> Interpreter:
    """Returns the installation that runs this process; for a virtual environment, its base.

    Raises:
        SandboxUnavailableError: The installation cannot be started, as in a frozen program.
        SandboxError: The machine has no free process or memory.
    """
    executable = Path(getattr(sys, "_base_executable", None) or sys.executable or "python3")
    try:
        return _describe(executable.resolve())
    except _FAILURES as error:
        if isinstance(error, OSError) and error.errno in (errno.EAGAIN, errno.ENOMEM):
            raise SandboxError(f"cannot start {executable}: {error}") from error
        raise SandboxUnavailableError(
            f"cannot start {executable}, the interpreter of this process: {error}",
            "run coding_gym with an installed Python",
        ) from error


@cache
def find_interpreter(version: str) -> Interpreter:
    """Returns an installed CPython (with a GIL) of a version, such as 3.9 or 3.9.18.

    The Python of this process is returned if it has this version. Otherwise the installations of
    pyenv, uv, the system and PATH are searched, in this order.

    Raises:
        InvalidArgumentError: ``version`` has neither of these two forms.
        SandboxUnavailableError: There is no such Python; the message has the folders and remedies.
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        raise InvalidArgumentError(f"a Python version must be like 3.9 or 3.9.18, got {version!r}")
    minor, folders = match[1], _search_folders()
    # The search is lazy, because a search starts binaries.
    for interpreter in chain((default_interpreter(),), _installed(f"python{minor}", folders)):
        has_version = f"{interpreter.version}.".startswith(f"{version}.")
        if has_version and interpreter.implementation == _IMPLEMENTATION:
            return interpreter
    raise SandboxUnavailableError(
        f"there is no Python {version} in {', '.join(map(str, folders))}",
        f"install it, for example with `uv python install {version}`, `pyenv install {version}` "
        f"or, if apt has this version, `apt-get install python{minor} python{minor}-venv`",
    )


def _search_folders() -> list[Path]:
    """Returns the folders of pyenv, uv, the system and PATH, in the order of the search."""
    variables, home = os.environ, home_folder()
    pyenv = Path(variables.get("PYENV_ROOT") or home / ".pyenv")
    data = Path(variables.get("XDG_DATA_HOME") or home / ".local" / "share")
    uv = Path(variables.get("UV_PYTHON_INSTALL_DIR") or data / "uv" / "python")
    fixed = [pyenv / "versions", uv, Path("/usr/local/bin"), Path("/usr/bin")]
    on_path = [Path(p) for p in variables.get("PATH", "").split(os.pathsep) if p]
    return list(dict.fromkeys([*fixed, *on_path]))


def _installed(name: str, folders: list[Path]) -> Iterator[Interpreter]:
    """Yields the installations that have a binary of this name."""
    for folder in folders:
        if not os.access(folder, os.R_OK | os.X_OK):  # missing, or private to another user
            continue
        releases = sorted(folder.glob(f"*/bin/{name}"), key=_numbers, reverse=True)
        for path in (*releases, folder / name):
            # A pyenv shim is not an interpreter, but a script that may run one.
            if path.parent.name != "shims":
                with suppress(*_FAILURES):
                    yield _describe(path.resolve())


def _numbers(path: Path) -> list[int]:
    """Returns a key that sorts 3.9.9 before 3.9.18."""
    return [int(number) for number in re.findall(r"\d+", path.parts[-3])]


@cache
def _describe(executable: Path) -> Interpreter:
    """Returns the installation that a binary belongs to.

    Raises:
        OSError, subprocess.SubprocessError, ValueError: The binary does not run. Failures are
            not cached: the next call tries again.
    """
    reply = subprocess.run(
        [executable, "-E", "-s", "-c", _DESCRIBE_SOURCE],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_TIMEOUT_S,
        env={"PATH": os.defpath} | loader_variables(),
        cwd="/",
        check=True,
    )
    real_path, prefix, version, site_packages, implementation = json.loads(reply.stdout)
    return Interpreter(
        executable=Path(real_path),
        prefix=Path(prefix),
        version=version,
        site_packages=Path(site_packages),
        implementation=implementation,
    )
