"""Python installations on this machine, found without a shell and asked for their version."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from coding_gym.errors import InvalidArgumentError, SandboxUnavailableError

_ASK_TIMEOUT_S = 30.0
# Runs under every Python from 2.7 on. Debian's own Python installs where the path does not exist
# until something was installed, so the first existing folder among those it searches is taken.
_QUESTION = """
import json, os, site, sys, sysconfig
folders = [sysconfig.get_path("purelib")] + site.getsitepackages()
found = [p for p in folders if os.path.isdir(p)] or folders
kind = getattr(getattr(sys, "implementation", None), "name", "cpython")
kind += "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
print(json.dumps([os.path.realpath(sys.executable), getattr(sys, "base_prefix", sys.prefix),
                  "%d.%d.%d" % sys.version_info[:3], found[0], kind]))
"""
# Packages for a version fit this kind only, not PyPy and not builds without the lock.
_USUAL = "cpython"
_VERSION = re.compile(r"(\d+)\.(\d+)(\.\d+)?")
_NAME = re.compile(r"python(\d+\.\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python installation on the host that a sandbox can show.

    Attributes:
        executable: The real path of its ``python3.X`` binary.
        prefix: Its ``sys.base_prefix``; ``/usr`` for a system Python.
        version: ``"3.11.7"``.
        site_packages: Where its own pip would install (``sysconfig`` path ``purelib``).
    """

    executable: Path
    prefix: Path
    version: str
    site_packages: Path


@cache
def default_interpreter() -> Interpreter:
    """Returns the installation that runs this process, looking through virtual environments.

    Raises:
        SandboxUnavailableError: It cannot be run again, as in a frozen program.
    """
    executable = Path(getattr(sys, "_base_executable", None) or sys.executable or "python3")
    found = describe(executable.resolve(), usual=False)
    if found is None:
        raise SandboxUnavailableError(
            f"cannot run {executable}, which runs this process",
            "run coding_gym with a Python that is installed on its own",
        )
    return found


@cache
def find_interpreter(version: str) -> Interpreter:
    """Returns an installation of a Python version, such as ``"3.9"`` or ``"3.9.18"``.

    The running one is taken where it fits; then pyenv's, uv's, the system's (Debian's own, and
    those of the deadsnakes archive) and those in PATH are looked at, the newest patch release of
    each place first. Only CPython counts.

    Raises:
        InvalidArgumentError: Not a version.
        SandboxUnavailableError: No such Python here; names what there is, the folders, and ways to
            get it.
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        raise InvalidArgumentError(f"a Python version looks like 3.9 or 3.9.18, got {version!r}")
    running = default_interpreter()
    if _fits(running, version):
        return running
    minor = f"{match[1]}.{match[2]}"
    for executable in _candidates(f"python{minor}"):
        found = describe(executable)
        if found is not None and _fits(found, version):
            return found
    here = {python.version for python in (running, *_installations()) if python}
    folders = ", ".join(str(folder) for folder in _search_folders())
    raise SandboxUnavailableError(
        f"no Python {version} on this machine: there are {', '.join(sorted(here, key=_numbers))} "
        f"(looked in {folders})",
        f"install it, for example with `uv python install {version}`, `pyenv install {version}`, "
        f"or where the system has it `apt-get install python{minor} python{minor}-venv`",
    )


def _fits(interpreter: Interpreter, version: str) -> bool:
    return f"{interpreter.version}.".startswith(f"{version}.")


def _search_folders() -> list[Path]:
    """Returns the folders that are searched, in order."""
    variables, home = os.environ, Path.home()
    pyenv = Path(variables.get("PYENV_ROOT") or home / ".pyenv")
    data = Path(variables.get("XDG_DATA_HOME") or home / ".local" / "share")
    uv = Path(variables.get("UV_PYTHON_INSTALL_DIR") or data / "uv" / "python")
    fixed = [pyenv / "versions", uv, Path("/usr/local/bin"), Path("/usr/bin")]
    on_path = [Path(p) for p in variables.get("PATH", "").split(os.pathsep) if p]
    return list(dict.fromkeys([*fixed, *on_path]))


def _installations() -> Iterator[Interpreter | None]:
    """Gives every Python there is, None for a binary that is none; each is run once."""
    for executable in _candidates("python[0-9]*.[0-9]*"):
        if _NAME.fullmatch(executable.name):
            yield describe(executable)


def _candidates(name: str) -> Iterator[Path]:
    """Gives the real paths of binaries that may be of a version, without asking them.

    Args:
        name: The binary's name, or a pattern of it.
    """
    seen = set()
    for folder in _search_folders():
        if not os.access(folder, os.R_OK | os.X_OK):  # missing, or of another user
            continue
        found = [*folder.glob(f"*/bin/{name}"), *folder.glob(name)]
        for executable in sorted(found, key=_version_key, reverse=True):
            real = executable.resolve()
            # A pyenv shim is a script that runs another Python, or none.
            runs = os.access(real, os.X_OK) and real.is_file() and real.parent.name != "shims"
            if runs and real not in seen:
                seen.add(real)
                yield real


def _version_key(executable: Path) -> tuple[int, ...]:
    # Of the real folder: uv has a link for each minor version, which names no patch release.
    return _numbers(executable.resolve().parent.parent.name)


def _numbers(text: str) -> tuple[int, ...]:
    found = re.search(r"\d+(\.\d+)+", text)
    return tuple(int(n) for n in found[0].split(".")) if found else ()


@cache
def describe(executable: Path, *, usual: bool = True) -> Interpreter | None:
    """Returns the facts that a binary reports of itself; None where it does not run.

    Args:
        executable: The binary.
        usual: Whether it must be a CPython, with its lock.
    """
    env = {"PATH": os.defpath}
    if "LD_LIBRARY_PATH" in os.environ:
        env["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    try:
        answer = subprocess.run(
            [executable, "-E", "-s", "-c", _QUESTION],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ASK_TIMEOUT_S,
            env=env,
            cwd="/",
            check=True,
        )
        real, prefix, version, site_packages, kind = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    if usual and kind != _USUAL:
        return None
    return Interpreter(
        executable=Path(real),
        prefix=Path(prefix),
        version=version,
        site_packages=Path(site_packages),
    )
